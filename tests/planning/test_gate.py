"""The gate of a run, fresh and resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.core.plan import Plan, RunSettings
from pytest_mlab.planning.gate import gate_of
from pytest_mlab.planning.options import MlabOptions, given
from pytest_mlab.planning.planned import Planned
from pytest_mlab.store.rundir import RunDir

NONE, FLOOR = MlabOptions(gate="none"), MlabOptions(fail_under=0.5)
WORDS = ("--mlab-resume=r",)


@pytest.mark.parametrize(
    ("started", "now", "words", "policy"),
    [
        (NONE, MlabOptions(), WORDS, GatePolicy("none")),
        (FLOOR, MlabOptions(), WORDS, GatePolicy("aggregate", 0.5)),
        (MlabOptions(), MlabOptions(), WORDS, GatePolicy("trial")),
        # what an ini file says in every session is not asked for
        (NONE, MlabOptions(gate="trial"), WORDS, GatePolicy("none")),
        (MlabOptions(), NONE, WORDS, GatePolicy("trial")),
        (NONE, MlabOptions(gate="trial"), (*WORDS, "--mlab-gate", "trial"), GatePolicy("trial")),
        (NONE, FLOOR, (*WORDS, "--mlab-fail-under=0.5"), GatePolicy("aggregate", 0.5)),
    ],
)
def test_a_resumed_run_has_the_gate_that_it_was_started_with_unless_another_is_asked_for(
    tmp_path: Path,
    started: MlabOptions,
    now: MlabOptions,
    words: tuple[str, ...],
    policy: GatePolicy,
) -> None:
    plan = Plan("r", RunSettings(), (), (), ())
    run = RunDir.create(tmp_path / "r", plan, {"options": given(started)})
    planned = Planned(plan, {}, {}, run.path, resumed=True)
    assert gate_of(now, planned, words) == policy
    fresh = replace(planned, resumed=False)
    assert gate_of(now, fresh, ()) == GatePolicy.resolve(now.gate, now.fail_under)
