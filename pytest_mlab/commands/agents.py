"""``mlab agents``: which agents can be named, and the settings of each."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path

from pytest_mlab.errors import AgentLoadError

HELP = "list the agents that can be named, with their settings"

PAGE = """\
# Settings of the built-in agents

Written by `mlab agents --markdown`. `--mlab-agent-arg=key=value` sets one,
`--mlab-agent='research[key=value]'` makes a variant; see [agents.md](agents.md#settings).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "agents", nargs="*", metavar="AGENT", help="as --mlab-agent takes it (default: all names)"
    )
    parser.add_argument(
        "--rootdir", type=Path, default=Path(), help="where agents/ is looked for first"
    )
    parser.add_argument(
        "--markdown", action="store_true", help="the built-in ones as a Markdown page"
    )


def run(args: argparse.Namespace) -> int:
    """Print the agents. Exit status 1 when one of them is broken."""
    from pytest_mlab.agentfiles.loader import known_agents

    if args.markdown:
        print(markdown())
        return 0
    rootdir = args.rootdir.absolute()
    broken = False
    for number, name in enumerate(args.agents or known_agents(rootdir)):
        try:
            lines = text(name, rootdir)
        # A broken file in agents/ does not hide the agents that work.
        except AgentLoadError as error:
            lines, broken = [f"{name}: {error}"], True
        print(*(["", *lines] if number else lines), sep="\n")
    return 1 if broken else 0


def text(name: str, rootdir: Path) -> list[str]:
    """One agent, in lines of at most 80 columns. Raises ConfigError, AgentLoadError."""
    from pytest_mlab.agentfiles.loader import load_agent
    from pytest_mlab.agentfiles.settings import declared
    from pytest_mlab.reporting.text import wrapped

    kind = load_agent(name, rootdir)
    lines = wrapped(
        f"{name}: {_about(kind)}{'' if kind.needs_model else ' (no model)'}", 80, rest="    "
    )
    for setting in declared(kind):
        said = f"{setting.name} = {setting.default} ({setting.kind}): {setting.description}"
        lines += wrapped(said, 80, first="  ", rest="      ")
    return lines


def markdown() -> str:
    """The page docs/agent-settings.md."""
    from pytest_mlab.agentfiles.loader import builtin_agents, load_agent
    from pytest_mlab.agentfiles.settings import declared
    from pytest_mlab.lib.locate import builtin
    from pytest_mlab.reporting.markdown import grid
    from pytest_mlab.reporting.text import wrapped

    shipped = builtin("agents").parent
    lines = [PAGE]
    for name in builtin_agents():
        kind = load_agent(name, shipped)
        lines += [
            f"## {name}",
            "",
            *wrapped(f"{_about(kind)} Needs {'a' if kind.needs_model else 'no'} model.", 100),
            "",
        ]
        rows = [[s.name, s.default, s.kind, s.description] for s in declared(kind)]
        lines += (
            [*grid(["setting", "default", "type", "what it is"], rows, 4), ""]
            if rows
            else ["No settings.", ""]
        )
    return "\n".join(lines).rstrip()


def _about(kind: type) -> str:
    """What an agent says of itself first: in its file, else in its class."""
    module = inspect.getmodule(kind)
    words = (
        (inspect.getdoc(module) if module is not None else None)
        or kind.__doc__
        or "says nothing of itself"
    )
    return " ".join(words.partition("\n\n")[0].split())
