"""The ``mlab`` command: everything beside running trials, which pytest does."""

from __future__ import annotations

import argparse
import ast
import io
import os
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from pytest_mlab.commands import USAGE
from pytest_mlab.errors import MlabError
from pytest_mlab.lib.suggest import unknown

COMMANDS = {
    "tasks": "pytest_mlab.commands.tasks",
    "agents": "pytest_mlab.commands.agents",
    "options": "pytest_mlab.commands.options",
    "plan": "pytest_mlab.commands.plan",
    "prepare": "pytest_mlab.commands.prepare",
    "measure": "pytest_mlab.commands.measure",
    "validate": "pytest_mlab.commands.validate",
    "report": "pytest_mlab.commands.report",
    "show": "pytest_mlab.commands.show",
    "rescore": "pytest_mlab.commands.rescore",
}

# 128 + 2 and 128 + 13: what a shell reports for a program that SIGINT or SIGPIPE has ended.
OK, INTERRUPTED, BROKEN_PIPE = 0, 130, 141


class Command(Protocol):
    """What a module of ``pytest_mlab.commands`` offers."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit status. Raises MlabError for what the user has to fix."""
        ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit status: the command's own, 2 for an error that the user
    can fix, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        # A stream that another program has put in place may have no reconfigure().
        if isinstance(stream, io.TextIOWrapper):
            # an agent's text must not break an ASCII terminal
            stream.reconfigure(errors="backslashreplace")
    try:
        return _dispatch(words)
    except MlabError as error:
        print(f"mlab: error: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("mlab: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # ``mlab show … | head``: the reader has seen enough; nothing may be flushed into the closed
        # pipe at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return OK
    if words[0] == "--version":
        from pytest_mlab import __version__

        print(f"pytest-mlab {__version__}")
        return OK
    name, *rest = words
    if name not in COMMANDS:
        print(f"mlab: error: {unknown('command', name, COMMANDS)}", file=sys.stderr)
        return USAGE
    command = cast(Command, import_module(COMMANDS[name]))
    # No abbreviations: a command that passes words on to pytest would take --js for its own --json.
    parser = argparse.ArgumentParser(
        prog=f"mlab {name}", description=command.HELP, allow_abbrev=False
    )
    command.add_arguments(parser)
    try:
        if getattr(command, "PASSES_ON", False):
            args, others = parser.parse_known_args(rest)
        else:
            # Intermixed: plain parsing takes no more positionals after the first group of them.
            args, others = parser.parse_intermixed_args(rest), []
    except SystemExit as done:  # argparse has said what is wrong, or printed the help
        return done.code if isinstance(done.code, int) else USAGE
    args.others = others
    status = command.run(args)
    # Here and not at exit, so that a closed pipe is seen by main().
    sys.stdout.flush()
    return status


def _overview() -> str:
    lines = ["usage: mlab COMMAND [arguments]", "", "commands:"]
    width = max(map(len, COMMANDS))
    for name, module in COMMANDS.items():
        lines += textwrap.wrap(
            help_line(module),
            80,
            initial_indent=f"  {name:<{width}}  ",
            subsequent_indent=" " * (width + 4),
        )
    lines += [
        "",
        "mlab COMMAND --help shows the arguments of a command.",
        "Trials are run by pytest: mlab options lists its --mlab-* options.",
    ]
    return "\n".join(lines)


def help_line(module: str) -> str:
    """A command module's ``HELP``, read from its source: listing commands must not import what they
    need."""
    source = Path(__file__).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        match node:
            case (
                ast.Assign(targets=[ast.Name("HELP")], value=value)
                | ast.AnnAssign(target=ast.Name("HELP"), value=ast.expr() as value)
            ):
                return str(ast.literal_eval(value))
    raise LookupError(f"{module} has no HELP")
