"""How bytes reach a supervisor and come back: the contract, and the two pipes of a child process
(backends ``local`` and ``bubblewrap``)."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import IO, Protocol

CHUNK = 1 << 18
PATIENCE = 12.0
"""Seconds for a supervisor to end its tree after its stdin has ended: more than it gives itself."""


class ChannelLost(Exception):
    """The supervisor is gone, or takes or gives no bytes until the deadline."""


class Channel(Protocol):
    """A way to talk to one supervisor. Deadlines are of ``time.monotonic()``; None waits for
    ever."""

    def send(self, data: bytes, deadline: float | None) -> None:
        """Hand over everything. Raises ChannelLost."""
        ...

    def receive(self, deadline: float | None) -> bytes:
        """Some bytes, at least one. Raises ChannelLost."""
        ...

    def complaint(self) -> str:
        """The end of what the backend and the supervisor wrote to stderr, for an error message."""
        ...

    def close(self) -> None:
        """End the supervisor and everything inside; returns when it is gone."""
        ...


class ProcessChannel:
    """A supervisor that was started as ``argv`` with exactly ``env`` and the descriptors
    ``pass_fds``."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int] = ()
    ) -> None:
        # A file, not a pipe: stderr is only read after a failure, and a full pipe would block the
        # supervisor.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by close()
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=dict(env),
                pass_fds=pass_fds,
                # Ctrl+C at the terminal reaches the harness alone, which closes the sandbox itself.
                start_new_session=True,
                bufsize=0,
                cwd="/",
            )
        except OSError:
            self._errors.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._stdout.fileno(), select.POLLIN)
        self._writable.register(self._stdin.fileno(), select.POLLOUT)
        os.set_blocking(self._stdin.fileno(), False)

    @property
    def pid(self) -> int:
        """The process that the harness started."""
        return self._process.pid

    def send(self, data: bytes, deadline: float | None) -> None:
        """Hand over everything. Raises ChannelLost."""
        send_all(partial(os.write, self._stdin.fileno()), self._writable, data, deadline)

    def receive(self, deadline: float | None) -> bytes:
        """Some bytes, at least one. Raises ChannelLost."""
        wait_for(self._readable, deadline)
        data = os.read(self._stdout.fileno(), CHUNK)
        if not data:
            raise ChannelLost("it ended")
        return data

    def complaint(self) -> str:
        """The last lines on stderr."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 2000))
        return self._errors.read().decode("utf-8", "replace").strip()

    def close(self) -> None:
        """End the supervisor, by the end of its stdin, by SIGTERM and by SIGKILL in turn."""
        self._stdin.close()
        self._stdout.close()
        for end in (self._process.terminate, self._process.kill, None):
            try:
                self._process.wait(PATIENCE)
                break
            except subprocess.TimeoutExpired:
                if end is not None:
                    end()
        self._errors.close()


def wait_for(poller: select.poll, deadline: float | None) -> None:
    """Wait for any event. Raises ChannelLost at the deadline."""
    if deadline is None:
        poller.poll()
    elif not poller.poll(max(0, int((deadline - time.monotonic()) * 1000) + 1)):
        raise ChannelLost("it does not answer")


def send_all(
    write: Callable[[memoryview], int], writable: select.poll, data: bytes, deadline: float | None
) -> None:
    """Hand over everything by the non-blocking ``write``. Raises ChannelLost."""
    left = memoryview(data)
    while left:
        try:
            left = left[write(left) :]
        except BlockingIOError:  # noqa: PERF203 - nothing beside the system call it is about
            wait_for(writable, deadline)
        except OSError as error:
            raise ChannelLost(f"it no longer takes requests ({error.strerror})") from None
