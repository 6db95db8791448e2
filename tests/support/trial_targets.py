"""Functions that tests run in processes of their own: each misbehaves in one way.
``payload["note"]`` is a file that they write their process ids to, one a line."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

Payload = dict[str, Any]


def _note(payload: Payload) -> None:
    descriptor = os.open(payload["note"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    os.close(descriptor)


def _sleep_forever() -> None:
    while True:
        time.sleep(3600)


def facts(payload: Payload) -> None:
    """Write what the process knows about itself."""
    import json

    known = {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "group": os.getpgid(0),
        "parent": os.getppid(),
        "environ": dict(os.environ),
        "stdin": sys.stdin.read(),
        "int": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "chld": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
        "preloaded": payload.get("module", "") in sys.modules,
        "sockets": [link for link in _descriptors() if link.startswith("socket:")],
        "payload": payload,
    }
    Path(payload["out"]).write_text(json.dumps(known))


def _descriptors() -> list[str]:
    listed = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return [os.readlink(path) for path in listed if os.path.lexists(path)]


def prints(payload: Payload) -> None:
    """Write to stdout and stderr, without a newline."""
    sys.stdout.write("to stdout")
    sys.stderr.write("to stderr")


def raises(payload: Payload) -> None:
    """Raise."""
    raise RuntimeError("broken on purpose")


def exits(payload: Payload) -> None:
    """Leave without any clean-up."""
    os._exit(payload["status"])


def system_exit(payload: Payload) -> None:
    """Leave the polite way."""
    sys.exit(payload["status"])


def waits(payload: Payload) -> None:
    """Return once the file ``payload["until"]`` exists."""
    while not os.path.exists(payload["until"]):
        time.sleep(0.001)


def aborts(payload: Payload) -> None:
    """Die of a signal of its own."""
    os.kill(os.getpid(), signal.SIGSEGV)


def hangs(payload: Payload) -> None:
    """Never end, deaf to polite signals."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _note(payload)
    _sleep_forever()


def catches_all(payload: Payload) -> None:
    """Never end, whatever is raised inside."""
    _note(payload)
    while True:
        try:
            _sleep_forever()
        except BaseException:  # noqa: BLE001, PERF203 - the misbehaviour under test
            continue


def daemonizes(payload: Payload) -> None:
    """Leave a daemon behind: forked twice, a session of its own; return, or hang when
    ``payload["hang"]``."""
    read, write = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            _note(payload)
            os.write(write, b"x")
            _sleep_forever()
        os._exit(0)
    os.read(read, 1)
    os.waitpid(
        middle, 0
    )  # a middle process that is still on its way out would be counted as left behind
    if payload.get("hang"):
        _note(payload)
        _sleep_forever()


def bombs(payload: Payload) -> None:
    """Leave 50 processes behind in a deep and wide tree."""
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
            for _ in range(9):
                if os.fork() == 0:
                    _note(payload)
                    _sleep_forever()
            _note(payload)
            _sleep_forever()
    while (
        len(Path(payload["note"]).read_text().split()) < 50
        if Path(payload["note"]).exists()
        else True
    ):
        time.sleep(0.001)
