"""What a trial does at this moment: one small file in its folder, overwritten at each change.

The trace tells what was done. A script that runs for an hour is not in it before its end, and the
heartbeat has to name it meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FILE = "now.json"
PROGRAM = "program "
"""The beginning of ``what`` while a program of the agent's with a model runs."""


@dataclass(frozen=True)
class UnderWay:
    """``what`` is under way since ``since`` (Unix seconds), in words; '' is the agent's own code.
    ``step`` is the number of the step, None where the trial has not come to steps."""

    what: str
    since: float
    step: int | None = None


class Activity:
    """Writes what a trial does into ``folder``. Work may overlap, also in threads: what began last
    is shown. :meth:`close` when no more comes."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._file = folder / FILE
        self._now = now
        self._fd = -1
        self._length = 0
        self._stack: list[UnderWay] = []
        self._lock = threading.Lock()

    @contextmanager
    def doing(self, what: str, step: int | None = None) -> Iterator[None]:
        """Inside the block, ``what`` is under way."""
        entry = UnderWay(what, self._now(), step)
        with self._lock:
            self._stack.append(entry)
            self._write(entry)
        try:
            yield
        finally:
            with self._lock:
                # By identity: two threads may wait for the same thing since the same moment.
                self._stack = [other for other in self._stack if other is not entry]
                if self._stack:
                    self._write(self._stack[-1])
                else:
                    self._write(None if step is None else UnderWay("", self._now(), step))

    def _write(self, entry: UnderWay | None) -> None:
        # It is for people who wait: a full disk has other ways to end a trial. Not atomic, since a
        # reader takes a torn file for none.
        with contextlib.suppress(OSError):
            if entry is None:
                # A folder without any file is that of a trial which has not begun.
                self.close()
                self._file.unlink()
                return
            if self._fd < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                self._fd, self._length = os.open(self._file, flags, 0o644), 0
            # One system call at each change, of which a step has four: opening the file anew took
            # 0.14 ms, a sixth of a step. Blanks cover what stood there before.
            text = json.dumps(vars(entry)).encode().ljust(self._length)
            self._length = len(text)
            os.pwrite(self._fd, text, 0)

    def close(self) -> None:
        """Close the file, which stays as it is. May be called again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def read(folder: Path) -> UnderWay | None:
    """What the trial in ``folder`` does; None where that is not known."""
    try:
        found = json.loads((folder / FILE).read_bytes())
        return UnderWay(str(found["what"]), float(found["since"]), found["step"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
