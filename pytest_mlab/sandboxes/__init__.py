"""Sandboxes by name: ``bubblewrap``, ``docker``, ``local``, others by entry point, and the choice
``auto``."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pytest_mlab.errors import ConfigError, RequirementMissing

if TYPE_CHECKING:
    from pytest_mlab.core.sandbox_api import Sandbox

GROUP = "pytest_mlab.sandboxes"
"""Entry points of this group are called as ``factory(hidden=(path, ...))`` and return a Sandbox."""

_BUILT_IN = {
    "bubblewrap": ("pytest_mlab.sandboxes.bubblewrap", "Bubblewrap"),
    "docker": ("pytest_mlab.sandboxes.docker", "Docker"),
    "local": ("pytest_mlab.sandboxes.local", "Local"),
}

_MEND = {
    "bubblewrap": "apt-get install bubblewrap",
    "docker": "apt-get install docker.io && systemctl start docker",
}


def names() -> tuple[str, ...]:
    """All sandboxes that :func:`make` knows, without ``auto``."""
    return tuple(sorted({*_BUILT_IN, *(point.name for point in entry_points(group=GROUP))}))


def make(name: str, *, docker_image: str = "", hidden: Sequence[Path] = ()) -> Sandbox:
    """The backend ``name``; ``hidden`` are host paths that it must not show. Raises ConfigError."""
    arguments: dict[str, Any] = {"hidden": tuple(hidden)}
    if name in _BUILT_IN:
        module, attribute = _BUILT_IN[name]
        if name == "docker":
            arguments["image"] = docker_image
        return cast("Sandbox", getattr(import_module(module), attribute)(**arguments))
    for point in entry_points(group=GROUP):
        if point.name == name:
            return cast("Sandbox", point.load()(**arguments))
    near = difflib.get_close_matches(name, names(), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(f"no sandbox is called {name!r}{hint} There are: auto, {', '.join(names())}")


class Choice(NamedTuple):
    """A backend that works here. ``passed_over`` says why ``auto`` did not take an earlier one, ''
    otherwise."""

    sandbox: Sandbox
    passed_over: str = ""


def choose(
    name: str, *, trusted_agents: bool, docker_image: str = "", hidden: Sequence[Path] = ()
) -> Choice:
    """The backend for a run: ``auto`` is the first of bubblewrap and docker that passes its
    self-test, or ``local`` when all agents of the run are trusted (the built-in scripted ones).

    Raises ConfigError for unknown names, RequirementMissing when the named one (or, for ``auto``,
    none) works here."""
    if name != "auto":
        sandbox = make(name, docker_image=docker_image, hidden=hidden)
        reason = sandbox.check()
        if reason:
            raise RequirementMissing(
                f"the sandbox {name} does not work here: {reason}", fix=_fix(name)
            )
        return Choice(sandbox)
    reasons: list[str] = []
    for candidate in ("bubblewrap", "docker"):
        sandbox = make(candidate, docker_image=docker_image, hidden=hidden)
        reason = sandbox.check()
        if not reason:
            return Choice(sandbox, "; ".join(reasons))
        reasons.append(f"{candidate}: {reason}")
    if trusted_agents:
        return Choice(make("local", hidden=hidden), "; ".join(reasons))
    raise RequirementMissing(
        "no sandbox works here ("
        + "; ".join(reasons)
        + "), and without one an agent's code could read and change "
        "this machine (--mlab-sandbox=local accepts that)",
        fix=_fix("bubblewrap"),
    )


def _fix(name: str) -> str:
    return _MEND.get(name, f"see the documentation of the sandbox {name}")
