"""Attempts that were put aside."""

from __future__ import annotations

from pathlib import Path

from pytest_mlab.core.trial import TrialId
from pytest_mlab.reporting.earlier import Earlier
from tests.core.builders import a_result
from tests.reporting.runs import a_run


def test_ended_and_interrupted_attempts_are_counted_and_only_known_dollars(tmp_path: Path) -> None:
    result = a_result(cost=0.5)
    run = a_run(tmp_path / "run", [result], [TrialId("toy", "research", "m", 2)])
    assert Earlier.of(run) == Earlier()
    assert Earlier.of(run).text() == ""
    folder = run.trial(result.id)
    folder.restart()
    folder.journal().close()  # the second attempt was interrupted
    folder.restart()
    assert [attempt.path.name for attempt in folder.attempts()] == ["1", "2"]
    assert [attempt.result() is None for attempt in folder.attempts()] == [False, True]
    assert Earlier.of(run) == Earlier(attempts=2, trials=1, cost_usd=0.5)
    assert "2 earlier attempts of 1 trial put aside" in Earlier.of(run).text()
