"""Sandboxes by name: ``bubblewrap``, ``docker``, ``local``, others by entry point, and the choice
``auto``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pytest_mlab.core.sandbox_api import SandboxOptions
from pytest_mlab.errors import ConfigError, RequirementMissing
from pytest_mlab.lib.suggest import unknown

if TYPE_CHECKING:
    from pytest_mlab.core.sandbox_api import Sandbox

GROUP = "pytest_mlab.sandboxes"
"""An entry point of this group is called as ``factory(hidden=(path, ...))``, with ``image=...`` as
well when it has a parameter of that name, and returns a Sandbox whose ``name`` is the entry
point's."""

AUTO = ("bubblewrap", "docker")
"""What ``auto`` tries, in this order. Bubblewrap starts in 29 ms where docker takes 171
(docs/benchmarks.md), and needs neither a daemon nor an image."""

_BUILT_IN = {
    "bubblewrap": ("pytest_mlab.sandboxes.bubblewrap", "Bubblewrap"),
    "docker": ("pytest_mlab.sandboxes.docker", "Docker"),
    "local": ("pytest_mlab.sandboxes.local", "Local"),
}

_FIX = {
    "bubblewrap": "apt-get install bubblewrap",
    "docker": "apt-get install docker.io && systemctl start docker",
}

_ATTRIBUTES = ("name", "isolated", "mounts", "uses_host_python", "preload")


def names() -> tuple[str, ...]:
    """All sandboxes that :func:`make` knows, without ``auto``."""
    return tuple(sorted({*_BUILT_IN, *(point.name for point in entry_points(group=GROUP))}))


def make(wanted: SandboxOptions | str, *, hidden: Sequence[Path] = ()) -> Sandbox:
    """The backend ``wanted``, a name alone when it has no settings; ``hidden`` are host paths that
    it must not show. Raises ConfigError."""
    options = SandboxOptions(wanted) if isinstance(wanted, str) else wanted
    factory = _factory(options.name)
    arguments: dict[str, Any] = {"hidden": tuple(hidden)}
    if "image" in inspect.signature(factory).parameters:
        arguments["image"] = options.image
    sandbox = factory(**arguments)
    lacking = [name for name in _ATTRIBUTES if not hasattr(sandbox, name)]
    if lacking:
        raise ConfigError(
            f"the sandbox {options.name} has no attribute {', '.join(lacking)}; add what"
            " pytest_mlab.core.sandbox_api.Sandbox asks for"
        )
    if sandbox.name != options.name:
        # The plan records the name, and each worker makes the backend from it.
        raise ConfigError(
            f"the sandbox {options.name} calls itself {sandbox.name!r}; give its entry point and"
            " its attribute `name` the same name"
        )
    return sandbox


def _factory(name: str) -> Callable[..., Sandbox]:
    if name in _BUILT_IN:
        module, attribute = _BUILT_IN[name]
        return cast("Callable[..., Sandbox]", getattr(import_module(module), attribute))
    for point in entry_points(group=GROUP, name=name):
        return cast("Callable[..., Sandbox]", point.load())
    raise ConfigError(unknown("sandbox backend", name, ("auto", *names())))


def for_own_files() -> Sandbox:
    """The backend for a task's own scripts outside a trial: they are as trusted as the harness."""
    return make("local")


class Choice(NamedTuple):
    """A backend that works here. ``passed_over`` says why ``auto`` did not take an earlier one, ''
    otherwise."""

    sandbox: Sandbox
    passed_over: str = ""


def choose(wanted: SandboxOptions, *, trusted_agents: bool, hidden: Sequence[Path] = ()) -> Choice:
    """The backend for a run: ``auto`` is the first of :data:`AUTO` that passes its self-test, or
    ``local`` when all agents of the run are trusted (the built-in scripted ones).

    Raises ConfigError for unknown names, RequirementMissing when the named one (or, for ``auto``,
    none) works here."""
    if wanted.name != "auto":
        sandbox = make(wanted, hidden=hidden)
        reason = sandbox.check()
        if reason:
            raise RequirementMissing(
                f"the sandbox {wanted.name} does not work here: {reason}", fix=_fix(wanted.name)
            )
        return Choice(sandbox)
    reasons: list[str] = []
    for name in AUTO:
        sandbox = make(SandboxOptions(name, wanted.image), hidden=hidden)
        reason = sandbox.check()
        if not reason:
            return Choice(sandbox, "; ".join(reasons))
        reasons.append(f"{name}: {reason}")
    if trusted_agents:
        return Choice(make("local", hidden=hidden), "; ".join(reasons))
    raise RequirementMissing(
        f"no sandbox works here ({'; '.join(reasons)}), and without one an agent's code could read"
        " and change this machine (--mlab-sandbox=local accepts that)",
        fix=_fix(AUTO[0]),
    )


def _fix(name: str) -> str:
    return _FIX.get(name, f"see the documentation of the sandbox {name}")
