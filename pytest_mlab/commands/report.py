"""``mlab report``: show a stored run's figures and judge it again, without paying for it again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HELP = "show a stored run's figures and judge it again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "run",
        nargs="?",
        default="last",
        metavar="RUN",
        help="run id, run directory, or last (default)",
    )
    parser.add_argument(
        "--reports", type=Path, default=Path("reports"), metavar="DIR", help="default: %(default)s"
    )
    parser.add_argument(
        "--gate", choices=("trial", "aggregate", "none"), help="how to judge (default: none)"
    )
    parser.add_argument(
        "--fail-under",
        type=float,
        metavar="RATE",
        help="least mean success rate, 0 to 1; implies --gate=aggregate",
    )
    parser.add_argument(
        "--format", choices=("table", "md", "json"), default="table", help="default: %(default)s"
    )
    parser.add_argument("--write", action="store_true", help="also write all report files again")


def run(args: argparse.Namespace) -> int:
    """Print the report; 1 when the gate fails."""
    from pytest_mlab.core.gate import GatePolicy
    from pytest_mlab.reporting.figures import RunFigures
    from pytest_mlab.reporting.markdown import markdown
    from pytest_mlab.reporting.render import write_reports
    from pytest_mlab.reporting.summary import summary_text
    from pytest_mlab.reporting.table import table
    from pytest_mlab.reporting.text import terminal_width
    from pytest_mlab.store.runs import find_run

    # Without a question about the gate a report only shows: the default of a run, ``trial``, would
    # fail for each trial below its target.
    mode = "none" if args.gate is None and args.fail_under is None else args.gate
    policy = GatePolicy.resolve(mode, args.fail_under)
    figures = RunFigures.of(find_run(args.run, args.reports), policy)
    if args.format == "table":
        resume = f"pytest --mlab-resume={figures.run.path}"
        print("\n".join(table(figures, resume, terminal_width())))
    else:
        print(markdown(figures) if args.format == "md" else summary_text(figures), end="")
    if args.write:
        print("\n".join(write_reports(figures)), file=sys.stderr)
    return 0 if figures.gate.passed else 1
