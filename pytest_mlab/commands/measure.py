"""``mlab measure``: run baselines or references repeatedly and record what they scored."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlab.core.task import Baseline, Task
from pytest_mlab.errors import ConfigError, SuiteError

if TYPE_CHECKING:
    from pytest_mlab.trial.scripted import Script

HELP = "measure what a task's baseline or reference scores, and record it in task.toml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help="names of tasks (default: all of the suite)"
    )
    parser.add_argument("--suite", default="mlagentbench", help="the suite (default: %(default)s)")
    parser.add_argument(
        "--what", choices=("baseline", "reference"), default="baseline", help="default: %(default)s"
    )
    parser.add_argument(
        "--runs", type=int, default=5, metavar="N", help="runs of each task (default: %(default)s)"
    )
    parser.add_argument(
        "--data", default="mini", metavar="VARIANT", help="data variant (default: %(default)s)"
    )
    parser.add_argument(
        "--write", action="store_true", help="record the scores in the tasks' task.toml"
    )
    parser.add_argument(
        "--rootdir", type=Path, default=Path(), help="where task_suites/ is looked for first"
    )
    parser.add_argument(
        "--cache-dir", type=Path, metavar="DIR", help="where prepared data are kept"
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print a line a task, and write with ``--write``; 0, or an MlabError."""
    if args.runs < 1:
        raise ConfigError(f"--runs {args.runs}: at least 1 is needed")
    chosen = _chosen(args)
    # Before the first run, since runs may take hours.
    for task in chosen if args.write else ():
        _refuse_foreign(task)
    for task in chosen:
        result = _better(task, [_measure(task, args, what) for what in _whats(task, args.what)])
        if args.write:
            _write(task.folder / "task.toml", f"data.{args.data}.{args.what}", result)
    return 0


def _chosen(args: argparse.Namespace) -> tuple[Task, ...]:
    from pytest_mlab.suites.catalog import Catalog

    suite = Catalog(args.rootdir, args.cache_dir).suite(args.suite)
    return tuple(suite.task(name) for name in args.tasks or suite.names)


def _refuse_foreign(task: Task) -> None:
    """Raise ConfigError for a task whose task.toml is made from a folder in MLAgentBench's
    format."""
    from pytest_mlab.suites.foreign.reader import origin_of

    if origin := origin_of(task):
        raise ConfigError(
            f"--write: {task.name} is in MLAgentBench's format; leave --write out and write the"
            f" scores into {origin / 'mlab.toml'} as baseline = [...]"
        )


def _whats(task: Task, what: Script) -> tuple[Script, ...]:
    """What to run: a baseline is the better of the starter and the task's trivial predictor."""
    return (
        ("baseline", "trivial")
        if what == "baseline" and (task.folder / "trivial").is_dir()
        else (what,)
    )


def _better(task: Task, results: list[Baseline]) -> Baseline:
    return max(results, key=lambda result: task.sign * result.mean)


def _measure(task: Task, args: argparse.Namespace, what: Script) -> Baseline:
    """Run and score it as often as asked, and print a line."""
    from pytest_mlab.data.cache import default_cache_dir
    from pytest_mlab.data.prepare import is_prepared, prepare
    from pytest_mlab.lib.locate import writable_cache
    from pytest_mlab.suites.measured import summarise
    from pytest_mlab.validation.measuring import measure_once, where_measured

    cache = args.cache_dir or default_cache_dir()
    if (ready := is_prepared(task, args.data, cache)) is None:
        writable_cache(cache.absolute())
    prepared = ready or prepare(task, args.data, cache)
    scores = []
    for number in range(1, args.runs + 1):
        score = measure_once(task, prepared, what)
        print(
            f"{task.name}: {what}, run {number} of {args.runs}: {score:.6g}",
            file=sys.stderr,
            flush=True,
        )
        scores.append(score)
    result = summarise(scores, measured=_name(task, what), machine=where_measured(task))
    print(_line(task, what, result), flush=True)
    return result


def _name(task: Task, what: Script) -> str:
    """What was run, as task.toml calls it."""
    from pytest_mlab.suites.scripts import trivial_name

    if what == "trivial":
        return trivial_name(task)
    if what == "reference":
        return what
    return "filled-starter" if (task.folder / "baseline").is_dir() else "starter"


def _line(task: Task, what: Script, result: Baseline) -> str:
    better = "higher" if task.sign > 0 else "lower"
    spread = f"mean {result.mean:.6g}, sd {result.std:.3g}, n {result.n}"
    return f"{task.name}: {what}: {task.metric.name} {spread} ({better} is better)"


def _write(file: Path, table: str, result: Baseline) -> None:
    """Replace one table of a task.toml. Raises SuiteError, with the file as it was, when the task
    would not load."""
    from pytest_mlab.suites.loader import load_task
    from pytest_mlab.suites.measured import with_measured

    before = file.read_text(encoding="utf-8")
    _replace(file, with_measured(before, table, result))
    try:
        load_task(file.parent, file.parent.parent.name)
    except SuiteError:
        # A task.toml that does not load would take the whole suite out of use.
        _replace(file, before)
        raise


def _replace(file: Path, text: str) -> None:
    temporary = file.with_name(f".{file.name}.part")
    temporary.write_text(text, encoding="utf-8")
    # In one step: the file is source code, and an interrupt must not cut it short.
    os.replace(temporary, file)
