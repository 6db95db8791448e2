"""The hooks of pytest-mlab: functions that a plugin or a conftest.py may define.

The hooks of a trial are called in the process that runs it (a worker under pytest-xdist), those of
a run once, in the process that the user started. All arguments are optional, as in every pytest
hook. A hook that raises is an error of the test or of the session and names the plugin; the trial
and its result are kept. Every conftest.py that pytest has loaded counts, for all trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_mlab.core.figure import Figure
    from pytest_mlab.core.trial import TrialId
    from pytest_mlab.plugin.trial import Trial
    from pytest_mlab.store.events import StepDone, TrialStarted


@pytest.hookspec
def pytest_mlab_trial_started(item: pytest.Item, trial_id: TrialId, started: TrialStarted) -> None:
    """A trial's process has made the workspace; the agent is about to run.

    ``started`` is the trace's first event: budget, sandbox, digests. Not called for a trial that is
    skipped, or whose result is on disk already. The trial's processes go on meanwhile, but their
    watcher waits for the hook: keep it short.
    """


@pytest.hookspec
def pytest_mlab_step_done(item: pytest.Item, trial_id: TrialId, step: StepDone) -> None:
    """The agent has done a step, and the environment has recorded it.

    ``step`` is the trace's event: ``index`` (from 1), ``action``, ``args``, ``observation``,
    ``ok``, ``seconds``, ``ledger`` (what the trial has used so far) and the workspace's changes.
    Called once a step, in order, while the agent goes on; keep it short.
    """


@pytest.hookspec
def pytest_mlab_trial_finished(item: pytest.Item, trial: Trial) -> None:
    """A trial has ended and its result is on disk; the test has not judged it yet.

    ``trial`` is the object that the fixture ``mlab_trial`` gives to tests. Called once a trial,
    also for one that ended in an error; not for a result of an earlier session.
    """


@pytest.hookspec
def pytest_mlab_run_summarised(
    config: pytest.Config, summary: Mapping[str, Any], run_dir: Path
) -> None:
    """All trials have ended, and the reports are written.

    ``summary`` is what summary.json in ``run_dir`` says (format 1). Also called for a run that was
    interrupted; what did not run stands in ``summary["missing"]``.
    """


@pytest.hookspec
def pytest_mlab_terminal_lines(
    config: pytest.Config, summary: Mapping[str, Any], run_dir: Path
) -> Sequence[str]:
    """Lines to show in the terminal's section ``mlab``, after the table and the gate's decision.

    The arguments are those of :func:`pytest_mlab_run_summarised`.
    """
    raise NotImplementedError


@pytest.hookspec
def pytest_mlab_figures(config: pytest.Config) -> Sequence[Figure]:
    """Figures of one's own, which all reports show beside the built-in ones: terminal, report.md,
    summary.json and JUnit.

    Called at the start of a run, for plugins and the conftest.py files that pytest loads at its
    start. Two figures of one name are a usage error.
    """
    raise NotImplementedError
