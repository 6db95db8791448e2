"""``mlab rescore``: evaluate stored workspaces again, of the end or of any step."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlab.errors import ConfigError

if TYPE_CHECKING:
    from pytest_mlab.core.trial import TrialId
    from pytest_mlab.store.rundir import RunDir
    from pytest_mlab.trial.rescoring import Rescored

HELP = "evaluate a run's stored workspaces again: the final ones, or those of any step"

_REASON = 42


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="run id, run directory, or last")
    parser.add_argument(
        "trials", nargs="*", metavar="TRIAL", help="names of trials (default: all that have begun)"
    )
    parser.add_argument(
        "--step",
        default="final",
        metavar="N",
        help="a step's number (0: the fresh workspace), 'all', or 'final' (default)",
    )
    parser.add_argument(
        "--reports", type=Path, default=Path("reports"), metavar="DIR", help="default: %(default)s"
    )


def run(args: argparse.Namespace) -> int:
    """Evaluate and print a line each; 0. Raises ConfigError, StoreError, DataUnavailable,
    SuiteError."""
    from pytest_mlab.store.rundir import RunDir
    from pytest_mlab.store.runs import find_run
    from pytest_mlab.trial.job import Job
    from pytest_mlab.trial.rescoring import rescore

    step, every = _step(args.step)
    found = find_run(args.run, args.reports)
    # Absolute, since sandboxes mount its folders.
    opened = RunDir(found.path.absolute(), found.plan)
    for trial in _chosen(opened, args.trials):
        job = Job(opened, trial)
        print(trial.name)
        if job.task.digest != job.planned_task.digest:
            print(
                f"the task {trial.task} has changed since the run; its evaluator is today's",
                file=sys.stderr,
            )
        print(f"  {'step':>5}  {'score':>12}  {'improvement':>11}  verdict")
        for row in rescore(job, step, all_steps=every):
            print(_line(row), flush=True)
    return 0


def _step(text: str) -> tuple[int | None, bool]:
    """The step that is meant (None: the final workspace), and whether all of them are."""
    if text in ("final", "all"):
        return None, text == "all"
    if not text.isdecimal():
        raise ConfigError(f"--step {text}: a step's number, 'all' or 'final' is needed")
    return int(text), False


def _chosen(opened: RunDir, names: list[str]) -> list[TrialId]:
    from pytest_mlab.lib.suggest import unknown

    by_name = {trial.name: trial for trial in opened.plan.trials}
    for name in names:
        if name not in by_name:
            raise ConfigError(f"{opened.path}: {unknown('trial', name, by_name)}")
    if names:
        return [by_name[name] for name in names]
    begun = [trial for trial in by_name.values() if _began(opened, trial)]
    if not begun:
        raise ConfigError(
            f"{opened.path}: no trial of this run has begun; there is nothing to evaluate"
        )
    return begun


def _began(opened: RunDir, trial: TrialId) -> bool:
    from pytest_mlab.store.events import TrialStarted

    # Without its first event there is no snapshot of the workspace to evaluate.
    return isinstance(next(opened.trial(trial).events(), None), TrialStarted)


def _line(row: Rescored) -> str:
    step = "final" if row.step is None else str(row.step)
    score = "-" if row.score is None else f"{row.score:.6g}"
    gain = "-" if row.improvement is None else f"{row.improvement:+.1%}"
    word = row.outcome.value
    if row.score is None:
        reason = row.reason if len(row.reason) <= _REASON else row.reason[: _REASON - 3] + "..."
        word = f"{word}: {reason}"
    return f"  {step:>5}  {score:>12}  {gain:>11}  {word}"
