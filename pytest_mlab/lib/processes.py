"""Who descends from whom, and which processes an owner left behind (Linux, by ``/proc``).

Every process that a worker starts for its trials carries the worker's mark in its environment
(``MLAB_OWNER``): process-id namespace, process id and start time of the worker. A marked process
whose worker is gone is an orphan, whatever sessions and groups it has moved to, and whoever its
parent is now."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Iterable, Iterator

MARK = "MLAB_OWNER"

_PAUSE = 0.002  # seconds between two looks at processes that were just killed


def _stat(pid: int) -> list[str]:
    """Fields of ``/proc/<pid>/stat`` from the state on; empty when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def start_time(pid: int) -> str:
    """When ``pid`` started, in clock ticks since boot; '' when there is no such process (or only
    its remains)."""
    fields = _stat(pid)
    return fields[19] if fields and fields[0] not in "ZX" else ""


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def descendants(root: int) -> list[int]:
    """Children of ``root`` and theirs, nearest first."""
    children: dict[int, list[int]] = {}
    for pid in _pids():
        fields = _stat(pid)
        if fields:
            children.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, ())]
        found += level
    return found


def kill_all(pids: Iterable[int]) -> None:
    """SIGKILL each; those that are gone, or belong to somebody else, are left."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def new_mark() -> str:
    """A mark of this process, different each time."""
    return f"{_namespace()}:{os.getpid()}:{start_time(os.getpid())}:{secrets.token_hex(4)}"


def _namespace() -> str:
    return os.readlink("/proc/self/ns/pid")


def _mark_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return ""
    prefix = MARK.encode() + b"="
    return next(
        (
            entry[len(prefix) :].decode("ascii", "replace")
            for entry in entries
            if entry.startswith(prefix)
        ),
        "",
    )


def marked(mark: str) -> list[int]:
    """Processes that carry ``mark``, this one excepted."""
    return [pid for pid in _pids() if pid != os.getpid() and _mark_of(pid) == mark]


def orphans() -> list[int]:
    """Processes of this process-id namespace whose mark names a process that is no more."""
    found = []
    for pid in _pids():
        parts = _mark_of(pid).rsplit(":", 3)
        if len(parts) != 4 or parts[0] != _namespace() or not parts[1].isdigit():
            continue
        if start_time(int(parts[1])) != parts[2]:
            found.append(pid)
    return found


def kill_marked(mark: str, *, patience: float = 5.0) -> int:
    """Kill all that carry ``mark`` until none is left; how many there were. Gives up after
    ``patience`` seconds."""
    seen: set[int] = set()
    until = time.monotonic() + patience
    while (left := marked(mark)) and time.monotonic() < until:
        seen.update(left)
        kill_all(left)
        time.sleep(_PAUSE)
    return len(seen)


def kill_children(*, patience: float = 10.0) -> tuple[int, int]:
    """Kill and reap all descendants of this process until none is left: (how many were alive, how
    many would not die).

    Meant for a child subreaper: every orphan below it becomes its child, so that "no child" means
    "no descendant"."""
    seen: set[int] = set()
    until = time.monotonic() + patience
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return len(seen), 0
        left = [pid for pid in descendants(os.getpid()) if start_time(pid)]
        seen.update(left)
        if time.monotonic() >= until:
            return len(seen), len(left)
        kill_all(left)
        time.sleep(_PAUSE)
