"""Reading a trial's trace from another process while it grows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pytest_mlab.errors import StoreError
from pytest_mlab.store.events import Event
from pytest_mlab.store.journal import parse_event


class Follower:
    """Calls ``on_event`` for every event of the trace ``path``: in order, each once."""

    def __init__(self, path: Path, on_event: Callable[[Event], None]) -> None:
        self._path = path
        self._on_event = on_event
        self._offset = 0

    def catch_up(self) -> None:
        """Hand over the events that were appended since the last call. What ``on_event`` raises
        passes; the event does not come again."""
        try:
            file = open(self._path, "rb")  # noqa: SIM115 - closed by the block below
        except FileNotFoundError:
            return
        with file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # still being written, or torn: then the next writer cuts it off
                self._offset += len(line)
                try:
                    event = parse_event(line, str(self._path))
                except StoreError:
                    continue  # the finish phase reads the same line, fails and gives the reason
                self._on_event(event)
