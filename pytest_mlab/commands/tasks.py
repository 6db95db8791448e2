"""``mlab tasks``: which tasks there are, what must be beaten and what is known to beat it."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "list a suite's tasks with their measured baselines and references"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help="names of tasks (default: all of the suite)"
    )
    parser.add_argument("--suite", default="mlagentbench", help="the suite (default: %(default)s)")
    parser.add_argument(
        "--rootdir", type=Path, default=Path(), help="where task_suites/ is looked for first"
    )
    parser.add_argument("--markdown", action="store_true", help="as a Markdown page")


def run(args: argparse.Namespace) -> int:
    """Print the table, and below it what else the suite's folder holds."""
    from pytest_mlab.reporting.baselines import baselines_markdown, baselines_table, rows
    from pytest_mlab.suites.catalog import Catalog

    suite = Catalog(args.rootdir).suite(args.suite)
    chosen = [suite.task(name) for name in dict.fromkeys(args.tasks)] or suite.tasks()
    found = rows([task for task in chosen if not task.fault])
    print(
        baselines_markdown(found, args.suite)
        if args.markdown
        else "\n".join(baselines_table(found)).rstrip()
    )
    for task in chosen:
        if task.fault:
            print(f"\n{task.name} cannot be run: {task.fault}")
    others = {} if args.tasks else suite.left_out
    if others:
        print("\nleft out, since they are not tasks:")
    for name, why in others.items():
        print(f"  {name}: {why}")
    return 0
