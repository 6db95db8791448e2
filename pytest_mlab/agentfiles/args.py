"""Which settings of the command line go to which agent.

``--mlab-agent-arg=key=value`` goes to every named agent that has settings, ``agent.key=value`` to
one; what stands in brackets behind a reference (``research[retrieval=true,shown_steps=5]``) makes a
variant of that agent with a name of its own, so that several can be compared in one run. The more
special wins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.suggest import unknown

FLAG = "--mlab-agent-arg"
COMMAND = "command:"

_ARG = re.compile(r"(?:(?P<agent>[^=]+)\.)?(?P<key>\w+)=(?P<value>.*)", re.DOTALL)
_VARIANT = re.compile(r"(?P<ref>[^\[\]]+)\[(?P<args>.*)\]", re.DOTALL)
_BETWEEN = re.compile(r",(?=\s*\w+=)")


@dataclass(frozen=True)
class AgentArg:
    """One setting: for the agent ``agent``, or for all when that is ''."""

    agent: str
    key: str
    value: str

    @property
    def text(self) -> str:
        """As it is written on the command line."""
        return f"{FLAG}={self.agent}{'.' if self.agent else ''}{self.key}={self.value}"


@dataclass(frozen=True)
class Named:
    """A reference without its brackets, and the settings in them; ``called`` is a name that the
    reference gives."""

    ref: str
    own: tuple[AgentArg, ...] = ()
    called: str = ""

    def shown(self, name: str) -> str:
        """What a variant of the agent ``name`` is called."""
        if self.called:
            return self.called
        if not self.own:
            return name
        return f"{name}[{','.join(f'{arg.key}={arg.value}' for arg in self.own)}]"


def parse_args(texts: Iterable[str]) -> tuple[AgentArg, ...]:
    """The settings in ``texts``. Raises ConfigError when one is given twice."""
    found: dict[tuple[str, str], AgentArg] = {}
    for text in texts:
        arg = _parse(text, f"{FLAG}={text}")
        if (arg.agent, arg.key) in found:
            raise ConfigError(f"{found[arg.agent, arg.key].text} and {arg.text}: give it once")
        found[arg.agent, arg.key] = arg
    return tuple(found.values())


def parse_named(ref: str) -> Named:
    """A reference to an agent, taken apart. Raises ConfigError for brackets that do not hold
    settings."""
    if ref.startswith(COMMAND):  # a command line may hold brackets
        return _command(ref.removeprefix(COMMAND))
    match = _VARIANT.fullmatch(ref)
    if match is None:
        return Named(ref)
    own = tuple(
        _parse(part.strip(), f"--mlab-agent={ref}") for part in _BETWEEN.split(match["args"])
    )
    keys = [arg.key for arg in own]
    for arg in own:
        if arg.agent or keys.count(arg.key) > 1:
            raise ConfigError(f"--mlab-agent={ref}: write agent[key=value,…], each key once")
    return Named(match["ref"].strip(), own)


def _command(line: str) -> Named:
    """``command:LINE`` is the agent ``command`` with that line, called by its program."""
    words = line.split()
    if not words:
        raise ConfigError(
            f"--mlab-agent={COMMAND}{line}: name a program, such as {COMMAND}./my_agent.sh"
        )
    return Named(
        "command", (AgentArg("", "command", line),), f"command-{PurePosixPath(words[0]).stem}"
    )


def texts_for(
    name: str, args: Sequence[AgentArg], own: Sequence[AgentArg], *, has_settings: bool
) -> dict[str, str]:
    """The values for the agent ``name`` by setting. Agents without settings ignore arguments given
    to all agents."""
    general = {arg.key: arg.value for arg in args if not arg.agent} if has_settings else {}
    return (
        general
        | {arg.key: arg.value for arg in args if arg.agent == name}
        | {arg.key: arg.value for arg in own}
    )


def check_used(args: Sequence[AgentArg], agents: dict[str, bool]) -> None:
    """Raise ConfigError for a setting that reaches no agent; ``agents`` tells by name whether it
    has settings."""
    for arg in args:
        if arg.agent and arg.agent not in agents:
            raise ConfigError(f"{arg.text}: {unknown('agent', arg.agent, agents)} of this run")
        if not arg.agent and not any(agents.values()):
            raise ConfigError(f"{arg.text}: none of {', '.join(agents)} takes settings")


def _parse(text: str, where: str) -> AgentArg:
    match = _ARG.fullmatch(text)
    if match is None:
        raise ConfigError(f"{where}: write key=value or agent.key=value")
    return AgentArg(match["agent"] or "", match["key"], match["value"])
