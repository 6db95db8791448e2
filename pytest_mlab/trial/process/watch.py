"""The worker's side of the fork server: start it on first use, send requests, wait, kill at the
deadline."""

from __future__ import annotations

import _socket
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal

from pytest_mlab.errors import MlabError
from pytest_mlab.lib import processes
from pytest_mlab.trial.process import forkserver

_START_SECONDS = 180.0  # preloading on a cold disk
# From a request to its confirmation; the server itself gives up on leftovers after 10 s.
_ANSWER_SECONDS = 60.0
_WAIT_SECONDS = 0.1  # between two calls of on_wait
_EXIT_SECONDS = 15.0  # from the end of the connection to the server's own


class ServerLost(MlabError):
    """The fork server ended or stopped answering; the message holds the end of its output."""


@dataclass(frozen=True)
class Ending:
    """How a process ended.

    ``how`` is ``exited`` (``status``: exit status), ``signalled`` (``status``: signal number, not
    sent by us), ``deadline`` (killed by us when its time was over) or ``server_lost`` (the fork
    server died, and it with it). ``leftovers`` counts processes that it left behind and that were
    killed, ``stuck`` those that would not die (in an uninterruptible system call); ``seconds`` is
    wall time."""

    how: Literal["exited", "signalled", "deadline", "server_lost"]
    status: int = 0
    seconds: float = 0.0
    leftovers: int = 0
    stuck: int = 0

    @property
    def clean(self) -> bool:
        """True for exit status 0."""
        return self.how == "exited" and self.status == 0

    def __str__(self) -> str:
        if self.how == "exited":
            return f"exited with status {self.status}"
        if self.how == "signalled":
            with contextlib.suppress(ValueError):
                return f"died of {signal.Signals(self.status).name}"
            return f"died of signal {self.status}"
        if self.how == "deadline":
            return "was killed at its deadline"
        return "was lost with its fork server"


class Watch:
    """Runs functions in processes of their own, one at a time, by a fork server that lives as long
    as this object.

    ``environ`` is the whole environment of the server and its processes; ``preload`` names modules
    that it imports once. ``clock`` gives monotonic seconds."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        preload: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._environ = dict(environ)
        self._preload = list(preload)
        self._clock = clock
        self._mark = processes.new_mark()
        self._server: subprocess.Popen[bytes] | None = None
        self._channel: _socket.socket | None = None
        self._errors: IO[bytes] | None = None
        self._buffer = b""
        self._requests = 0
        self.threads: tuple[str, ...] = ()
        """Names of the threads that preloading left in the server (none, normally)."""
        self.failed: dict[str, str] = {}
        """Modules that could not be preloaded, with the reason."""

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    @property
    def server_pid(self) -> int | None:
        """The fork server's process id, None while there is none."""
        return self._server.pid if self._server else None

    def run(
        self,
        target: str,
        payload: Mapping[str, Any],
        *,
        log: Path,
        seconds: float | None = None,
        on_start: Callable[[int], None] | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> Ending:
        """Run ``target`` ("module:function") with ``payload`` (JSON values) and wait until it and
        all that it started are gone. ``log`` gets its stdout and stderr; after ``seconds`` it is
        killed. ``on_start`` is called with its process id, ``on_wait`` about ten times a second
        while it runs.

        Raises ServerLost when no server can be started. Whatever else is raised while waiting
        (KeyboardInterrupt, a time limit's exception, an error of ``on_wait``) passes after the
        process has been killed."""
        self._ensure_server()
        self._requests += 1
        request = self._requests
        begin = self._clock()
        message = {
            "op": "run",
            "id": request,
            "target": target,
            "payload": dict(payload),
            "log": str(log.absolute()),
        }
        try:
            self._send(message)
            started = self._receive(_ANSWER_SECONDS)
            if on_start is not None:
                on_start(started["pid"])
            return self._wait(request, begin, seconds, on_wait)
        except ServerLost:
            self._abandon()
            # A result and not an error: the trace still holds what the process did, and the next
            # call starts a new server.
            return Ending("server_lost", seconds=self._clock() - begin)
        except BaseException:
            self._abandon()  # nothing may outlive the caller's interest in it
            raise

    def _wait(
        self, request: int, begin: float, seconds: float | None, on_wait: Callable[[], None] | None
    ) -> Ending:
        until = None if seconds is None else begin + seconds
        answer = self._receive_until(until, on_wait)
        late = answer is None
        if answer is None:
            # When the process has ended by itself meanwhile, the server ignores the request, and
            # the answer that follows is the end that it had sent already.
            self._send({"op": "kill", "id": request})
            answer = self._receive(_ANSWER_SECONDS)
        status = answer["status"]
        how: Literal["exited", "signalled", "deadline"] = "exited"
        if late:
            how = "deadline"
        elif status < 0:
            how = "signalled"
        return Ending(how, abs(status), self._clock() - begin, answer["leftovers"], answer["stuck"])

    # --- the server ---

    def _ensure_server(self) -> None:
        if self._server is not None and self._server.poll() is None:
            return
        self._abandon()
        processes.kill_all(
            processes.orphans()
        )  # of workers that were killed together with their servers
        # Not socket.socketpair(): what forbids tests the network (pytest-socket, fixtures of
        # users) replaces socket.socket, which it is made of, by a class that raises.
        ours, theirs = _socket.socketpair()
        # A file and not a pipe: a pipe that is read only after a failure could fill up and block
        # the server.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        with contextlib.closing(theirs):
            self._server = subprocess.Popen(
                # -I: the modules to import come from our own sys.path, not from the variables of
                # the environment
                [sys.executable, "-I", forkserver.__file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                env={**self._environ, processes.MARK: self._mark},
                # Signals that a terminal or a CI job sends to the worker's process group must not
                # end a trial: the worker decides that, by closing the connection.
                start_new_session=True,
            )
        self._channel, self._buffer = ours, b""
        try:
            self._send(
                {
                    "op": "hello",
                    # Relative entries, such as '' for the working directory, would change their
                    # meaning in a process that changes its directory.
                    "sys_path": [os.path.abspath(entry) for entry in sys.path],
                    "preload": self._preload,
                }
            )
            ready = self._receive(_START_SECONDS)
        except BaseException:
            self._abandon()
            raise
        self.threads, self.failed = tuple(ready["threads"]), ready["failed"]

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._channel is not None
        try:
            self._channel.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise ServerLost(self._last_words(str(error))) from error

    def _receive(self, seconds: float) -> dict[str, Any]:
        """The next message, within ``seconds`` of real time. Raises ServerLost when there is
        none."""
        until = time.monotonic() + seconds
        while (message := self._next(max(0.0, until - time.monotonic()))) is None:
            if time.monotonic() >= until:
                raise ServerLost(self._last_words(f"no answer within {seconds:g} s"))
        return message

    def _receive_until(
        self, until: float | None, on_wait: Callable[[], None] | None
    ) -> dict[str, Any] | None:
        """The next message; None when the clock reaches ``until`` first. Raises ServerLost."""
        while until is None or self._clock() < until:
            # The deadline may pass between the two readings, and select() refuses a negative wait.
            left = None if until is None else max(0.0, until - self._clock())
            if on_wait is not None:
                left = _WAIT_SECONDS if left is None else min(left, _WAIT_SECONDS)
            message = self._next(left)
            if message is not None:
                return message
            if on_wait is not None:
                on_wait()
        return None

    def _next(self, seconds: float | None) -> dict[str, Any] | None:
        """The next message if it comes within ``seconds``; a part of one is kept for the next
        call."""
        assert self._channel is not None
        if b"\n" not in self._buffer:
            if not select.select([self._channel], [], [], seconds)[0]:
                return None
            try:
                data = self._channel.recv(1 << 16)
            # The kernel reports a reset, and not an end, when the server died before it had read
            # everything that was sent.
            except ConnectionResetError:
                data = b""
            if not data:
                raise ServerLost(self._last_words("it closed the connection"))
            self._buffer += data
        line, found, rest = self._buffer.partition(b"\n")
        if not found:
            return None
        self._buffer = rest
        message: dict[str, Any] = json.loads(line)
        return message

    def _last_words(self, what: str) -> str:
        words = ""
        if self._errors is not None:
            self._errors.seek(0)
            words = self._errors.read().decode("utf-8", "replace").strip()[-2000:]
        message = f"the fork server of trials is gone: {what}"
        return f"{message}; the end of its output:\n{words}" if words else message

    def _abandon(self) -> None:
        """End the server and everything below it. Closing the connection is enough for a server
        that works; the mark in the environment finds what a hanging one leaves."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._server is not None:
            try:
                # A server whose connection is closed kills all its descendants before it exits, so
                # a kill before that would leave them to the search by mark.
                self._server.wait(_EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            self._server = None
            processes.kill_marked(self._mark)
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def close(self) -> None:
        """Kill what runs and end the server. May be called twice; the next ``run`` starts a new
        one."""
        self._abandon()
