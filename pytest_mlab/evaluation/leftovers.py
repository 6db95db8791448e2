"""Processes that code under test leaves behind: find them wherever they detached to, and end them.
Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator

_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37


class Leftovers:
    """This process's descendants that were not there before, ``known`` ones excepted."""

    def __init__(self) -> None:
        self.known = descendants(os.getpid())

    def find(self) -> set[int]:
        """Process ids; zombies do not count."""
        return descendants(os.getpid()) - self.known

    def kill(self) -> None:
        """Kill them until none is left: one that is killed late may have forked before."""
        while found := self.find():
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for pid in found:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)  # ours once its parent has ended


@contextlib.contextmanager
def watching() -> Iterator[Leftovers]:
    """Adopt every process that a descendant abandons (``setsid``, double fork), and kill what is
    left at the end."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = ctypes.c_int()
    libc.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    leftovers = Leftovers()
    try:
        yield leftovers
    finally:
        leftovers.kill()
        libc.prctl(_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


def descendants(root: int) -> set[int]:
    """All living processes below ``root``."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (parent := _parent(int(name))):
            children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    pending = [root]
    while pending:
        below = children.get(pending.pop(), [])
        found.update(below)
        pending += below
    return found


def _parent(pid: int) -> int:
    """The parent's process id; 0 for a process that has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The program's name stands in brackets and may itself hold blanks and brackets.
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if state in (b"Z", b"X") else int(parent)
