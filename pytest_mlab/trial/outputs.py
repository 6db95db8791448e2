"""What a command prints: its bytes in a file of the trial, and the text that a terminal would show,
of which the agent sees the two ends."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from pytest_mlab.lib.terminal import Screen
from pytest_mlab.store.trialdir import TrialDir
from pytest_mlab.trial.actions.base import SHOWN

FILE_LIMIT = 64 << 20
"""Bytes of output that are kept in a file at most; what comes after is counted and dropped."""

_CHUNK = 1 << 20


class Output:
    """A sink for output, to be closed as a context manager.

    The file ``path`` is made, with its folder, only where the text that is shown is not the output
    itself: for more than ``threshold`` bytes, and for progress bars and colours. Most steps print
    little, and a file for each would be one more file in the run directory."""

    def __init__(self, path: Path, threshold: int = SHOWN, limit: int = FILE_LIMIT) -> None:
        self.path = path
        self.total = 0
        """Bytes that came."""
        self._threshold = threshold
        self._limit = limit
        self._written = 0
        self._waiting: list[bytes] = []
        self._file: BinaryIO | None = None
        self._ends = Ends(SHOWN)
        self._screen = Screen(self._ends)

    def __call__(self, chunk: bytes) -> None:
        """Take some output."""
        self.total += len(chunk)
        self._screen.feed(chunk)
        if self._file is not None:
            self._write(chunk)
            return
        self._waiting.append(chunk)
        if self.total > self._threshold:
            self._make()

    def _make(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "wb")  # noqa: SIM115 (closed when the whole object is)
        for earlier in self._waiting:
            self._write(earlier)
        self._waiting.clear()

    def _write(self, chunk: bytes) -> None:
        assert self._file is not None
        kept = chunk[: self._limit - self._written]
        self._file.write(kept)
        self._written += len(kept)

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._screen.end()
        if self._file is None and self._screen.changed:
            self._make()
        if self._file is not None:
            if self.total > self._limit:
                self._file.write(
                    f"\n[... {self.total - self._limit} bytes were not kept ...]\n".encode()
                )
            self._file.close()

    # --- afterwards ---

    @property
    def made(self) -> bool:
        """True when there is a file."""
        return self._file is not None

    @property
    def cut_at(self) -> int:
        """The first character that :meth:`text` leaves out, from 1."""
        return self._ends.half + 1

    def name(self, root: Path) -> str:
        """The file relative to ``root``, '' without one."""
        return os.path.relpath(self.path, root) if self.made else ""

    def text(self, hint: str = "") -> str:
        """What is shown; ``hint`` says where the rest is, in the place of what is left out."""
        return self._ends.text(hint)

    def kept(self, root: Path) -> str:
        """A note on where the whole output is, '' without a file."""
        if not self.made:
            return ""
        if self.total > self._limit:
            return (
                f"; the first {self._limit >> 20} MiB of {self.total} bytes are kept as"
                f" {self.name(root)} of the trial"
            )
        return f"; all {self.total} bytes are kept as {self.name(root)} of the trial"


class Ends:
    """Keeps the first and last half of ``limit`` characters of a text that comes in parts."""

    def __init__(self, limit: int) -> None:
        self.half = limit // 2
        self.total = 0
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_size = 0

    def __call__(self, text: str) -> None:
        """Take a part."""
        self.total += len(text)
        taken = self.half - len(self._head)
        self._head += text[:taken]
        if not (text := text[taken:][-self.half :]):
            return
        self._tail.append(text)
        self._tail_size += len(text)
        while self._tail_size - len(self._tail[0]) >= self.half:
            self._tail_size -= len(self._tail.popleft())

    def text(self, hint: str = "") -> str:
        """The two ends, and how much is left out between them."""
        tail = "".join(self._tail)[-self.half :]
        left_out = self.total - len(self._head) - len(tail)
        if left_out == 0:
            return self._head + tail
        return f"{self._head}\n[... {left_out} characters left out{hint} ...]\n{tail}"


def step_path(trial: TrialDir, step: int) -> Path:
    """Where a step's output is kept."""
    # Not trial.outputs, which makes the folder: few trials need one.
    return trial.path / "outputs" / f"step-{step:04d}.txt"


def steps_kept(trial: TrialDir) -> list[int]:
    """The steps whose output is kept."""
    return sorted(int(path.stem[5:]) for path in trial.path.glob("outputs/step-*.txt"))


def shown_parts(path: Path) -> Iterator[str]:
    """A kept output as a terminal shows it, in parts."""
    parts: list[str] = []
    screen = Screen(parts.append)
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            screen.feed(chunk)
            yield from parts
            parts.clear()
    screen.end()
    yield from parts
