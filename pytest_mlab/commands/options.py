"""``mlab options``: every ``--mlab-*`` flag of pytest with its ini setting and default."""

from __future__ import annotations

import argparse
import textwrap

HELP = "list pytest's --mlab-* options with their ini settings"

PAGE = """\
# Options

Written by `mlab options --markdown`. Each is a flag of pytest and of `mlab plan`, and an ini
setting of the same name with underscores (`mlab_repeats = 4` under `[tool.pytest.ini_options]`).
The command line wins over the ini file.

| flag | ini setting | what it does |
|---|---|---|
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--markdown", action="store_true", help="as a Markdown page")


def run(args: argparse.Namespace) -> int:
    """Print the options."""
    print(markdown() if args.markdown else text())
    return 0


def markdown() -> str:
    """The page docs/options.md."""
    from pytest_mlab.planning.options import TABLE

    rows = []
    for option in TABLE:
        value = {"switch": "", "optional": f"[={option.metavar}]"}.get(
            option.kind, f"={option.metavar}"
        )
        words = option.help.replace("%%", "%").replace("|", "\\|")
        rows.append(f"| `{option.flag}{value}` | `{option.dest}` ({option.ini}) | {words} |")
    return PAGE + "\n".join(rows)


def text() -> str:
    """The same for a terminal, at most 80 columns wide."""
    from pytest_mlab.planning.options import TABLE

    lines = []
    for option in TABLE:
        lines += [f"{option.flag}  (ini: {option.dest})"]
        lines += textwrap.wrap(
            option.help.replace("%%", "%"), 80, initial_indent="    ", subsequent_indent="    "
        )
    return "\n".join(lines)
