"""Which of a trial's models a program means by the name that it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pytest_mlab.core.model_api import Role

Names = Mapping[str, Sequence[str]]
"""The names of each role's model: its alias, and litellm's name for it."""

_FAST = re.compile(
    r"(?:^|[-_/.:])(?:haiku|mini|nano|small|lite|flash|fast|instant)(?:$|[-_/.:\d])", re.IGNORECASE
)
_VENDOR = re.compile(r"^(?:[a-z-]+\.)+(?=[a-z])")
"""Region and vendor, as Bedrock writes them: ``us.anthropic.claude-haiku-4-5-20251001-v1:0``."""
_VERSION = re.compile(r"(?:[-@_:](?:\d{8}|\d{4}-\d{2}-\d{2}|latest|v\d+(?::\d+)?)|\[\w+\])+$")


def role_of(asked: str, names: Names) -> Role:
    """The role of the model that ``asked`` names: first as it is written, then without case, the
    provider before a slash, and a date or ``latest`` at the end.

    A name of none of them is a program's own choice: ``fast`` where providers give their small
    models such a name, else ``main``."""
    roles: tuple[Role, ...] = ("main", "fast", "edit")
    for form in (str, _bare):
        for role in roles:
            if form(asked) in map(form, names.get(role, ())):
                return role
    return "fast" if _FAST.search(asked) else "main"


def shown(names: Names) -> tuple[str, ...]:
    """A name of each model for a program to ask for, the main model's first."""
    return tuple(dict.fromkeys(first for role in names if (first := _first(names[role]))))


def _first(names: Iterable[str]) -> str:
    return next((name for name in names if name), "")


def _bare(name: str) -> str:
    last = name.strip().casefold().rpartition("/")[2]
    return _VERSION.sub("", _VENDOR.sub("", last))
