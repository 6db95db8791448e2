"""The process that the user started: plan the run, and register what controls it there.

That is pytest itself without xdist, and xdist's controller with it."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_mlab.core.agent_api import Terminal
from pytest_mlab.core.figure import Figure
from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.planning import make as planning
from pytest_mlab.planning import requirements
from pytest_mlab.planning.gate import gate_of
from pytest_mlab.planning.options import MlabOptions
from pytest_mlab.planning.planned import Planned
from pytest_mlab.plugin.announce import Downloads
from pytest_mlab.plugin.brief import Brief, TaskBrief
from pytest_mlab.plugin.distribution import Distribution
from pytest_mlab.plugin.ending import Ending
from pytest_mlab.plugin.failures import call, usage_errors
from pytest_mlab.plugin.heartbeat import Heartbeat, terminal_writer
from pytest_mlab.plugin.paths import Paths, understand
from pytest_mlab.plugin.refusals import refuse_bytes, refuse_modes
from pytest_mlab.plugin.roles import is_distributed
from pytest_mlab.plugin.selection import CollectOnly, Selection
from pytest_mlab.plugin.terminal import find_terminal
from pytest_mlab.plugin.trial import nearby
from pytest_mlab.plugin.unfinished import Unfinished
from pytest_mlab.reporting.figure_table import entries
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.store.shared import Shared
from pytest_mlab.trial.time_limits import trial_seconds


def control(session: pytest.Session, options: MlabOptions) -> tuple[Planned, Brief]:
    """Plan the run and, unless the session only collects, freeze it in its directory.

    Raises UsageError for what a user can fix."""
    config = session.config
    collect_only = bool(config.option.collectonly)
    refuse_modes(config)
    given = (options.run_dir, options.cache_dir, options.record, options.replay)
    refuse_bytes([config.rootpath, Path.cwd(), *filter(None, given)])
    with usage_errors():
        # A plain --collect-only stays fast and asks for no key; --mlab-plan is there to show what
        # is missing.
        planned = planning.make_plan(
            options, config.rootpath, probe=options.plan or not collect_only
        )
        policy = gate_of(options, planned, config.invocation_params.args)
        paths = understand(config, options.suite)
    if collect_only:
        collecting = CollectOnly(planned)
        config.pluginmanager.register(collecting, "mlab-selection")
        if options.plan:
            from pytest_mlab.plugin.plan_only import PlanOnly

            config.pluginmanager.register(PlanOnly(collecting), "mlab-plan")
        return planned, _brief(planned, policy, paths, None)
    # Also before the run directory: a run that asks a person is refused without a terminal.
    brief = _brief(planned, policy, paths, find_terminal(config, planned.plan))
    with usage_errors():
        # Before the run directory is made: a usage error leaves none behind.
        figures = _own_figures(config)
        run = planning.freeze(planned, options, config.rootpath)
        if planned.resumed:
            requirements.sweep(run.plan)  # of a session that was killed
            Shared(run.path).forgive()
    _register(session, options, policy, planned, run, brief, figures)
    _catch_terminate(config)
    return planned, brief


def _register(
    session: pytest.Session,
    options: MlabOptions,
    policy: GatePolicy,
    planned: Planned,
    run: RunDir,
    brief: Brief,
    figures: Sequence[Figure],
) -> None:
    config = session.config
    resume = f"pytest --mlab-resume={nearby(planned.path)}"
    begin = [Downloads(config, planned).begin]
    plugins: dict[str, object] = {}
    if (heartbeat := _heartbeat(config, options, brief)) is not None:
        # Last: from here on a thread writes to the terminal.
        begin.append(heartbeat.start)
        plugins["mlab-heartbeat"] = heartbeat
    selection = Selection(session, planned, run, brief, begin)
    unfinished = Unfinished(
        selection, planned.blocked, resume=resume, with_properties=options.junit_properties == "all"
    )
    ending = Ending(
        session, options, selection, unfinished, policy=policy, resume=resume, figures=figures
    )
    plugins |= {"mlab-selection": selection, "mlab-unfinished": unfinished, "mlab-ending": ending}
    if is_distributed(config):
        plugins["mlab-distribution"] = Distribution(brief, selection, unfinished, ending)
    for name, plugin in plugins.items():
        config.pluginmanager.register(plugin, name)


def _own_figures(config: pytest.Config) -> list[Figure]:
    """The figures that plugins add. Raises HookFailed, and ConfigError for a name that is taken."""
    found = call(config.hook.pytest_mlab_figures, config=config)
    figures = [figure for several in found for figure in several]
    entries(figures)
    return figures


def _brief(planned: Planned, policy: GatePolicy, paths: Paths, terminal: Terminal | None) -> Brief:
    budget = planned.plan.settings.budget
    tasks = {
        name: TaskBrief(
            modality=task.modality,
            slow=task.slow,
            gpus=task.resources.gpus,
            backstop=trial_seconds(budget.with_override(task.budget), timed=task.timed),
        )
        for name, task in planned.tasks.items()
    }
    return Brief(planned.path, tasks, planned.blocked, policy.mode, paths, terminal)


def _heartbeat(config: pytest.Config, options: MlabOptions, brief: Brief) -> Heartbeat | None:
    """None with ``-qq``, without a terminal reporter, and where a person is asked: there it would
    write over what they read and type."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.get_verbosity() < -1 or brief.terminal is not None:
        return None
    write = terminal_writer(reporter, shared=not is_distributed(config))
    return Heartbeat(options.heartbeat, write)


def _catch_terminate(config: pytest.Config) -> None:
    """SIGTERM (a cancelled CI job) ends the session like Ctrl-C, with all reports."""
    try:
        before = signal.signal(signal.SIGTERM, _interrupt)
    except ValueError:
        return  # not the main thread: the code that runs pytest there handles its signals

    def restore() -> None:
        # A handler that was set since is not this plugin's to replace.
        if signal.getsignal(signal.SIGTERM) is _interrupt:
            signal.signal(signal.SIGTERM, before)

    config.add_cleanup(restore)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt(f"signal {signal.Signals(number).name}")
