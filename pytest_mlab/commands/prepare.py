"""``mlab prepare``: get the data of tasks ready before a run needs them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_mlab.commands import _consent as consent
from pytest_mlab.core.task import Task
from pytest_mlab.errors import MlabError
from pytest_mlab.lib.locate import DEFAULT_SUITE

if TYPE_CHECKING:
    from pytest_mlab.suites.suite import Suite

HELP = "prepare the data of tasks: fetch, check, convert, keep in the cache"


@dataclass(frozen=True)
class Report:
    """What became of one task. ``bytes`` counts public files and answers; ``fix`` is the command
    that may help."""

    task: str
    variant: str
    status: Literal["prepared", "ready", "failed"]
    bytes: int = 0
    seconds: float = 0.0
    digest: str = ""
    path: str = ""
    error: str = ""
    fix: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help="names of tasks (default: all of the suite)"
    )
    parser.add_argument(
        "--data",
        default="mini",
        choices=("mini", "full"),
        help="data variant (default: %(default)s)",
    )
    parser.add_argument("--suite", default=DEFAULT_SUITE, help="the suite (default: %(default)s)")
    parser.add_argument(
        "--rootdir", type=Path, default=Path(), help="where task_suites/ is looked for first"
    )
    parser.add_argument(
        "--cache-dir", type=Path, metavar="DIR", help="where prepared data are kept"
    )
    consent.add_arguments(parser)
    parser.add_argument(
        "--force", action="store_true", help="prepare again what is prepared already"
    )
    parser.add_argument(
        "--json", action="store_true", help="write one JSON list instead of lines; no progress"
    )


def run(args: argparse.Namespace) -> int:
    """Prepare one task after the other; 1 when any of them failed. Raises ConfigError for unknown
    names."""
    reports = []
    for report in _reports(args):
        reports.append(report)
        if not args.json:
            _say(report)
    if args.json:
        sys.stdout.write(json.dumps([asdict(report) for report in reports], indent=1) + "\n")
    return 1 if any(report.status == "failed" for report in reports) else 0


def _reports(args: argparse.Namespace) -> Iterator[Report]:
    from pytest_mlab.data.cache import default_cache_dir
    from pytest_mlab.errors import ConfigError
    from pytest_mlab.lib.locate import writable_cache
    from pytest_mlab.lib.suggest import unknown
    from pytest_mlab.suites.catalog import Catalog

    suite = Catalog(args.rootdir, args.cache_dir).suite(args.suite)
    # All names first: a wrong one must not be found after an hour of downloads.
    for name in args.tasks:
        if name not in suite.names:
            raise ConfigError(f"{unknown('task', name, suite.names)} (suite {args.suite})")
    names = list(dict.fromkeys(args.tasks or suite.names))
    cache = args.cache_dir or default_cache_dir()
    # Also first: a cache that cannot be written is no task's fault. Data that are ready need none.
    if args.force or not all(_is_ready(name, suite, args.data, cache) for name in names):
        writable_cache(cache.absolute())
    for name in names:
        yield _report(name, suite, args)


def _is_ready(name: str, suite: Suite, variant: str, cache: Path) -> bool:
    from pytest_mlab.data.prepare import is_prepared

    try:
        return is_prepared(suite.task(name), variant, cache) is not None
    except MlabError:
        return True  # which its own report says


def _report(name: str, suite: Suite, args: argparse.Namespace) -> Report:
    try:
        return _prepare(suite.task(name), args)
    # One task that cannot be prepared does not keep the others from it.
    except MlabError as error:
        return Report(name, args.data, "failed", error=str(error), fix=getattr(error, "fix", ""))


def _prepare(task: Task, args: argparse.Namespace) -> Report:
    from pytest_mlab.data.cache import default_cache_dir
    from pytest_mlab.data.prepare import is_prepared, prepare
    from pytest_mlab.lib.digests import walk

    cache = args.cache_dir or default_cache_dir()
    begun = time.perf_counter()
    ready = None if args.force else is_prepared(task, args.data, cache)
    data = ready or prepare(
        task,
        args.data,
        cache,
        consent=consent.given(task, args),
        progress=not args.json,
        force=args.force,
    )
    seconds = round(time.perf_counter() - begun, 3)
    size = sum(
        entry.stat().st_size for side in (data.public, data.answers) for _, entry in walk(side)
    )
    status: Literal["ready", "prepared"] = "ready" if ready else "prepared"
    return Report(task.name, args.data, status, size, seconds, data.digest, str(data.public.parent))


def _say(report: Report) -> None:
    what = f"{report.task} ({report.variant})"
    if report.status == "failed":
        sys.stdout.write(f"{what}: failed: {report.error}\n")
    else:
        how = f"prepared in {report.seconds:.1f} s" if report.status == "prepared" else "ready"
        size = f"{report.bytes / 1e6:.1f} MB"
        sys.stdout.write(f"{what}: {how}, {size}, digest {report.digest[:12]}, {report.path}\n")
    sys.stdout.flush()
