"""Contracts of sandboxes: which one a run uses, what it shows, how a command ended, a backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pytest_mlab.core.task import Resources


@dataclass(frozen=True)
class SandboxOptions:
    """Which backend to use (``auto``: the first that works) and its settings. ``image`` is what a
    backend that runs containers starts from ('': the backend's own default)."""

    name: str = "auto"
    image: str = ""


@dataclass(frozen=True)
class Mount:
    """A host path that a sandbox shows read-only at ``target`` (an absolute path, or relative to
    the workspace)."""

    source: Path
    target: str


@dataclass(frozen=True)
class SandboxSpec:
    """What a sandbox is to show and allow. ``workspace`` is a host folder, writable inside and the
    working directory there; ``label`` is unique on the machine (for sweeping); ``relay`` is a Unix
    socket of the host that programs inside can connect to, network or not, at
    ``Connection.relay_port``."""

    workspace: Path
    label: str
    mounts: tuple[Mount, ...] = ()
    resources: Resources = Resources()
    network: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    relay: Path | None = None


@dataclass(frozen=True)
class Execution:
    """How a command in a sandbox ended.

    ``output`` is stdout and stderr interleaved, at most ``keep`` bytes (first and last half of it,
    when more came); ``output_bytes`` is what came in all. ``exit_status`` is None when the command
    was killed; ``killed_for`` then says why: ``timeout``, ``memory``, ``pids``, ``disk``, ``lost``
    (the supervisor died; it has been restarted and the REPL's state is gone), ``cancelled`` (by
    ``Connection.cancel``) or ``signal`` (the command died of a signal of its own, number in
    ``signal``)."""

    exit_status: int | None
    output: bytes
    output_bytes: int
    seconds: float
    killed_for: Literal["", "timeout", "memory", "pids", "disk", "lost", "cancelled", "signal"] = ""
    signal: int | None = None


class Connection(Protocol):
    """An open sandbox: one supervisor program inside, spoken to over its stdin and stdout."""

    python: str
    relay_port: int
    """The port of 127.0.0.1 inside that leads to the spec's ``relay``, 0 without one; it may be
    another one after the supervisor was lost."""

    def locate(self, target: str) -> str:
        """The path inside the sandbox of a mount's target or of a path relative to the workspace
        ('.' is itself)."""
        ...

    def execute(
        self,
        argv: Sequence[str],
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        keep: int = 1 << 20,
        sink: Callable[[bytes], None] | None = None,
    ) -> Execution:
        """Run ``argv`` in a process group of its own and wait; when it ends or ``timeout``
        (seconds) is over, everything that it started is killed. ``sink`` gets the output as it
        comes."""
        ...

    def repl(self, code: str, *, timeout: float | None = None, keep: int = 1 << 20) -> Execution:
        """Run ``code`` in the sandbox's persistent Python process; on a timeout that process is
        killed and its state lost."""
        ...

    def cancel(self) -> None:
        """Kill the command that another thread is waiting for, if any."""
        ...

    def close(self) -> None:
        """Kill everything inside and remove the sandbox; files of the workspace belong to the
        caller afterwards."""
        ...


class Sandbox(Protocol):
    """A backend. Callers ask these attributes and never decide by the name, so that a third party's
    backend (entry-point group ``pytest_mlab.sandboxes``) is treated like a built-in one."""

    name: str
    isolated: bool
    """False when agent code can see and change the host."""
    mounts: bool
    """False when mounts below the workspace are impossible; the caller copies instead."""
    uses_host_python: bool
    """True when the harness's Python with its packages, and the programs of the host, run inside:
    what the host lacks is then known to be missing before a trial starts."""
    preload: tuple[str, ...]
    """Modules that :meth:`open` needs and that are slow to import: each worker imports them
    once."""

    def check(self) -> str:
        """'' when the backend works here (a self-test of at most a second), else the reason and the
        way out."""
        ...

    def open(self, spec: SandboxSpec) -> Connection:
        """Start a sandbox. Raises SandboxError."""
        ...

    def sweep(self, label_prefix: str) -> int:
        """Remove what dead owners left behind; how many were removed."""
        ...
