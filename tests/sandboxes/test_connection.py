"""The harness's side of an open sandbox, against supervisors that lie, stop and vanish."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes.channel import ChannelLost
from pytest_mlab.sandboxes.connection import Kept, SupervisedConnection


def frame(header: Any, payload: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack(">II", len(text), len(payload)) + text + payload


class FakeSupervisor:
    """A channel whose supervisor answers every request with what ``answer`` makes of it."""

    def __init__(self, answer: Callable[[dict[str, Any]], bytes]) -> None:
        self.answer = answer
        self.waiting = b""
        self.closed = False

    def send(self, data: bytes, deadline: float | None) -> None:
        size = struct.unpack_from(">I", data)[0]
        request = json.loads(data[8 : 8 + size])
        if request["type"] == "open":
            self.waiting += frame(
                {"type": "hello", "id": request["id"], "protocol": 1, "pid": 2, "python": "3"}
            )
        else:
            self.waiting += self.answer(request)

    def receive(self, deadline: float | None) -> bytes:
        if not self.waiting:
            raise ChannelLost("it ended")
        data, self.waiting = self.waiting, b""
        return data

    def complaint(self) -> str:
        return "bwrap: no permission"

    def close(self) -> None:
        self.closed = True


def end(request: dict[str, Any], **fields: Any) -> bytes:
    return frame(
        {
            "type": "end",
            "id": request["id"],
            "status": 0,
            "signal": None,
            "killed_for": "",
            **fields,
        }
    )


def connect(
    answers: list[Callable[[dict[str, Any]], bytes]],
) -> tuple[SupervisedConnection, list[FakeSupervisor]]:
    """A connection whose n-th supervisor gives the n-th answer."""
    started: list[FakeSupervisor] = []

    def launch() -> FakeSupervisor:
        started.append(FakeSupervisor(answers[len(started)]))
        return started[-1]

    opening = {"workspace": "/workspace"}
    return (
        SupervisedConnection(launch, opening, python="python3", places={"/data": "/host/data"}),
        started,
    )


def out(request: dict[str, Any], data: bytes) -> bytes:
    return frame({"type": "output", "id": request["id"]}, data)


@pytest.mark.parametrize(
    "lie",
    [
        lambda request: b"",
        lambda request: b"HTTP/1.1 200 OK\r\n\r\n",
        lambda request: out(request, b"part") + b"\xff" * 100,
        lambda request: end({"id": request["id"] + 1}),
        lambda request: end(request, status=999),
        lambda request: frame({"type": "pong", "id": request["id"]}),
        lambda request: frame(
            {"type": "hello", "id": request["id"], "protocol": 1, "pid": 1, "python": ""}
        ),
    ],
)
def test_a_supervisor_that_breaks_the_protocol_is_replaced(
    lie: Callable[[dict[str, Any]], bytes],
) -> None:
    connection, started = connect([lie, lambda request: out(request, b"fine") + end(request)])
    done = connection.execute(["true"], timeout=1)
    assert (done.exit_status, done.killed_for, done.signal) == (None, "lost", None)
    assert [supervisor.closed for supervisor in started] == [True, False]
    assert connection.execute(["true"], timeout=1).output == b"fine"


def test_output_until_the_loss_is_kept() -> None:
    connection, _ = connect([lambda request: out(request, b"some"), lambda request: end(request)])
    seen: list[bytes] = []
    done = connection.execute(["true"], timeout=1, sink=seen.append)
    assert (done.output, done.output_bytes, seen) == (b"some", 4, [b"some"])


def test_a_supervisor_that_cannot_be_started_again_is_an_error() -> None:
    connection, started = connect([lambda request: b""])
    with pytest.raises(IndexError):
        connection.execute(["true"], timeout=1)
    assert started[0].closed


def test_a_start_that_fails_says_why_and_gives_everything_back() -> None:
    released: list[bool] = []
    silent = FakeSupervisor(lambda request: b"")
    silent.send = lambda data, deadline: None  # type: ignore[method-assign]
    with pytest.raises(SandboxError, match=r"it ended; bwrap: no permission"):
        SupervisedConnection(
            lambda: silent,
            {"workspace": "/workspace"},
            python="python3",
            places={},
            release=lambda: released.append(True),
        )
    assert silent.closed
    assert released == [True]


def test_a_program_that_is_not_there_is_an_error() -> None:
    def launch() -> FakeSupervisor:
        raise FileNotFoundError(2, "No such file or directory", "bwrap")

    with pytest.raises(SandboxError, match="bwrap"):
        SupervisedConnection(launch, {"workspace": "/"}, python="python3", places={})


def test_a_request_that_is_too_large_costs_no_supervisor() -> None:
    connection, started = connect([end])
    with pytest.raises(ValueError, match="standard input"):
        connection.execute(["true"], stdin=bytes((64 << 20) + 1))
    with pytest.raises(ValueError, match="empty command"):
        connection.execute([])
    assert connection.execute(["true"]).exit_status == 0
    assert len(started) == 1


def test_ping() -> None:
    connection, _ = connect([lambda request: frame({"type": "pong", "id": request["id"]})])
    assert connection.ping()
    connection, _ = connect([lambda request: b"?" * 100])
    assert not connection.ping()


def test_locate() -> None:
    connection, _ = connect([end])
    assert connection.locate(".") == "/workspace"
    assert connection.locate("a/b.csv") == "/workspace/a/b.csv"
    assert connection.locate("/data") == "/host/data"
    assert connection.locate("/data/train/x.csv") == "/host/data/train/x.csv"
    assert connection.locate("/database") == "/database"


@given(st.lists(st.binary(max_size=300)), st.integers(0, 400))
def test_kept_is_all_or_the_two_ends(pieces: list[bytes], keep: int) -> None:
    kept = Kept(keep)
    for piece in pieces:
        kept.add(piece)
    whole = b"".join(pieces)
    assert kept.total == len(whole)
    if len(whole) <= keep:
        assert kept.value() == whole
    else:
        assert kept.value() == whole[: (keep + 1) // 2] + whole[len(whole) - keep // 2 :]


def test_kept_does_not_grow_with_the_stream() -> None:
    kept = Kept(1000)
    for _ in range(1000):
        kept.add(bytes(10_000))
        assert len(kept._tail) < 100_000


def test_only_the_command_that_runs_is_cancelled() -> None:
    sent: list[str] = []

    def answer(request: dict[str, Any]) -> bytes:
        sent.append(f"{request['type']} {request['id']}")
        if request["type"] == "cancel":
            return end(request, status=None, killed_for="cancelled")
        return out(request, b"working")

    connection, _ = connect([answer])
    connection.cancel()
    done = connection.execute(["sleep", "600"], timeout=1, sink=lambda data: connection.cancel())
    assert (done.exit_status, done.killed_for, done.output) == (None, "cancelled", b"working")
    connection.cancel()
    assert sent == ["execute 2", "cancel 2"]


def test_the_relay_is_where_the_newest_supervisor_says() -> None:
    ports = iter([4001, 4002])
    hello = {"type": "hello", "protocol": 1, "pid": 2, "python": "3"}

    class Relaying(FakeSupervisor):
        def send(self, data: bytes, deadline: float | None) -> None:
            request = json.loads(data[8 : 8 + struct.unpack_from(">I", data)[0]])
            if request["type"] == "open":
                self.waiting += frame({**hello, "id": request["id"], "relay_port": next(ports)})

    connection = SupervisedConnection(
        lambda: Relaying(lambda request: b""),
        {"workspace": "/workspace"},
        python="python3",
        places={},
    )
    assert connection.relay_port == 4001
    assert connection.execute(["true"], timeout=1).killed_for == "lost"
    assert connection.relay_port == 4002
