"""From the frozen plan to pytest items: which files are collected, how items are named, marked and
selected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_mlab.core.plan import Plan
from pytest_mlab.core.trial import TrialId
from pytest_mlab.planning.options import MlabOptions
from pytest_mlab.plugin.brief import Brief
from pytest_mlab.plugin.timeouts import marks as timeout_marks

FIXTURE = "mlab_trial"
IDLE = "mlab-idle"

OPTIONS = pytest.StashKey[MlabOptions]()
RUN = pytest.StashKey["Run"]()

MODALITIES = ("tabular", "image", "text", "graph", "speed", "timeseries", "audio")
_MARKERS = (
    "mlab(task, agent, model, repeat): a trial of an agent on a task",
    "mlab_gpu: the task needs a GPU",
    "mlab_slow: one trial of the task takes long even for a good agent",
    *(f"{modality}: tasks of this modality (pytest-mlab)" for modality in MODALITIES),
)


@dataclass(frozen=True)
class Run:
    """A run as the process that collects sees it. ``suite_file`` is a built-in test file that
    stands in for paths; ``passed_over`` says why a better sandbox was not taken, ``left_out`` why
    folders of the suite are no tasks."""

    plan: Plan
    brief: Brief
    suite: str
    suite_file: Path | None = None
    passed_over: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)


def register_markers(config: pytest.Config, modalities: Sequence[str] = ()) -> None:
    """Make the markers known, so that ``--strict-markers`` accepts them."""
    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    register_modalities(config, ())


def register_modalities(config: pytest.Config, modalities: Sequence[str]) -> None:
    """Make the modalities of a plan known that are not everybody's."""
    for modality in sorted(set(modalities) - set(MODALITIES)):
        config.addinivalue_line("markers", f"{modality}: tasks of this modality (pytest-mlab)")


def paths_given(config: pytest.Config) -> bool:
    """True when the command line names files, folders or node ids."""
    return config.args_source is pytest.Config.ArgsSource.ARGS


def point_at_suite(config: pytest.Config, suite: str) -> Path | None:
    """Without paths: collect the suite's test file from the project, else return the built-in one.

    A built-in file is outside the project, where node ids would depend on the installation:
    :func:`add_suite` then adds it under a stable id, and nothing else is collected."""
    from pytest_mlab.lib import locate

    if paths_given(config):
        return None
    own = config.rootpath / "task_suites" / f"test_{suite}.py"
    if own.is_file():
        config.args = [str(own)]
        return None
    config.args = []
    builtin = locate.builtin("task_suites") / f"test_{suite}.py"
    return builtin if builtin.is_file() else Path(__file__).parent / "test_any_suite.py"


def add_suite(collector: pytest.Collector, report: pytest.CollectReport, run: Run | None) -> None:
    """Add the built-in test file to what the session collects."""
    if run is None or run.suite_file is None or not isinstance(collector, pytest.Session):
        return
    nodeid = f"task_suites/test_{run.suite}.py"
    report.result.append(pytest.Module.from_parent(collector, path=run.suite_file, nodeid=nodeid))


def generate(metafunc: pytest.Metafunc, run: Run | None) -> None:
    """Parametrize a test that asks for ``mlab_trial`` by the plan's trials, in the plan's order."""
    if run is None or FIXTURE not in metafunc.fixturenames:
        return
    params = [
        pytest.param(trial, id=trial.name, marks=_marks(metafunc.config, trial, run))
        for trial in run.plan.trials
    ]
    metafunc.parametrize(FIXTURE, params, indirect=True, scope="function")


def _marks(config: pytest.Config, trial: TrialId, run: Run) -> list[pytest.MarkDecorator]:
    task = run.brief.tasks[trial.task]
    found = [
        pytest.mark.mlab(
            task=trial.task, agent=trial.agent, model=trial.model, repeat=trial.repeat
        ),
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


def uses_mlab(item: pytest.Item) -> bool:
    """True for a test that asks for ``mlab_trial``, planned or not."""
    return FIXTURE in getattr(item, "fixturenames", ())


def select(config: pytest.Config, items: list[pytest.Item], run: Run | None) -> None:
    """Deselect what is not meant: trials when no run is asked for, ordinary tests when one is and
    no path says so."""
    if run is None:
        keep: Callable[[pytest.Item], bool] = lambda item: not uses_mlab(item)  # noqa: E731
    elif paths_given(config):
        return
    else:
        keep = uses_mlab
    dropped = [item for item in items if not keep(item)]
    if dropped:
        items[:] = [item for item in items if keep(item)]
        config.hook.pytest_deselected(items=dropped)


def empty_selection(config: pytest.Config, plan: Plan) -> str:
    """Why no trial is left, and the names that are most like what was asked for."""
    from pytest_mlab.lib.suggest import nearest_first

    keyword, mark = config.getoption("keyword", ""), config.getoption("markexpr", "")
    asked = (
        " ".join(filter(None, (keyword and f"-k {keyword!r}", mark and f"-m {mark!r}")))
        or "these paths"
    )
    names = [trial.name for trial in plan.trials]
    words = [
        word
        for word in keyword.replace("(", " ").replace(")", " ").split()
        if word not in ("and", "or", "not")
    ]
    tasks = sorted({trial.task for trial in plan.trials})
    nearest = nearest_first(words[0], tasks) if words else tasks
    return (
        f"no trial is selected by {asked}; tasks of the plan: {', '.join(nearest)}; trial ids look"
        f" like {names[0]}; name tests that use the mlab_trial fixture, or no path at all for the"
        " whole suite"
    )


def header(run: Run) -> list[str]:
    """For pytest's header: what is going to run, and where it goes."""
    from pytest_mlab.lib.durations import format_duration

    plan, settings = run.plan, run.plan.settings
    subjects = dict.fromkeys(
        trial.agent + (f" with {trial.model}" if trial.model else "") for trial in plan.trials
    )
    tasks = len({trial.task for trial in plan.trials})
    repeats = max((trial.repeat for trial in plan.trials), default=0)
    limits = f"{settings.budget.max_steps} steps, {format_duration(settings.budget.max_seconds)}"
    from pytest_mlab.reporting.text import about_limits, about_recording, wrapped

    why = f"mlab: sandbox {settings.sandbox}, since {run.passed_over}" if run.passed_over else ""
    bounds = about_limits(settings)
    set_ones = "; ".join(f"{agent.name}: {agent.said}" for agent in plan.agents if agent.said)
    others = "; ".join(f"{name} ({reason})" for name, reason in run.left_out.items())
    return [
        (
            f"mlab: {', '.join(subjects)}; {tasks} tasks x {repeats} repeats = {len(plan.trials)}"
            " trials"
        ),
        (
            f"mlab: {limits} a trial; data {settings.data}; sandbox {settings.sandbox}; run"
            f" {plan.run_id}"
        ),
        *wrapped(f"mlab: settings of {set_ones}" if set_ones else "", 80, rest="  "),
        *wrapped(
            f"mlab: {about_recording(settings)}" if settings.record or settings.replay else "",
            80,
            rest="  ",
        ),
        *wrapped(f"mlab: {bounds}" if bounds else "", 80, rest="  "),
        *wrapped(why, 80, rest="  "),
        *wrapped(f"mlab: no tasks, and left out: {others}" if others else "", 80, rest="  "),
    ]


class IdleItem(pytest.Item):
    """The end of a worker's list: it runs nothing and is never reported."""

    def runtest(self) -> None:
        """Never called: see the plugin's ``pytest_runtest_protocol``."""


def status(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """For ``pytest_report_teststatus``: the category of a trial that did not reach its target and
    is no failure."""
    outcome: str = getattr(report, "mlab_outcome", "")
    if not outcome or not hasattr(report, "wasxfail"):
        return None
    word = "below" if outcome == "below_threshold" else outcome.replace("_", " ")
    return word, "b", (word.upper(), {"yellow": True})
