"""``mlab validate``: prove tasks sound before anyone spends a token on them."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlab.errors import ConfigError
from pytest_mlab.locate import DEFAULT_SUITE

if TYPE_CHECKING:
    from pytest_mlab.validation.bench import LeakLimits, Settings, Subject
    from pytest_mlab.validation.run import Report

HELP = "prove tasks sound: no leak, a deterministic evaluator, a real baseline"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    what = f"suites, tasks, SUITE/TASK, or folders of them (default: {DEFAULT_SUITE})"
    parser.add_argument("names", nargs="*", metavar="SUITE|TASK", help=what)
    parser.add_argument("--data", default="mini", choices=("mini", "full"), help="data variant (default: %(default)s)")
    parser.add_argument("--sandbox", default="auto", metavar="NAME", help="as in a trial (default: %(default)s)")
    parser.add_argument("--docker-image", default="", metavar="IMAGE", help="for the sandbox docker")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="runs of the baseline (default: %(default)s)")
    parser.add_argument("--only", action="append", default=[], metavar="CHECK", help="make this check (repeatable)")
    parser.add_argument("--list", action="store_true", help="list the checks, and make none")
    parser.add_argument(
        "--leak-limit",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="error, rank, bits or windows: what counts as a leak (docs/validation.md)",
    )
    parser.add_argument("--rootdir", type=Path, default=Path(), help="where task_suites/ is looked for first")
    parser.add_argument("--cache-dir", type=Path, metavar="DIR", help="where prepared data are kept")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="write one JSON list instead of lines")
    shape.add_argument("--markdown", action="store_true", help="write a page with a table instead of lines")


def run(args: argparse.Namespace) -> int:
    """Validate one task after the other; 1 when a check failed or could not be made. Raises ConfigError."""
    from pytest_mlab.suites.catalog import Catalog
    from pytest_mlab.validation.checks import CHECKS
    from pytest_mlab.validation.render import last_line, markdown
    from pytest_mlab.validation.subjects import subjects

    if args.list:
        print("\n".join(f"{check.name:<13}  {check.about}" for check in CHECKS))
        return 0
    settings = _settings(args)
    found = subjects(args.names, Catalog(args.rootdir, settings.cache), DEFAULT_SUITE, settings.cache)
    reports = [_validate(subject, settings, args) for subject in found]
    if args.json:
        print(json.dumps([report.as_json() for report in reports], indent=1))
    elif args.markdown:
        print(markdown(reports), end="")
    else:
        print(last_line(reports))
    return 0 if all(report.passed for report in reports) else 1


def _validate(subject: Subject, settings: Settings, args: argparse.Namespace) -> Report:
    from pytest_mlab.validation.checks import chosen
    from pytest_mlab.validation.render import lines
    from pytest_mlab.validation.run import Result, validate

    def told(result: Result) -> None:
        if not (args.json or args.markdown):
            print("\n".join(lines(result)), flush=True)

    if not (args.json or args.markdown):
        print(f"{subject.suite}/{subject.name} (data {settings.variant})", flush=True)
    return validate(subject, settings, chosen(args.only), told=told)


def _settings(args: argparse.Namespace) -> Settings:
    from pytest_mlab.data.cache import default_cache_dir
    from pytest_mlab.validation.bench import Settings

    if args.runs < 1:
        raise ConfigError(f"--runs {args.runs}: at least 1 is needed")
    return Settings(
        cache=(args.cache_dir or default_cache_dir()).resolve(),
        variant=args.data,
        sandbox=args.sandbox,
        runs=args.runs,
        docker_image=args.docker_image,
        leaks=_limits(args.leak_limit),
    )


def _limits(words: list[str]) -> LeakLimits:
    from pytest_mlab.core.names import unknown
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
