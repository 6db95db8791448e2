"""Reading a trial's trace and log from another process while they grow."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pytest_mlab.errors import StoreError
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.store.events import Event
from pytest_mlab.store.journal import parse_event


@contextmanager
def _read_from(path: Path, offset: int) -> Iterator[IO[bytes]]:
    """The file from ``offset`` on; empty while there is none."""
    try:
        file: IO[bytes] = open(path, "rb")  # noqa: SIM115 - closed by the block below
    except FileNotFoundError:
        file = io.BytesIO()
    with file:
        file.seek(offset)
        yield file


class Follower:
    """Calls ``on_event`` for every event of the trace ``path``: in order, each once."""

    def __init__(self, path: Path, on_event: Callable[[Event], None]) -> None:
        self._path = path
        self._on_event = on_event
        self._offset = 0

    def catch_up(self, *, ended: bool = False) -> None:
        """Hand over the events that were appended since the last call. What ``on_event`` raises
        passes; the event does not come again. ``ended``: no more will come."""
        with _read_from(self._path, self._offset) as file:
            for line in file:
                if not line.endswith(b"\n"):
                    return  # still being written, or torn: then the next writer cuts it off
                self._offset += len(line)
                try:
                    event = parse_event(line, str(self._path))
                except StoreError:
                    continue  # the finish phase reads the same line, fails and gives the reason
                self._on_event(event)


class LogFollower:
    """Calls ``on_text`` with what is appended to the log ``path``, in whole lines and without
    secrets."""

    def __init__(self, path: Path, on_text: Callable[[str], None]) -> None:
        self._path = path
        self._on_text = on_text
        self._redact = Redactor(os.environ)
        self._offset = 0

    def catch_up(self, *, ended: bool = False) -> None:
        """Hand over the lines that were appended since the last call; with ``ended`` a last line
        without its end as well."""
        with _read_from(self._path, self._offset) as file:
            while piece := file.read(_PIECE):
                # Whole lines, because a secret that is cut in two would not be recognised. A piece
                # that is full without one is a line that is too long to wait for.
                if not ended and len(piece) < _PIECE:
                    piece = piece[: piece.rfind(b"\n") + 1]
                if not piece:
                    return
                self._offset += len(piece)
                file.seek(self._offset)
                self._on_text(self._redact(piece.decode("utf-8", "replace")))


_PIECE = 1 << 20
