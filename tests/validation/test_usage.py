"""A sandbox that says how much memory was used, and changes nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mlab.core.sandbox_api import Connection, SandboxSpec
from pytest_mlab.sandboxes import make
from pytest_mlab.validation.usage import MeteredSandbox


@pytest.fixture
def sandbox() -> MeteredSandbox:
    return MeteredSandbox(make("local"))


@pytest.fixture
def connection(sandbox: MeteredSandbox, tmp_path: Path) -> Iterator[Connection]:
    opened = sandbox.open(SandboxSpec(tmp_path, "mlab-test-usage"))
    try:
        yield opened
    finally:
        opened.close()


def test_it_is_the_sandbox(sandbox: MeteredSandbox) -> None:
    assert (sandbox.name, sandbox.isolated, sandbox.mounts, sandbox.check()) == (
        "local",
        False,
        False,
        "",
    )
    assert sandbox.sweep("mlab-test-nobody") == 0


def test_memory_of_the_largest_process(sandbox: MeteredSandbox, connection: Connection) -> None:
    connection.execute([connection.python, "-c", "pass"])
    small = sandbox.peak_mb
    assert 1 < small < 60
    connection.execute([connection.python, "-c", "b'x' * (100 << 20)"])
    assert sandbox.peak_mb > small + 90


def test_output_and_status_are_the_commands(connection: Connection) -> None:
    code = "import sys; sys.stdout.write(sys.stdin.read() * 2); sys.exit(3)"
    streamed: list[bytes] = []
    done = connection.execute([connection.python, "-c", code], stdin=b"ab\n", sink=streamed.append)
    assert b"".join(streamed) == b"ab\nab\n"
    assert (done.output, done.output_bytes, done.exit_status, done.killed_for) == (
        b"ab\nab\n",
        6,
        3,
        "",
    )


def test_a_signal_is_the_commands(connection: Connection) -> None:
    done = connection.execute([connection.python, "-c", "import os; os.abort()"])
    assert (done.exit_status, done.killed_for, done.signal) == (None, "signal", 6)


def test_a_timeout_kills_all(connection: Connection) -> None:
    streamed: list[bytes] = []
    code = "import time; print('begun', flush=True); time.sleep(600)"
    done = connection.execute([connection.python, "-c", code], timeout=1.0, sink=streamed.append)
    assert done.killed_for == "timeout"
    assert b"".join(streamed) == b"begun\n"


def test_the_repl_is_the_sandboxes(connection: Connection) -> None:
    assert connection.repl("print(6 * 7)").output.strip() == b"42"
    assert Path(connection.locate("a")).name == "a"
