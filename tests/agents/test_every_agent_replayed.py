"""Every built-in agent that calls a model, recorded against the scripted server and replayed
without it.

The task's script prints what differs from run to run: its folder, times, addresses, process ids,
temporary files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.trial import TrialId, TrialResult
from pytest_mlab.models.recording.format import file_of, read_recording
from pytest_mlab.store.events import ModelCall, StepDone
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.trial.runner import TrialRunner
from tests.agents.scripts import CASES, EDIT, FAST, LIST, MAIN, RUN, SUBMIT, Case
from tests.support.scripted_server import ScriptedServer
from tests.support.toy_run import make_run
from tests.support.toy_suite import TRAIN, write_toy_task

KEY = "sk-not-a-real-key-0123456789"

VOLATILE = """
import datetime, os, tempfile, time

print("in", os.getcwd(), "at", datetime.datetime.now(), time.strftime("%H:%M:%S"))
print(f"took {time.perf_counter():.6f} s, {time.perf_counter_ns()} ns,")
print(f"12.{time.monotonic_ns() % 1000} it/s")
print(object(), f"pid {os.getpid()}", tempfile.gettempdir() + f"/tmp{os.getpid():08d}")
"""

MODELS = [case for case in CASES if case.calls_model]


class Stage:
    """Two runs of all agents, the second in another place on the disk."""

    def __init__(self, root: Path) -> None:
        write_toy_task(root / "task_suites" / "toy" / "guess", train=TRAIN + VOLATILE)
        self.root = root
        self.recordings = root / "recordings"
        self.recorded = self._run("recorded", record=str(self.recordings))
        self.replayed = self._run("replayed", replay=str(self.recordings))

    def _run(self, name: str, **settings: str) -> RunDir:
        present = [case for case in MODELS if not case.missing]
        run = make_run(
            self.root,
            [case.ref or case.name for case in present],
            path=self.root / name,
            model=MAIN,
            budget=Budget(5, 120.0),
            args=[f"{case.name}.{setting}" for case in present for setting in case.settings],
            fast_model=FAST,
            edit_model=EDIT,
            cache_dir=str(self.root / f"cache of {name}"),
            **settings,
        )
        return RunDir.open(run.path)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(tmp_path_factory.mktemp("stage"))


@pytest.fixture(scope="module")
def results(stage: Stage) -> Iterator[dict[str, TrialResult]]:
    """All recorded trials; the server and the key are gone when the tests begin."""
    found = {}
    with ScriptedServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        with TrialRunner(stage.recorded.path) as runner:
            for trial in stage.recorded.plan.trials:
                case = next(case for case in MODELS if case.name == trial.agent)
                server.restart(case.doing(LIST, RUN, SUBMIT), key=KEY)
                found[trial.agent] = runner.run(trial)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPENAI_API_KEY", raising=False)
        patch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
        yield found


@pytest.fixture(scope="module")
def runner(stage: Stage, results: dict[str, TrialResult]) -> Iterator[TrialRunner]:
    with TrialRunner(stage.replayed.path) as found:
        yield found


def params() -> list[object]:
    return [
        pytest.param(
            case,
            id=case.name,
            marks=pytest.mark.skipif(case.missing, reason=f"needs the extra with {case.needs}"),
        )
        for case in MODELS
    ]


@pytest.mark.parametrize("case", params())
def test_is_replayed(
    stage: Stage, results: dict[str, TrialResult], runner: TrialRunner, case: Case
) -> None:
    trial = TrialId("guess", case.name, MAIN, 1)
    was, found = results[case.name], runner.run(trial)
    assert (found.outcome, found.reason, found.score) == (was.outcome, was.reason, was.score)
    assert (found.ended_by, found.notes) == (was.ended_by, ())
    assert replace(found.ledger, seconds=0.0, waited=0.0) == replace(
        was.ledger, seconds=0.0, waited=0.0
    )
    for kind in (ModelCall, StepDone):
        before, now = (
            [e for e in run.trial(trial).events() if isinstance(e, kind)]
            for run in (stage.recorded, stage.replayed)
        )
        assert len(now) == len(before)
    calls = read_recording(file_of(stage.recordings, trial))
    assert calls.whole
    assert len(calls.calls) == was.ledger.model_calls


def test_nothing_of_this_machine_is_in_a_recording(
    stage: Stage, results: dict[str, TrialResult]
) -> None:
    files = list(stage.recordings.rglob("*.jsonl"))
    assert len(files) == len(results)
    for file in files:
        content = file.read_text(encoding="utf-8")
        assert str(stage.root) not in content
        assert KEY not in content
