"""The options of commands that fetch data, by which a user says that rules were accepted."""

from __future__ import annotations

import argparse
import sys

from pytest_mlab.core.task import Task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--accept-rules",
        action="append",
        default=[],
        metavar="SLUG",
        help="say that you have accepted the rules of a competition or data set (repeatable)",
    )
    parser.add_argument(
        "--yes", action="store_true", help="say so for all rules of the tasks asked for"
    )


def given(task: Task, args: argparse.Namespace) -> tuple[str, ...]:
    """The rules that were accepted; ``--yes`` accepts all of the task's, and says which."""
    from pytest_mlab.data.sources import rules_of

    accepted = list(args.accept_rules)
    if args.yes and args.data in task.variants:
        for word, address in rules_of(task, args.data).items():
            sys.stderr.write(f"{task.name}: you accept the rules at {address}\n")
            accepted.append(word)
    return tuple(accepted)
