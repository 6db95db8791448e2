"""A warm server that forks one process for each phase of a trial, waits for its end and kills
everything that it leaves behind.

A program of its own, which :mod:`pytest_mlab.trial.process.watch` starts as
``python -I forkserver.py FD``; ``FD`` is a socket inherited from the worker. Both sides write one
JSON object a line:

    worker → server   {"op": "hello", "sys_path": […], "preload": ["module", …]}
                      {"op": "run", "id": 1, "target": "module:function", "payload": {…},
                       "log": "/path"}
                      {"op": "kill", "id": 1}
    server → worker   {"event": "ready", "pid": …, "threads": […], "failed": {"module": "error"}}
                      {"event": "started", "id": 1, "pid": …}
                      {"event": "ended", "id": 1, "status": …, "leftovers": …, "stuck": …}

``status`` is the exit status, or minus the signal's number. One process runs at a time. When it has
ended, everything else that descends from the server is a leftover and is killed: the server is a
child subreaper, so daemons become its children. When the worker dies, the server kills everything
and exits; when the server dies, the kernel kills the process."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
import warnings
from types import TracebackType
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STATUS_RAISED = 70
"""Exit status of a process whose function raised."""

# A worker that is killed closes its end of the socket, which wakes the server at once. But a
# process that the worker has forked may still hold that end: so the parent is looked at as well.
_PARENT_CHECK_SECONDS = 1.0


def _prctl(option: int, value: int) -> None:
    # Python has no prctl() of its own. With use_errno, ctypes keeps errno where later C calls do
    # not overwrite it.
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


class _Lines:
    """JSON objects, one a line, over a socket."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self._buffer = b""

    def send(self, message: dict[str, Any]) -> None:
        self.channel.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> list[dict[str, Any]] | None:
        """The messages that have arrived (waits for bytes); None at the end of the stream."""
        data = self.channel.recv(1 << 16)
        if not data:
            return None
        # A stream socket keeps no message boundaries: a message may arrive in pieces, or several at
        # once.
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [json.loads(line) for line in lines]


class _ExitWith:
    """Ends the process by ``os._exit`` at the end of the block, whatever the block raised.

    A forked child has inherited the server's exit handlers and open buffers: an ordinary exit would
    run and flush them a second time."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        status = STATUS_RAISED
        try:
            if error is None:
                status = 0
            elif isinstance(error, SystemExit) and (
                # sys.exit("text") is a failure in Python, so it counts as raised and its text is
                # printed.
                error.code is None or isinstance(error.code, int)
            ):
                status = error.code or 0
            else:
                traceback.print_exception(kind, error, error.__traceback__)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status & 0xFF)


def _redirect(log: str) -> None:
    """Output goes to ``log``; stdin is the server's own: /dev/null."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)
    # A crash in C code then leaves a Python traceback in the log, from which the runner reads the
    # place of the crash.
    faulthandler.enable()


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 and later warn when a process forks that has more than one thread. The server
        # itself has one; the names of those that a preloaded package left are in the "ready"
        # message. They do not exist in the child, which uses nothing but modules that were imported
        # completely before the fork.
        warnings.filterwarnings(
            "ignore",
            message=".*use of fork\\(\\) may lead to deadlocks",
            category=DeprecationWarning,
        )
        return os.fork()


class Server:
    """Answers one worker until it is gone."""

    def __init__(self, channel: socket.socket) -> None:
        self._lines = _Lines(channel)
        self._wake, self._waker = socket.socketpair()
        self._stopping = False
        self._current: tuple[int, int] | None = None  # (request id, process id)

    def serve(self) -> None:
        """Serve until the worker dies or SIGTERM comes; then kill all children."""
        # Here, because this file runs as a program: the worker's first message brings sys.path.
        from pytest_mlab.lib import processes

        self._kill_children = processes.kill_children
        self._catch_signals()
        parent = os.getppid()
        try:
            while not self._stopping and os.getppid() == parent:
                ready, _, _ = select.select(
                    [self._lines.channel, self._wake], [], [], _PARENT_CHECK_SECONDS
                )
                if self._wake in ready:
                    self._wake.recv(1 << 10)
                    self._reap()
                if self._lines.channel in ready:
                    self._handle()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the worker is gone
        finally:
            self._kill_children()

    def _catch_signals(self) -> None:
        # select() does not return for a SIGCHLD by itself (PEP 475): Python writes a byte to the
        # wakeup descriptor, and that is what it waits for.
        for end in (self._wake, self._waker):
            end.setblocking(False)
        # A full buffer is harmless: one byte is enough to wake the loop, and _reap() collects all
        # children that have died.
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)
        # Ctrl-C is for the worker: it decides, and ends the server by closing the connection.
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _handle(self) -> None:
        messages = self._lines.receive()
        if messages is None:
            self._stopping = True
            return
        for message in messages:
            if message["op"] == "run":
                self._run(message)
            elif self._current is not None and self._current[0] == message["id"]:
                self._kill(self._current[1])

    def _run(self, request: dict[str, Any]) -> None:
        # Unflushed text would be copied by the fork and written twice.
        server = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = _fork()
        if pid == 0:
            self._child(request, server)
        self._current = (request["id"], pid)
        self._lines.send({"event": "started", "id": request["id"], "pid": pid})

    def _child(self, request: dict[str, Any], server: int) -> NoReturn:
        with _ExitWith():
            # A group of its own: _kill() kills the whole group, and the server must not be in it.
            os.setsid()
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != server:  # it died before the line above took effect
                raise SystemExit(STATUS_RAISED)
            # The wakeup socket is shared with the server, which the child's signals would wake.
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            # An ignored signal stays ignored across fork and exec, in the agent's programs too.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for end in (self._lines.channel, self._wake, self._waker):
                end.close()
            _redirect(request["log"])
            # Imported only now, after the redirection: an error of the import is in the trial's
            # log.
            module, _, function = request["target"].partition(":")
            getattr(importlib.import_module(module), function)(request["payload"])
        # The block above always ends the process. Type checkers cannot know that.
        raise AssertionError("unreachable")

    def _kill(self, pid: int) -> None:
        try:
            # Processes that have left this group are killed as leftovers, when this one has been
            # reaped.
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(pid, signal.SIGKILL)  # it has not made its own group yet

    def _reap(self) -> None:
        """Collect dead children. When one was the trial's process, kill its leftovers and send its
        end."""
        while True:
            try:
                # The kernel may send one SIGCHLD for several dead children, so this loops until
                # none is left. Process ids other than the trial's are orphans that this subreaper
                # has adopted.
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self._current is not None and pid == self._current[1]:
                request, self._current = self._current[0], None
                # Before the message, because the worker reads the trial's files as soon as it
                # arrives, and leftovers could still write to them.
                leftovers, stuck = self._kill_children()
                self._lines.send(
                    {
                        "event": "ended",
                        "id": request,
                        "status": os.waitstatus_to_exitcode(status),
                        "leftovers": leftovers,
                        "stuck": stuck,
                    }
                )
                return


def _preload(modules: list[str]) -> dict[str, str]:
    """Import each; the reasons why some cannot be imported, by name (the process that needs one
    raises the same). A module that raises another error ends the server, and its traceback becomes
    the worker's error."""
    failed = {}
    for name in modules:
        if error := _import_error(name):
            failed[name] = error
    return failed


def _import_error(name: str) -> str:
    try:
        importlib.import_module(name)
    except ImportError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _threads() -> list[str]:
    """Names of all threads but the main one; threads that Python does not know are counted as
    ``native``."""
    known = [
        thread.name for thread in threading.enumerate() if thread is not threading.main_thread()
    ]
    return known + ["native"] * (len(os.listdir("/proc/self/task")) - 1 - len(known))


def main() -> None:
    """Serve the worker at the other end of the socket whose number is the first argument."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    # It is inheritable because the worker passed it to this program. Programs that a trial starts
    # must not get it: they could send messages in the server's name.
    channel.set_inheritable(False)
    lines = _Lines(channel)
    hello: list[dict[str, Any]] | None = []
    while hello == []:
        hello = lines.receive()
    if hello is None:
        return
    # The server runs with -I, so neither PYTHONPATH nor the script's folder is in sys.path.
    sys.path[:] = hello[0]["sys_path"]
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    gc.disable()  # all that is loaded stays; looking for garbage in it takes a fifth of the time
    failed = _preload(hello[0]["preload"])
    gc.enable()
    # The collector writes to the header of every object that it visits, and so makes a child copy
    # pages that it only reads. Frozen objects are never visited.
    gc.collect()
    gc.freeze()
    lines.send({"event": "ready", "pid": os.getpid(), "threads": _threads(), "failed": failed})
    Server(channel).serve()


if __name__ == "__main__":
    main()
