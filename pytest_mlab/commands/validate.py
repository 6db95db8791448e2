"""``mlab validate``: prove tasks sound before anyone spends a token on them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlab.commands import _consent as consent
from pytest_mlab.core.sandbox_api import SandboxOptions
from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.locate import DEFAULT_SUITE

if TYPE_CHECKING:
    from pytest_mlab.validation.bench import LeakLimits, Settings, Subject
    from pytest_mlab.validation.run import Report, Result

HELP = "prove tasks sound: no leak, a deterministic evaluator, a real baseline"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    what = f"suites, tasks, SUITE/TASK, or folders of them (default: {DEFAULT_SUITE})"
    parser.add_argument("names", nargs="*", metavar="SUITE|TASK", help=what)
    parser.add_argument(
        "--data",
        default="mini",
        choices=("mini", "full"),
        help="data variant (default: %(default)s)",
    )
    parser.add_argument(
        "--sandbox", default="auto", metavar="NAME", help="as in a trial (default: %(default)s)"
    )
    parser.add_argument(
        "--docker-image", default="", metavar="IMAGE", help="for the sandbox docker"
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=1,
        metavar="N",
        help="runs of the baseline (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="tasks at a time (default: %(default)s)"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="CHECK", help="make this check (repeatable)"
    )
    parser.add_argument("--list", action="store_true", help="list the checks, and make none")
    parser.add_argument(
        "--leak-limit",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="error, rank, bits or windows: what counts as a leak (docs/validation.md)",
    )
    parser.add_argument(
        "--rootdir", type=Path, default=Path(), help="where task_suites/ is looked for first"
    )
    parser.add_argument(
        "--cache-dir", type=Path, metavar="DIR", help="where prepared data are kept"
    )
    consent.add_arguments(parser)
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="write one JSON list instead of lines")
    shape.add_argument(
        "--markdown", action="store_true", help="write a page with a table instead of lines"
    )


def run(args: argparse.Namespace) -> int:
    """Validate the tasks; 1 when a check failed or could not be made. Raises ConfigError."""
    from pytest_mlab.suites.catalog import Catalog
    from pytest_mlab.validation.registry import all_checks
    from pytest_mlab.validation.render import markdown, summary
    from pytest_mlab.validation.scratch import sweep
    from pytest_mlab.validation.subjects import subjects

    if args.list:
        print("\n".join(f"{check.name:<13}  {check.about}" for check in all_checks()))
        return 0
    settings = _settings(args)
    found = subjects(
        args.names, Catalog(args.rootdir, settings.cache), DEFAULT_SUITE, settings.cache
    )
    # Scratch folders and sandboxes of validations that were killed, before this one makes its own.
    for told in sweep(settings.cache):
        print(told, file=sys.stderr)
    reports = list(_reports(found, settings, args))
    if args.json:
        print(json.dumps([report.as_json() for report in reports], indent=1))
    elif args.markdown:
        print(markdown(reports), end="")
    else:
        print("\n".join(summary(reports)))
    return 0 if all(report.passed for report in reports) else 1


def _reports(
    found: Sequence[Subject], settings: Settings, args: argparse.Namespace
) -> Iterator[Report]:
    """A report a task, in order; its lines are printed as they come, or when all of them are there
    with ``--jobs``."""
    from pytest_mlab.validation.registry import chosen
    from pytest_mlab.validation.run import validate

    checks = chosen(args.only)
    if args.jobs == 1 or len(found) < 2:
        for subject in found:
            _head(subject, settings, args)
            yield validate(subject, settings, checks, on_result=partial(_told, args))
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(min(args.jobs, len(found)), get_context("spawn")) as pool:
        one = partial(validate, settings=settings, checks=checks)
        for subject, report in zip(found, pool.map(one, found), strict=True):
            _head(subject, settings, args)
            for result in report.results:
                _told(args, result)
            yield report


def _head(subject: Subject, settings: Settings, args: argparse.Namespace) -> None:
    if not (args.json or args.markdown):
        print(f"{subject.suite}/{subject.name} (data {settings.variant})", flush=True)


def _told(args: argparse.Namespace, result: Result) -> None:
    from pytest_mlab.validation.render import lines

    if not (args.json or args.markdown):
        print("\n".join(lines(result)), flush=True)


def _settings(args: argparse.Namespace) -> Settings:
    from pytest_mlab.data.cache import default_cache_dir
    from pytest_mlab.lib.locate import writable_cache
    from pytest_mlab.validation.bench import Settings

    for word in ("runs", "jobs"):
        if getattr(args, word) < 1:
            raise ConfigError(f"--{word} {getattr(args, word)}: at least 1 is needed")
    return Settings(
        cache=writable_cache((args.cache_dir or default_cache_dir()).resolve()),
        variant=args.data,
        sandbox=SandboxOptions(args.sandbox, args.docker_image),
        runs=args.runs,
        leaks=_limits(args.leak_limit),
        consent=partial(consent.given, args=args),
        progress=not args.json,
    )


def _limits(words: list[str]) -> LeakLimits:
    from pytest_mlab.lib.suggest import unknown
    from pytest_mlab.validation.bench import LeakLimits

    known = {field.name for field in fields(LeakLimits)}
    values = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in known:
            raise ConfigError(f"--leak-limit {word}: {unknown('limit', name, sorted(known))}")
        try:
            values[name] = float(value)
        except ValueError:
            raise ConfigError(f"--leak-limit {word}: {value!r} is no number") from None
    return LeakLimits(**values)
