"""``mlab plan``: pytest with ``--mlab-plan``, and nothing else on standard output."""

from __future__ import annotations

import argparse
import json

from pytest_mlab.commands import USAGE

HELP = "what a run would do: trials, worst-case hours and dollars, and what is missing for it"

PASSES_ON = True

EPILOG = """\
ARGUMENTS are those of pytest for the run: paths, -k, -m, -n and all --mlab-* options
(mlab options lists them). pytest reads its ini file, addopts and PYTEST_ADDOPTS as
in the run. Nothing runs and nothing is written. Exit status: 0, 1 when something is
missing for a trial, 2 for a usage error.

example: mlab plan --mlab-model=gpt-4-turbo -n 8 -k house-price
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Only what pytest does not have."""
    parser.usage = "mlab plan [--json] [ARGUMENTS of pytest]"
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="the plan as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the plan. Exit status 1 when something is missing for a trial, 2 for a usage error."""
    from pytest_mlab.plugin.plan_only import EXIT_USAGE, plan_of
    from pytest_mlab.reporting.plan import plan_json, plan_lines
    from pytest_mlab.reporting.text import terminal_width

    # pytest itself makes the plan, so that ini files, addopts, -k and -m count as they do in the
    # run.
    status, shown = plan_of(args.others)
    if shown is not None:
        text = (
            json.dumps(plan_json(*shown), indent=1)
            if args.json
            else "\n".join(plan_lines(*shown, terminal_width()))
        )
        print(text)
    return USAGE if status == EXIT_USAGE else status
