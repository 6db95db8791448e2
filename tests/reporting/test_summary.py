from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.core.trial import Outcome, TrialId
from pytest_mlab.reporting.figures import RunFigures
from pytest_mlab.reporting.summary import FORMAT_VERSION, summary, summary_text
from pytest_mlab.store.events import TrialStarted
from pytest_mlab.store.rundir import RunDir
from tests.core.builders import a_result
from tests.reporting.runs import BELOW, SETTINGS, SUCCESS, a_run, busy_results

AGGREGATE = GatePolicy("aggregate")


def successes(found: dict[str, Any]) -> list[Any]:
    """What outcomes alone decide."""
    return [
        (s["subject"], s["success"], [(t["task"], t["success"]) for t in s["tasks"]])
        for s in found["subjects"]
    ]


def test_the_figures_are_there_in_plain_json(tmp_path: Path) -> None:
    a_run(
        tmp_path / "r", busy_results(), [TrialId("cifar10", "research", "gpt-4-turbo", 9)], SETTINGS
    )
    found = json.loads(summary_text(RunFigures.of(RunDir.open(tmp_path / "r"), AGGREGATE)))
    assert found["format_version"] == FORMAT_VERSION
    assert found["conditions"]["max_cost"] == 2.0
    assert found["run"]["identity"]["git"] == {"commit": "c0ffee", "dirty": False}
    assert found["missing"] == [
        {"trial": "cifar10-research-gpt-4-turbo-9", "reason": "there is no result"}
    ]
    assert [s["subject"] for s in found["subjects"]] == ["baseline", "research--gpt-4-turbo"]
    task = found["subjects"][1]["tasks"][0]
    assert (task["task"], task["success"]["successes"], task["success"]["planned"]) == (
        "cifar10",
        3,
        9,
    )
    assert (
        task["success"]["outcomes"]["not_run"] == task["success"]["outcomes"]["provider_error"] == 1
    )
    assert task["success"]["control_rate"] == 0.125
    assert task["improvement"]["valid_submissions"] == 7
    assert task["efficiency"]["cost_usd_per_success"] == 2.0 / 3
    assert len(task["trials"]) == 9
    assert (found["gate"]["passed"], len(found["gate"]["verdicts"])) == (False, 6)


def test_success_is_the_same_in_any_order_and_at_any_speed(tmp_path: Path) -> None:
    results = busy_results()
    slower = [
        type(r)(**{**vars(r), "ledger": r.ledger.at(r.ledger.seconds * 3)})
        for r in reversed(results)
    ]
    one = summary(RunFigures.of(a_run(tmp_path / "a", results), AGGREGATE))
    other = summary(RunFigures.of(a_run(tmp_path / "b", slower), AGGREGATE))
    assert successes(one) == successes(other)
    assert [s["improvement"] for s in one["subjects"]] == [
        s["improvement"] for s in other["subjects"]
    ]
    assert [s["efficiency"] for s in one["subjects"]] != [
        s["efficiency"] for s in other["subjects"]
    ]


def test_one_outcome_more_changes_success(tmp_path: Path) -> None:
    one = summary(
        RunFigures.of(a_run(tmp_path / "a", [a_result(1), a_result(2, SUCCESS)]), AGGREGATE)
    )
    other = summary(
        RunFigures.of(a_run(tmp_path / "b", [a_result(1), a_result(2, BELOW)]), AGGREGATE)
    )
    assert successes(one) != successes(other)


def test_unknown_is_null(tmp_path: Path) -> None:
    found = summary(
        RunFigures.of(
            a_run(tmp_path / "r", [a_result(1, Outcome.NO_SUBMISSION, cost=None)]), AGGREGATE
        )
    )
    task = found["subjects"][0]["tasks"][0]
    assert task["efficiency"]["cost_usd"] is None
    assert task["improvement"]["mean"] is None
    assert task["trials"][0]["score"] is None
    assert found["subjects"][0]["success"]["interval"] is None


def test_a_trial_that_began_and_did_not_end_says_how_far_it_came(tmp_path: Path) -> None:
    trial = TrialId("toy", "research", "m", 1)
    run = a_run(tmp_path / "r", [], [trial])
    with run.trial(trial).journal() as journal:
        journal.write(
            TrialStarted(
                t=0.0,
                trial=trial,
                pid=1,
                sandbox="local",
                budget=run.plan.settings.budget,
                task_digest="",
                data="mini",
                data_digest="",
                agent_digest="",
                machine="",
                starter="",
            )
        )
    (missing,) = RunFigures.of(run, AGGREGATE).missing
    assert missing.reason == "it was started and did not end: the trace stops before its first step"


def test_a_caller_may_know_more_than_the_disk(tmp_path: Path) -> None:
    trial = TrialId("toy", "research", "m", 1)
    run = a_run(tmp_path / "r", [], [trial])
    died = a_result(1, Outcome.INFRA_ERROR)
    figures = RunFigures.of(run, AGGREGATE, {trial: died})
    assert figures.missing == ()
    assert figures.trials == (died,)
