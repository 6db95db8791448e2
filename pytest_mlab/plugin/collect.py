"""From the frozen plan to pytest items: which files are collected, how items are named, marked and
selected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from pytest_mlab.core.trial import TrialId
from pytest_mlab.plugin.refusals import refuse_repeats
from pytest_mlab.plugin.stash import Run
from pytest_mlab.plugin.timeouts import marks as timeout_marks

FIXTURE = "mlab_trial"

MODALITIES = ("tabular", "image", "text", "graph", "speed", "timeseries", "audio")
_MARKERS = (
    "mlab(task, agent, model, repeat): a trial of an agent on a task",
    "mlab_gpu: the task needs a GPU",
    "mlab_slow: one trial of the task takes long even for a good agent",
    *(f"{modality}: tasks of this modality (pytest-mlab)" for modality in MODALITIES),
)


def register_markers(config: pytest.Config) -> None:
    """Make the markers known, so that ``--strict-markers`` accepts them."""
    # On workers as well, since each of them collects with its own config.
    for line in _MARKERS:
        config.addinivalue_line("markers", line)


def register_modalities(config: pytest.Config, modalities: Sequence[str]) -> None:
    """Make the modalities of a plan's tasks known that are not among :data:`MODALITIES`."""
    # A suite may name any modality, and getattr(pytest.mark, ...) fails under --strict-markers for
    # one that is not registered.
    for modality in sorted(set(modalities) - set(MODALITIES)):
        config.addinivalue_line("markers", f"{modality}: tasks of this modality (pytest-mlab)")


def add_suite(collector: pytest.Collector, report: pytest.CollectReport, run: Run | None) -> None:
    """Add the built-in test file to what the session collects."""
    if run is None or not run.brief.paths.suite_file or not isinstance(collector, pytest.Session):
        return
    paths = run.brief.paths
    file = Path(paths.suite_file)
    report.result.append(pytest.Module.from_parent(collector, path=file, nodeid=paths.suite_id))


def generate(metafunc: pytest.Metafunc, run: Run | None) -> None:
    """Parametrize a test that asks for ``mlab_trial`` by the plan's trials, in the plan's order."""
    if run is None or FIXTURE not in metafunc.fixturenames:
        return
    refuse_repeats(metafunc)
    params = [
        pytest.param(trial, id=trial.name, marks=_marks(metafunc.config, trial, run))
        for trial in run.plan.trials
    ]
    # The scope is fixed: with a wider one, from a fixture of the same name in a conftest.py, pytest
    # sorts items by parameter, and the plan's order is lost.
    metafunc.parametrize(FIXTURE, params, indirect=True, scope="function")


def _marks(config: pytest.Config, trial: TrialId, run: Run) -> list[pytest.MarkDecorator]:
    task = run.brief.tasks[trial.task]
    found = [
        pytest.mark.mlab(
            task=trial.task, agent=trial.agent, model=trial.model, repeat=trial.repeat
        ),
        # Markers and not only names, so that -m 'image and not mlab_slow' selects tasks.
        getattr(pytest.mark, task.modality),
        *timeout_marks(config, task.backstop),
    ]
    if task.gpus:
        found.append(pytest.mark.mlab_gpu)
    if task.slow:
        found.append(pytest.mark.mlab_slow)
    return found


def trial_of(item: pytest.Item) -> TrialId | None:
    """The trial that an item runs, None for an ordinary test."""
    callspec = getattr(item, "callspec", None)
    trial = callspec.params.get(FIXTURE) if callspec is not None else None
    return trial if isinstance(trial, TrialId) else None


def trials_of(items: Iterable[pytest.Item]) -> dict[str, TrialId]:
    """The trials among the items, by node id."""
    found = {item.nodeid: trial_of(item) for item in items}
    return {nodeid: trial for nodeid, trial in found.items() if trial is not None}


def uses_mlab(item: pytest.Item) -> bool:
    """True for a test that asks for ``mlab_trial``, planned or not."""
    return FIXTURE in getattr(item, "fixturenames", ())


def select(config: pytest.Config, items: list[pytest.Item], run: Run | None) -> None:
    """Deselect trials when no run is asked for. In a run, deselect ordinary tests where paths name
    nothing but the suite, and the trials of the suite that no path names."""
    # Deselected and not skipped: a bare ``pytest`` in a project with suites spends nothing and
    # shows no skips.
    dropped = [item for item in items if _is_left_out(item, run)]
    if dropped:
        left = set(map(id, dropped))
        items[:] = [item for item in items if id(item) not in left]
        # pytest counts deselected items from this call alone.
        config.hook.pytest_deselected(items=dropped)


def _is_left_out(item: pytest.Item, run: Run | None) -> bool:
    if run is None:
        return uses_mlab(item)
    trial = trial_of(item)
    if trial is None:
        return run.brief.paths.only_suite and not uses_mlab(item)
    return run.brief.paths.leaves_out(item.nodeid, trial.task)


def status(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """For ``pytest_report_teststatus``: the category of a trial below its target, where that is not
    a failure."""
    outcome: str = getattr(report, "mlab_outcome", "")
    if not outcome or not hasattr(report, "wasxfail"):
        return None
    word = "below" if outcome == "below_threshold" else outcome.replace("_", " ")
    return word, "b", (word.upper(), {"yellow": True})
