"""The trace of a trial: ``trace.jsonl``, one event a line, appended and never rewritten.

Every event is one ``write`` to a file opened for appending, so that a killed process leaves whole
lines and at most one torn one at the end. Readers are lazy and stop before a torn last line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pytest_mlab.errors import StoreError
from pytest_mlab.store.events import EVENT_VERSION, Event

MAX_LINE = 1 << 20
"""Bytes of a line at most; longer texts in an event are cut in the middle, and say so."""

_TAIL = 1 << 16


class Journal:
    """An open trace, to append to. A context manager; the process that writes is the only writer at
    a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._drop_torn_tail()

    def write(self, event: Event) -> None:
        """Append ``event``. Raises StoreError when the disk does not take it or the journal is
        closed."""
        if self._fd < 0:
            raise StoreError(f"{self.path} is closed; an event came after the trial's end")
        view = memoryview(_line(event))
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            raise StoreError(
                f"{self.path} takes no more events ({error}); free the disk and resume the run with"
                " --mlab-retry=infra"
            ) from error

    def close(self) -> None:
        """Wait until every event is on the disk, and close. May be called again."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            # Once, at the end: a sync of each event would cost the disk's latency at every step.
            # A killed process loses nothing that it has written; only a crashed machine does.
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _drop_torn_tail(self) -> None:
        # Left by a process that was killed. An event appended to it would make one damaged line in
        # the middle of the trace, which readers refuse.
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            os.ftruncate(self._fd, _last_newline(self._fd, size) + 1)


def read_events(path: Path) -> Iterator[Event]:
    """The events of a trace, one at a time. Nothing when there is no trace; a torn last line is
    left out.

    Raises StoreError when a line before the last is damaged, or was written by a newer version.
    """
    if not path.exists():
        return
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            yield parse_event(line, f"{path}, line {number}")


def read_last_event(path: Path) -> Event | None:
    """The last whole event of a trace, None when there is none; reads only the end of the file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        end = _last_newline(fd, os.fstat(fd).st_size)
        if end < 0:
            return None
        start = _last_newline(fd, end) + 1
        return parse_event(os.pread(fd, end - start, start), f"{path}, last line")
    finally:
        os.close(fd)


def parse_event(line: bytes, where: str) -> Event:
    """The event that a line holds; ``where`` names it in errors. Raises StoreError."""
    try:
        event = _adapter().validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise StoreError(
            f"{where}: no event of the trace ({first['msg']}); the file was edited or comes from"
            " another version: read it with the version that wrote it, or run the trial again"
        ) from None
    if event.v > EVENT_VERSION:
        raise StoreError(
            f"{where}: event version {event.v}, this version of pytest-mlab reads up to"
            f" {EVENT_VERSION}; read it with the version that wrote it"
        )
    return event


@cache
def _adapter() -> TypeAdapter[Event]:
    return TypeAdapter(Event)


def _last_newline(fd: int, before: int) -> int:
    """Position of the last newline in the first ``before`` bytes, -1 when there is none."""
    while before > 0:
        start = max(0, before - _TAIL)
        found = os.pread(fd, before - start, start).rfind(b"\n")
        if found >= 0:
            return start + found
        before = start
    return -1


def _line(event: Event) -> bytes:
    try:
        line = event.model_dump_json().encode() + b"\n"
    except (ValueError, UnicodeError):  # a lone surrogate that came in as JSON text
        line = _shortened(event, MAX_LINE)
    limit = MAX_LINE // 4
    while len(line) > MAX_LINE and limit > 64:
        line = _shortened(event, limit)
        limit //= 4
    if len(line) > MAX_LINE:
        raise StoreError(
            f"an event of type {event.type} takes {len(line)} bytes with all its texts cut; it is"
            " too large"
        )
    return line


def _shortened(event: Event, limit: int) -> bytes:
    data = _tidy(event.model_dump(), limit)
    return type(event).model_validate(data).model_dump_json().encode() + b"\n"


def _tidy(value: Any, limit: int) -> Any:
    """``value`` with texts of at most ``limit`` characters and without lone surrogates."""
    if isinstance(value, str):
        clean = value.encode("utf-8", "replace").decode()
        if len(clean) <= limit:
            return clean
        half = limit // 2
        return (
            f"{clean[:half]}[… {len(clean) - 2 * half} characters left out of the trace"
            f" …]{clean[-half:]}"
        )
    if isinstance(value, dict):
        return {_tidy(k, limit): _tidy(v, limit) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tidy(v, limit) for v in value]
    return value
