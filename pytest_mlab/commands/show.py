"""``mlab show``: a trial's trace, readably."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_mlab.store.rundir import RunDir
    from pytest_mlab.store.trialdir import TrialDir

HELP = "show what happened in a trial, step by step"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="run id, run directory, or last")
    parser.add_argument(
        "trial",
        nargs="?",
        metavar="TRIAL",
        help="a trial, such as cifar10-research-gpt-4-turbo-3; without it: the run's trials",
    )
    parser.add_argument(
        "--step", type=int, metavar="N", help="this step whole, with its model calls"
    )
    parser.add_argument(
        "--log", action="store_true", help="what the agent printed and logged, and nothing else"
    )
    parser.add_argument(
        "--reports", type=Path, default=Path("reports"), metavar="DIR", help="default: %(default)s"
    )


def run(args: argparse.Namespace) -> int:
    """Print the trace, or the trials where none is named."""
    from pytest_mlab.errors import ConfigError, StoreError
    from pytest_mlab.reporting.trace import step_lines, trial_lines
    from pytest_mlab.store.runs import find_run, find_trial

    found = find_run(args.run, args.reports)
    if args.trial is None:
        if args.step is not None:
            raise ConfigError(f"--step {args.step} is a step of a trial; name one after the run")
        print("\n".join(_trials(found)))
        return 0
    trial = find_trial(args.trial, found)
    folder = found.trial(trial)
    result = folder.result()
    # A trace without a result is shown: the trial may be running, or its worker was killed.
    if result is None and folder.last_event() is None:
        raise StoreError(
            f"{trial.name} has not run: there is neither a trace nor a result in {folder.path}"
        )
    if args.log:
        lines = _log(folder)
    elif args.step is not None:
        lines = step_lines(folder.events(), args.step, found.store)
    else:
        print(f"trial {trial.name} of run {found.plan.run_id}\n{folder.path}")
        for attempt in folder.attempts():
            print(f"earlier attempt, {_ended(attempt)}: {attempt.path}")
        print()
        lines = trial_lines(result, folder.events())
    for line in lines:
        print(line)
    return 0


def _log(folder: TrialDir) -> Iterable[str]:
    from pytest_mlab.errors import StoreError
    from pytest_mlab.lib.secrets import Redactor
    from pytest_mlab.reporting.text import printable
    from pytest_mlab.store.trialdir import AGENT_LOG

    file = folder.path / AGENT_LOG
    if not file.is_file():
        raise StoreError(f"the agent printed nothing: there is no {file}")
    # While a trial runs, its log still has what the agent printed of its keys.
    text = Redactor(os.environ)(file.read_text(encoding="utf-8", errors="replace"))
    return [printable(line.replace("\t", "    ")) for line in text.split("\n")]


def _trials(run: RunDir) -> list[str]:
    """A line for each trial: its name, how it ended, its earlier attempts."""
    lines = [f"run {run.plan.run_id}, {len(run.plan.trials)} trials; {run.path}"]
    for trial in run.plan.trials:
        folder = run.trial(trial)
        earlier = [_ended(attempt) for attempt in folder.attempts()]
        more = f" (earlier attempts: {', '.join(earlier)})" if earlier else ""
        lines.append(f"{trial.name}  {_ended(folder)}{more}")
    return lines


def _ended(folder: TrialDir) -> str:
    result = folder.result()
    if result is not None:
        return result.outcome.value
    return f"no result, {how_far}" if (how_far := folder.how_far()) else "not run"
