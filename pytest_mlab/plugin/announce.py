"""What a session says of a run before its first trial: pytest's header, and downloads."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.lib.durations import format_duration
from pytest_mlab.planning.planned import Planned
from pytest_mlab.plugin.stash import Run
from pytest_mlab.reporting.text import about_limits, about_recording, wrapped
from pytest_mlab.store.rundir import RunDir

WIDTH = 80


def header(run: Run) -> list[str]:
    """The lines of pytest's header: what is going to run, and under which conditions."""
    plan, settings = run.plan, run.plan.settings
    subjects = dict.fromkeys(
        trial.agent + (f" with {trial.model}" if trial.model else "") for trial in plan.trials
    )
    tasks = len({trial.task for trial in plan.trials})
    repeats = max((trial.repeat for trial in plan.trials), default=0)
    limits = f"{settings.budget.max_steps} steps, {format_duration(settings.budget.max_seconds)}"
    lines = [
        f"mlab: {', '.join(subjects)}; {tasks} tasks x {repeats} repeats = {len(plan.trials)}"
        " trials",
        f"mlab: {limits} a trial; data {settings.data}; sandbox {settings.sandbox}; run"
        f" {plan.run_id}",
    ]
    if given := "; ".join(f"{agent.name}: {agent.said}" for agent in plan.agents if agent.said):
        lines += _wrapped(f"mlab: settings of {given}")
    if settings.record or settings.replay:
        lines += _wrapped(f"mlab: {about_recording(settings)}")
    if bounds := about_limits(settings):
        lines += _wrapped(f"mlab: {bounds}")
    if run.passed_over:
        lines += _wrapped(f"mlab: sandbox {settings.sandbox}, since {run.passed_over}")
    if run.left_out:
        folders = "; ".join(f"{name} ({reason})" for name, reason in run.left_out.items())
        lines += _wrapped(f"mlab: no tasks, and left out: {folders}")
    return lines


class Downloads:
    """Announces what trials download, with size and licence, before the first one starts."""

    def __init__(self, config: pytest.Config, planned: Planned) -> None:
        self._config = config
        self._planned = planned

    def begin(self, run: RunDir) -> None:
        """Write the lines for the tasks of ``run`` whose trials are not blocked."""
        from pytest_mlab.data.prepare import downloads

        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return
        settings, blocked = run.plan.settings, self._planned.blocked
        tasks = dict.fromkeys(t.task for t in run.plan.trials if t.name not in blocked)
        for name in tasks:
            task = self._planned.tasks[name]
            sources = "; ".join(downloads(task, settings.data, Path(settings.cache_dir)))
            if not sources:
                continue
            reporter.ensure_newline()
            for line in _wrapped(f"mlab: {name} downloads, unless a cache has it: {sources}"):
                reporter.write_line(line)


def _wrapped(text: str) -> list[str]:
    return wrapped(text, WIDTH, rest="  ")
