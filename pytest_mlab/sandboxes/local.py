"""Backend ``local``: no isolation. Commands run as the caller, see the whole machine and can change
it.

What still holds: the environment's allow-list, time, memory, process and disk limits, and that
nothing which a command started outlives it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from pytest_mlab.core.sandbox_api import SandboxSpec
from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes import variables as environment
from pytest_mlab.sandboxes.channel import ProcessChannel
from pytest_mlab.sandboxes.connection import SupervisedConnection
from pytest_mlab.sandboxes.opening import SUPERVISOR, opening_request, system_path

_MARK = "MLAB_SANDBOX"


class Local:
    """Runs commands on the machine itself."""

    name = "local"
    isolated = False
    mounts = False
    uses_host_python = True
    preload = ()

    def __init__(self, *, hidden: Sequence[Path] = ()) -> None:
        del hidden  # nothing can be hidden here: ``isolated`` says so

    def check(self) -> str:
        """'' always: the harness's own Python is all that it takes."""
        return ""

    def open(self, spec: SandboxSpec) -> SupervisedConnection:
        """Start a supervisor as a child process. Raises SandboxError."""
        workspace = str(spec.workspace.resolve())
        for mount in spec.mounts:
            if not PurePosixPath(mount.target).is_absolute():
                raise SandboxError(
                    f"the local sandbox cannot show {mount.source} at {mount.target}: copy it there"
                )
        home = tempfile.mkdtemp(prefix="mlab-home-")
        env = environment.inside(spec.resources, home=home, path=system_path())
        # The mark lets sweep() find processes whose supervisor was killed together with its
        # harness.
        opening = opening_request(
            spec,
            workspace,
            env | {_MARK: spec.label},
            measured=(workspace, home),
            own_processes=False,
            relay=str(spec.relay),
        )

        started = False

        def launch() -> ProcessChannel:
            nonlocal started
            if started:  # what ended the supervisor may have ended the guard, too
                _end_marked(spec.label, exact=True)
            started = True
            argv = [
                sys.executable,
                "-I",
                "-S",
                "-X",
                "utf8",
                str(SUPERVISOR),
                "guarded",
                spec.label,
            ]
            return ProcessChannel(argv, {_MARK: spec.label, "LANG": "C.UTF-8"})

        def release() -> None:
            shutil.rmtree(home, ignore_errors=True)

        return SupervisedConnection(
            launch,
            opening,
            python=sys.executable,
            places={mount.target: str(mount.source.resolve()) for mount in spec.mounts},
            release=release,
        )

    def sweep(self, label_prefix: str) -> int:
        """Kill processes of sandboxes whose label begins with ``label_prefix``; how many."""
        return _end_marked(label_prefix, exact=False)


def _end_marked(label: str, *, exact: bool) -> int:
    """Kill this user's processes that carry a label in their environment; how many. What changed
    its own environment is not found: that is what supervisors are for."""
    end = b"\0" if exact else b""
    marks = (f"\0{_MARK}={label}".encode() + end, f"\0guarded\0{label}".encode() + end)
    ended: set[int] = set()
    while True:
        found = {pid for pid in _processes() if _carries(pid, marks)} - ended
        if not found:
            return len(ended)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended |= found


def _processes() -> list[int]:
    return [
        int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()
    ]


def _carries(pid: int, marks: Sequence[bytes]) -> bool:
    words = b""
    for name in (
        "cmdline",
        "environ",
    ):  # a supervisor shows only the first of them to others than root
        with contextlib.suppress(OSError):
            words += b"\0" + Path(f"/proc/{pid}/{name}").read_bytes()
    return any(mark in words for mark in marks)
