"""What is particular to the local sandbox: no namespace ends what a command started."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from pytest_mlab.core.sandbox_api import Mount, SandboxSpec
from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes.local import Local
from pytest_mlab.testing.conformance import HOLD, eventually, is_free, run, text


def test_a_mount_below_the_workspace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="copy it there"):
        Local().open(SandboxSpec(tmp_path, "t", mounts=(Mount(tmp_path, "data"),)))


def test_an_absolute_mount_is_found_where_it_is(tmp_path: Path) -> None:
    connection = Local().open(SandboxSpec(tmp_path, "t", mounts=(Mount(tmp_path, "/data"),)))
    connection.close()
    assert connection.locate("/data/x.csv") == f"{tmp_path}/x.csv"
    assert connection.locate("x.csv") == f"{tmp_path}/x.csv"


def test_what_a_killed_supervisor_leaves_is_killed(tmp_path: Path) -> None:
    # Neither a parent, nor a session, nor an environment connects the survivor with its sandbox any
    # more.
    code = (
        HOLD + "os.set_inheritable(held.fileno(), True)\n"
        "supervisor = os.getppid()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.execve('/bin/sleep', ['sleep', '600'], {})\n"
        "    os._exit(0)\n"
        "os.wait(); os.kill(supervisor, signal.SIGKILL); time.sleep(600)"
    )
    connection = Local().open(SandboxSpec(tmp_path, "test-killed"))
    try:
        assert run(connection, code).killed_for == "lost"
        assert is_free(tmp_path)
        assert text(run(connection, "print('on')")) == "on"
    finally:
        connection.close()


def test_sweep_kills_what_supervisor_and_guard_left(tmp_path: Path) -> None:
    label = f"test-sweep-{os.getpid()}"
    connection = Local().open(SandboxSpec(tmp_path, label))
    try:
        ids = text(
            connection.repl(
                HOLD + "supervisor = os.getppid()\nstat = open(f'/proc/{supervisor}/stat').read()\n"
                "print(supervisor, stat.rpartition(')')[2].split()[1])"
            )
        )
        supervisor, guard = map(int, ids.split())
        os.kill(guard, signal.SIGKILL)
        os.waitid(os.P_PID, guard, os.WEXITED | os.WNOWAIT)
        os.kill(supervisor, signal.SIGSTOP)
        assert not is_free(tmp_path)
        assert Local().sweep(label) == 2  # the supervisor, stopped as it is, and the REPL
        assert eventually(lambda: is_free(tmp_path))
    finally:
        os.kill(supervisor, signal.SIGKILL)
        connection.close()


def test_its_home_is_removed(tmp_path: Path) -> None:
    connection = Local().open(SandboxSpec(tmp_path, "t"))
    home = Path(text(run(connection, "import os; print(os.environ['HOME'])")))
    assert home.is_dir()
    connection.close()
    assert not home.exists()
