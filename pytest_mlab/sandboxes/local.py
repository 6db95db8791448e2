"""Backend ``local``: no isolation. Commands run as the caller, see the whole machine and can change
it.

What still holds: the environment's allow-list, time, memory, process and disk limits, and that
nothing which a command started outlives it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from psutil import Process

from pytest_mlab.core.sandbox_api import SandboxSpec
from pytest_mlab.errors import SandboxError
from pytest_mlab.lib import processes
from pytest_mlab.sandboxes.channel import ProcessChannel
from pytest_mlab.sandboxes.connection import SupervisedConnection
from pytest_mlab.sandboxes.opening import (
    SUPERVISOR,
    SUPERVISOR_FLAGS,
    environment,
    opening_request,
    system_path,
)

_MARK = "MLAB_SANDBOX"
_GUARDED = "guarded"


class Local:
    """Runs commands on the machine itself."""

    name = "local"
    isolated = False
    mounts = False
    uses_host_python = True
    preload: tuple[str, ...] = ()

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
        env = environment(spec.resources, home=home, path=system_path())
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
                processes.kill_matching(lambda found: _label(found) == spec.label)
            started = True
            argv = [sys.executable, *SUPERVISOR_FLAGS, str(SUPERVISOR), _GUARDED, spec.label]
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
        return processes.kill_matching(lambda found: _label(found).startswith(label_prefix))


def _label(process: Process) -> str:
    """The label of the sandbox that a process belongs to, ''. A program that changed its own
    environment has none: supervisors end those."""
    words = process.cmdline()
    if words[-2:-1] == [_GUARDED]:  # a supervisor hides its environment from all but root
        return str(words[-1])
    return str(process.environ().get(_MARK, ""))
