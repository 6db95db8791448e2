"""Descendants, and the processes that an owner left behind (Linux).

Every process that a worker starts for its trials carries the worker's mark in its environment
(``MLAB_OWNER``): process-id namespace, process id and start time of the worker. A marked process
whose worker is gone is an orphan, whatever sessions and groups it has moved to, and whoever its
parent is now."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator

import psutil

MARK = "MLAB_OWNER"

_PAUSE = 0.002
"""Seconds between two looks at processes that were just killed. A killed process of a few MiB is
gone after about one millisecond."""


def start_time(pid: int) -> str:
    """When ``pid`` started, in clock ticks since boot; '' when there is no such process (or only
    its remains)."""
    # Not psutil's create_time(): that is wall-clock time, which moves when the clock is set, and
    # marks are compared by processes that may have started an hour apart.
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The second field is the program's name in parentheses, which may hold blanks and
            # parentheses.
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    state, started = fields[0], fields[19]
    return "" if state in "ZX" else started


def descendants(root: int) -> list[int]:
    """Children of ``root`` and theirs; none when it is gone."""
    try:
        return [process.pid for process in psutil.Process(root).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_all(pids: Iterable[int]) -> None:
    """SIGKILL each; those that are gone, or belong to another user, are left."""
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            psutil.Process(pid).kill()


def new_mark() -> str:
    """A mark of this process, different each time."""
    return f"{_namespace()}:{os.getpid()}:{start_time(os.getpid())}:{secrets.token_hex(4)}"


def _namespace() -> str:
    return os.readlink("/proc/self/ns/pid")


def _mark_of(process: psutil.Process) -> str:
    return str(process.environ().get(MARK, ""))


def _matching(matches: Callable[[psutil.Process], bool]) -> Iterator[int]:
    """The processes, this one excepted, for which ``matches`` is true. Those that end meanwhile, or
    do not show what it asks for, are left out."""
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error):
            if pid != os.getpid() and matches(psutil.Process(pid)):
                yield pid


def orphans() -> list[int]:
    """Processes of this process-id namespace whose mark names a process that is gone."""

    def orphaned(process: psutil.Process) -> bool:
        parts = _mark_of(process).rsplit(":", 3)
        if len(parts) != 4 or parts[0] != _namespace() or not parts[1].isdigit():
            return False
        # The start time as well, because the number may belong to a new process by now.
        return start_time(int(parts[1])) != parts[2]

    return list(_matching(orphaned))


def kill_marked(mark: str) -> int:
    """Kill all that carry ``mark`` until none is left; how many there were."""
    return kill_matching(lambda process: _mark_of(process) == mark)


def kill_matching(matches: Callable[[psutil.Process], bool], *, patience: float = 5.0) -> int:
    """Kill all processes but this one for which ``matches`` is true until none is left; how many
    there were. Gives up after ``patience`` seconds."""
    seen: set[int] = set()
    until = time.monotonic() + patience
    # More than one pass: what was alive during the first may have forked.
    while (left := list(_matching(matches))) and time.monotonic() < until:
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
