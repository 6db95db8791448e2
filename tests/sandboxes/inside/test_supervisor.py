"""Parts of the supervisor that the conformance suite does not reach."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.sandbox_api import SandboxSpec
from pytest_mlab.core.task import Resources
from pytest_mlab.sandboxes.inside import supervisor
from pytest_mlab.sandboxes.local import Local
from pytest_mlab.testing.conformance import run, text


@pytest.fixture
def wire() -> Iterator[tuple[supervisor.Wire, int, int]]:
    """A wire, and the other ends of its two pipes: (wire, to write requests to, to read replies
    from)."""
    request_read, request_write = os.pipe()
    reply_read, reply_write = os.pipe()
    yield supervisor.Wire(request_read, reply_write), request_write, reply_read
    for fd in (request_read, request_write, reply_read, reply_write):
        os.close(fd)


Ends = tuple[supervisor.Wire, int, int]


def test_requests_come_in_pieces(wire: Ends) -> None:
    here, write, _ = wire
    message = struct.pack(">II", 8, 3) + b'{"id":1}' + b"abc"
    for byte in message[:-1]:
        os.write(write, bytes([byte]))
        here.receive()
        assert here.next_request() is None
    os.write(write, message[-1:] + message)
    here.receive()
    assert here.next_request() == ({"id": 1}, b"abc")
    assert here.next_request() == ({"id": 1}, b"abc")
    assert here.next_request() is None


def test_a_request_out_of_bounds_ends_it(wire: Ends) -> None:
    here, write, _ = wire
    os.write(write, struct.pack(">II", 1, supervisor.MAX_PAYLOAD + 1))
    here.receive()
    with pytest.raises(supervisor.HangUp):
        here.next_request()


def test_a_slow_reader_holds_one_frame_up(wire: Ends) -> None:
    here, _, read = wire
    big = b"x" * (1 << 20)
    here.queue({"type": "output", "id": 1}, big)
    received, pieces = b"", 0
    while here.busy:
        received += os.read(read, 1 << 16)
        here.push()
        pieces += 1
    received += os.read(read, 1 << 16)
    assert pieces > 10
    assert received.endswith(big[-100:])
    assert len(received) > len(big)


def test_processes_without_the_kernels_children_files(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "sleep 600 & echo up; read x; kill $!; wait"
    others = supervisor.family()  # of other tests, and of libraries that they loaded
    with subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        try:
            shell.stdout.readline()
            quick = supervisor.family()
            monkeypatch.setattr(supervisor, "HAS_CHILDREN_FILES", False)
            assert supervisor.family() == quick
            assert len(quick) == len(others) + 2
            assert quick[shell.pid] == 1
            assert supervisor.family(spared=shell.pid) == others
        finally:
            shell.stdin.close()


def test_disk_use_counts_links_once_and_skips_what_is_mounted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    once = supervisor.disk_used([str(tmp_path)], ())
    assert once >= 100_000
    (tmp_path / "linked").hardlink_to(tmp_path / "file")
    (tmp_path / "pointer").symlink_to("/usr")
    assert supervisor.disk_used([str(tmp_path)], ()) == once
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "data").write_bytes(b"x" * 100_000)
    assert supervisor.disk_used([str(tmp_path)], ()) > once
    assert supervisor.disk_used([str(tmp_path)], {str(tmp_path / "mounted")}) == once
    assert supervisor.disk_used([str(tmp_path / "not there")], ()) == 0


def interact(
    source: str, scope: dict[str, Any], capsys: pytest.CaptureFixture[str], flags: int = 0
) -> tuple[int, str]:
    status, _ = supervisor.run_interactively(textwrap.dedent(source), "<python 1>", scope, flags)
    captured = capsys.readouterr()
    return status, captured.out + captured.err


@pytest.mark.parametrize(
    ("source", "status", "shown"),
    [
        ("", 0, ""),
        ("# nothing", 0, ""),
        ("1\n2", 0, "1\n2\n"),
        ("if True:\n    3", 0, "3\n"),
        ("import sys\nsys.exit()", 0, ""),
        ("import sys\nsys.exit(7)", 7, ""),
        ("import sys\nsys.exit('bye')", 1, "bye\n"),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt"),
        ("class A(BaseException): pass\nraise A('x')", 1, "A: x"),
        ("1 +", 1, "SyntaxError"),
        ("'\\0'", 0, "'\\x00'"),
        ("a\0b", 1, "null byte"),
    ],
)
def test_code_is_run_as_the_interpreter_would(
    source: str, status: int, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done, output = interact(source, {}, capsys)
    assert done == status
    assert shown in output if shown else output == ""
    assert "supervisor.py" not in output


def test_future_statements_stay_in_force() -> None:
    scope: dict[str, Any] = {}
    _, flags = supervisor.run_interactively(
        "from __future__ import annotations", "<python 1>", scope, 0
    )
    status, _ = supervisor.run_interactively(
        "def f(x: not_defined): pass", "<python 2>", scope, flags
    )
    assert (status, scope["f"].__annotations__) == (0, {"x": "not_defined"})


def test_each_process_is_bounded_by_the_kernel_too(tmp_path: Path) -> None:
    spec = SandboxSpec(tmp_path, "t", resources=Resources(memory_mb=300, disk_mb=20))
    connection = Local().open(spec)
    try:
        code = (
            "from resource import *\nprint([getrlimit(r)[1] >> 20 for r in (RLIMIT_DATA,"
            " RLIMIT_FSIZE, RLIMIT_CORE)])"
        )
        assert text(run(connection, code)) == "[300, 20, 0]"
    finally:
        connection.close()


def test_outside_a_namespace_no_signal_goes_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    request = {
        "memory_mb": 1,
        "disk_mb": 1,
        "pids": 1,
        "measured": [],
        "unmeasured": [],
        "own_processes": True,
    }
    assert not supervisor.Limits(request).own_processes
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert supervisor.Limits(request).own_processes


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13", "3.14"])
def test_it_runs_under_other_pythons(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container the supervisor's Python is the image's."""
    found = subprocess.run(
        ["sh", "-c", f"python{version} -c 'import sys; print(sys.executable)'"],
        capture_output=True,
        text=True,
    )
    if found.returncode:
        pytest.skip(f"python{version} is not installed")
    monkeypatch.setattr(sys, "executable", found.stdout.strip())
    connection = Local().open(SandboxSpec(tmp_path, "t"))
    try:
        assert text(run(connection, "import sys; print('%d.%d' % sys.version_info[:2])")) == version
        connection.repl("x = 2")
        assert text(connection.repl("x * 21")) == "42"
        assert run(connection, "import time; time.sleep(600)", timeout=0.2).killed_for == "timeout"
    finally:
        connection.close()
