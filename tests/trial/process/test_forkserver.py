"""The server's side of the protocol, spoken by hand; what it is for is tested in test_watch.py."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from pytest_mlab.lib import processes
from pytest_mlab.trial.process import forkserver


class Speaker:
    """A worker whose messages the test writes."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(30)
        with theirs:
            self.server = subprocess.Popen(
                [sys.executable, "-I", forkserver.__file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={},
            )
        self.reader: IO[str] = self.socket.makefile("r")

    def say(self, **message: Any) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> dict[str, Any]:
        heard: dict[str, Any] = json.loads(self.reader.readline())
        return heard

    def wait_until_read(self) -> None:
        unread = bytearray(4)
        while True:
            fcntl.ioctl(self.socket, termios.TIOCOUTQ, unread)
            if not any(unread):
                return
            time.sleep(0.001)

    def hang_up(self) -> None:
        self.reader.close()
        self.socket.close()


@pytest.fixture
def speaker() -> Iterator[Speaker]:
    speaker = Speaker()
    yield speaker
    speaker.hang_up()
    assert speaker.server.wait(30) is not None


def run(speaker: Speaker, tmp_path: Path, function: str, request: int = 1) -> None:
    speaker.say(
        op="run",
        id=request,
        target=f"tests.support.trial_targets:{function}",
        payload={"note": str(tmp_path / "pids"), "until": str(tmp_path / "go")},
        log=str(tmp_path / "log"),
    )


def test_hello_in_pieces(speaker: Speaker) -> None:
    hello = json.dumps({"op": "hello", "sys_path": sys.path, "preload": []}).encode() + b"\n"
    speaker.socket.sendall(hello[:10])
    speaker.wait_until_read()
    speaker.socket.sendall(hello[10:])
    assert speaker.receive() == {
        "event": "ready",
        "pid": speaker.server.pid,
        "threads": [],
        "failed": {},
    }


def test_worker_that_leaves_before_hello(speaker: Speaker) -> None:
    speaker.hang_up()
    assert speaker.server.wait(30) == 0


def test_kill(speaker: Speaker, tmp_path: Path) -> None:
    speaker.say(op="hello", sys_path=sys.path, preload=[])
    assert speaker.receive()["event"] == "ready"
    run(speaker, tmp_path, "hangs", request=7)
    assert speaker.receive()["event"] == "started"
    speaker.say(op="kill", id=7)
    assert speaker.receive() == {
        "event": "ended",
        "id": 7,
        "status": -signal.SIGKILL,
        "leftovers": 0,
        "stuck": 0,
    }


def test_kill_of_another_request_is_ignored(speaker: Speaker, tmp_path: Path) -> None:
    speaker.say(op="hello", sys_path=sys.path, preload=[])
    assert speaker.receive()["event"] == "ready"
    run(speaker, tmp_path, "waits", request=7)
    assert speaker.receive()["event"] == "started"
    speaker.say(op="kill", id=6)
    speaker.wait_until_read()
    (tmp_path / "go").touch()
    assert speaker.receive()["status"] == 0


def test_process_dies_with_its_server(speaker: Speaker, tmp_path: Path) -> None:
    speaker.say(op="hello", sys_path=sys.path, preload=[])
    assert speaker.receive()["event"] == "ready"
    run(speaker, tmp_path, "hangs")
    pid = speaker.receive()["pid"]
    until = time.monotonic() + 30
    while not (tmp_path / "pids").exists() and time.monotonic() < until:
        time.sleep(0.001)
    speaker.server.kill()
    speaker.server.wait()
    while (
        processes.start_time(pid) and time.monotonic() < until
    ):  # only the kernel is left to kill it
        time.sleep(0.001)
    assert processes.start_time(pid) == ""


def test_polite_end_kills_what_runs(speaker: Speaker, tmp_path: Path) -> None:
    speaker.say(op="hello", sys_path=sys.path, preload=[])
    assert speaker.receive()["event"] == "ready"
    run(speaker, tmp_path, "hangs")
    pid = speaker.receive()["pid"]
    os.kill(speaker.server.pid, signal.SIGTERM)
    assert speaker.server.wait(30) == 0
    assert processes.start_time(pid) == ""
