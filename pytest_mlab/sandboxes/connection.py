"""An open sandbox: requests to its supervisor, and a new supervisor when that one is lost."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pytest_mlab.core.sandbox_api import Execution
from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes.channel import Channel, ChannelLost
from pytest_mlab.sandboxes.frames import BadFrame, Decoder, End, Hello, Output, Pong, Reply, encode

START_SECONDS = 30.0
GRACE = 15.0
"""Seconds that a supervisor has, after a command's timeout, to kill the tree and to answer."""

Sink = Callable[[bytes], None]


class Kept:
    """The first and the last half of at most ``keep`` bytes of a stream of any length."""

    def __init__(self, keep: int) -> None:
        self._head_size = (keep + 1) // 2
        self._tail_size = keep // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next piece of the stream."""
        self.total += len(data)
        room = self._head_size - len(self._head)
        if room:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Trimmed now and then only: to move the tail at every piece would cost its length each
        # time.
        if len(self._tail) > 2 * self._tail_size + (1 << 16):
            self._trim()

    def _trim(self) -> None:
        del self._tail[: max(0, len(self._tail) - self._tail_size)]

    def value(self) -> bytes:
        """The bytes kept, without a mark at the cut."""
        self._trim()
        return bytes(self._head + self._tail)


class SupervisedConnection:
    """The one implementation of :class:`pytest_mlab.core.sandbox_api.Connection` that all backends
    share.

    ``launch`` starts the backend's supervisor and returns the channel to it, ``opening`` is the
    supervisor's first request, ``workspace`` the working directory inside, ``places`` where the
    absolute targets of mounts are found inside, ``before`` is called ahead of every request,
    ``release`` after the last supervisor has ended."""

    def __init__(
        self,
        launch: Callable[[], Channel],
        opening: Mapping[str, Any],
        *,
        python: str,
        places: Mapping[str, str],
        before: Callable[[], None] = lambda: None,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self.python = python
        self.relay_port = 0
        self._launch = launch
        self._opening = opening
        self._workspace = PurePosixPath(opening["workspace"])
        self._places = {
            PurePosixPath(target): PurePosixPath(place) for target, place in places.items()
        }
        self._before = before
        self._release = release
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._underway = 0
        self._number = 0
        self._closed = False
        self._channel: Channel | None = None
        self._decoder = Decoder()
        self._replies: list[Reply] = []
        try:
            self._start()
        except BaseException:
            self._release()
            raise

    def locate(self, target: str) -> str:
        """The path inside of a mount's target or of a path relative to the workspace."""
        path = PurePosixPath(target)
        # The innermost first: a mount may lie inside another one.
        for mounted in (path, *path.parents):
            if mounted in self._places:
                return str(self._places[mounted] / path.relative_to(mounted))
        return str(self._workspace / path)

    def execute(
        self,
        argv: Sequence[str],
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        keep: int = 1 << 20,
        sink: Sink | None = None,
    ) -> Execution:
        """Run ``argv``; see :class:`pytest_mlab.core.sandbox_api.Connection`."""
        if not argv:
            raise ValueError("an empty command")
        header = {
            "type": "execute",
            "argv": list(argv),
            "env": dict(env) if env else None,
            "timeout": timeout,
        }
        return self._request(header, stdin, timeout, keep, sink)

    def repl(self, code: str, *, timeout: float | None = None, keep: int = 1 << 20) -> Execution:
        """Run ``code`` in the persistent Python process; see
        :class:`pytest_mlab.core.sandbox_api.Connection`.

        ``exit_status`` is 0, 1 after an exception (its traceback is in the output), or what
        ``sys.exit`` was given (which leaves the variables in place). Where they are lost, the
        output says so."""
        return self._request(
            {"type": "repl", "timeout": timeout},
            code.encode("utf-8", "replace"),
            timeout,
            keep,
            None,
        )

    def cancel(self) -> None:
        """Kill the command that another thread is waiting for, if any; its Execution says
        ``cancelled``."""
        # Not under _lock: the thread that waits for the command holds it all the while.
        with self._sending:
            if self._underway:
                request = encode({"type": "cancel", "id": self._underway})
                with contextlib.suppress(ChannelLost):  # execute() in the other thread reports it
                    self._send(request, time.monotonic() + GRACE)

    def ping(self, timeout: float = GRACE) -> bool:
        """Whether the supervisor answers within ``timeout`` seconds."""
        with self._lock:
            try:
                self._send(self._numbered({"type": "ping"}), time.monotonic() + timeout)
                return isinstance(self._next_reply(time.monotonic() + timeout), Pong)
            except (ChannelLost, BadFrame):
                return False

    def close(self) -> None:
        """Kill everything inside and give the sandbox back; a second time does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                self._drop()
            finally:
                self._release()

    # --- one request ---

    def _request(
        self,
        header: Mapping[str, Any],
        payload: bytes,
        timeout: float | None,
        keep: int,
        sink: Sink | None,
    ) -> Execution:
        with self._lock:
            if self._closed:
                raise SandboxError("the sandbox is closed; open a new one")
            if self._channel is None:
                self._start()
            self._before()
            started = time.monotonic()
            kept = Kept(keep)
            deadline = None if timeout is None else started + timeout + GRACE
            request = self._numbered(header, payload)
            try:
                end = self._converse(request, deadline, kept, sink)
            except (ChannelLost, BadFrame):
                self._drop()
                # Taken before the new supervisor starts: that time is not the command's.
                seconds = time.monotonic() - started
                self._start()
                return Execution(None, kept.value(), kept.total, seconds, "lost")
            except BaseException:
                # Interrupted, or the sink raised: the rest of this command's replies is on its way.
                self._drop()
                raise
            seconds = time.monotonic() - started
            number = end.signal if end.killed_for == "signal" else None
            return Execution(end.status, kept.value(), kept.total, seconds, end.killed_for, number)

    def _converse(
        self, request: bytes, deadline: float | None, kept: Kept, sink: Sink | None
    ) -> End:
        # Sent and noted under one lock, so that a cancel never overtakes the command it names: the
        # supervisor ignores those of a command that it is not running.
        with self._sending:
            self._send(request, deadline)
            self._underway = self._number
        try:
            while True:
                reply = self._next_reply(deadline)
                if isinstance(reply, End):
                    return reply
                if not isinstance(reply, Output):
                    raise BadFrame(f"{type(reply).__name__} in answer to a command")
                kept.add(reply.data)
                if sink is not None:
                    sink(reply.data)
        finally:
            with self._sending:
                self._underway = 0

    def _numbered(self, header: Mapping[str, Any], payload: bytes = b"") -> bytes:
        self._number += 1
        return encode({**header, "id": self._number}, payload)

    def _send(self, request: bytes, deadline: float | None) -> None:
        if self._channel is None:
            raise ChannelLost("it is not running")
        self._channel.send(request, deadline)

    def _next_reply(self, deadline: float | None) -> Reply:
        if self._channel is None:
            raise ChannelLost("it is not running")
        while not self._replies:
            self._replies = list(self._decoder.feed(self._channel.receive(deadline)))
        reply = self._replies.pop(0)
        if reply.id != self._number:
            raise BadFrame(f"a reply to request {reply.id}, not {self._number}")
        return reply

    # --- the supervisor's life ---

    def _start(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        self._decoder, self._replies = Decoder(), []
        try:
            self._channel = self._launch()
        except OSError as error:
            raise SandboxError(f"the sandbox cannot be started: {error}") from error
        try:
            self._send(self._numbered({"type": "open", **self._opening}), deadline)
            reply = self._next_reply(deadline)
            if not isinstance(reply, Hello):
                raise BadFrame(f"{type(reply).__name__} in place of a greeting")
            self.relay_port = reply.relay_port
        except (ChannelLost, BadFrame) as error:
            complaint = self._channel.complaint()
            self._drop()
            raise SandboxError(
                f"the sandbox's supervisor cannot be talked to: {error}; {complaint}"
            ) from error
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
