"""One trial's folder in a run directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_mlab.core.trial import TrialId, TrialResult
from pytest_mlab.errors import StoreError
from pytest_mlab.lib.atomic import write_text
from pytest_mlab.store import serial
from pytest_mlab.store.events import Event
from pytest_mlab.store.journal import Journal, read_events, read_last_event

RESULT = "result.json"
TRACE = "trace.jsonl"
AGENT_LOG = "agent.log"
"""What the agent's own process printed, its logging among it; absent when that is nothing."""
ATTEMPTS = "attempts"


class TrialDir:
    """The folder of trial ``id``: ``trace.jsonl`` while it runs, ``result.json`` once it is done.

    ``outputs``, ``logs`` and ``backups`` are its subfolders for whole outputs, the agent's notes
    and the files that edits replaced; all are made on first use."""

    def __init__(self, path: Path, trial: TrialId) -> None:
        self.path = path
        self.id = trial

    @property
    def outputs(self) -> Path:
        """Where outputs are kept whole."""
        return self._made("outputs")

    @property
    def logs(self) -> Path:
        """Where the agent keeps its own notes."""
        return self._made("logs")

    @property
    def backups(self) -> Path:
        """Where an edit keeps what it replaced."""
        return self._made("backups")

    def result(self) -> TrialResult | None:
        """The result, None while there is none. Raises StoreError when it is of another format or
        another trial."""
        file = self.path / RESULT
        try:
            text = file.read_bytes()
        except FileNotFoundError:
            return None
        result = serial.from_json(TrialResult, text, str(file))
        if result.id != self.id:
            raise StoreError(
                f"{file} is the result of {result.id.name}, expected {self.id.name}; "
                "it was copied there by hand: remove it and resume the run"
            )
        return result

    def write_result(self, result: TrialResult) -> None:
        """Write the result, once: it is the last file of a trial. Raises StoreError when there is
        one already."""
        file = self.path / RESULT
        if file.exists():
            raise StoreError(
                f"{file} exists already; a trial ends once (use restart() to run it again)"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(file, serial.to_json(result), durable=True)

    def journal(self) -> Journal:
        """The trace, to append to."""
        self.path.mkdir(parents=True, exist_ok=True)
        return Journal(self.path / TRACE)

    def events(self) -> Iterator[Event]:
        """The trace's events, read lazily; a torn last line is left out."""
        return read_events(self.path / TRACE)

    def last_event(self) -> Event | None:
        """The trace's last whole event, reading only the file's end."""
        return read_last_event(self.path / TRACE)

    def how_far(self) -> str:
        """How far the trial came, as its trace shows: ``after 3 steps``; '' without a trace.

        Reads only the file's end. Raises StoreError when the trace is damaged."""
        event = self.last_event()
        if event is None:
            return ""
        ledger = getattr(event, "ledger", None)
        if ledger is None or not ledger.steps:
            return "before its first step"
        return f"after {ledger.steps} step{'' if ledger.steps == 1 else 's'}"

    def restart(self) -> None:
        """Put an earlier attempt's files aside in ``attempts/<n>/``, so that the trial starts
        afresh."""
        names = [n for n in _names(self.path) if n != ATTEMPTS]
        if not names:
            return
        number = 1 + max(self._attempts(), default=0)
        aside = self._made(ATTEMPTS) / str(number)
        aside.mkdir()
        # The result goes first: what is left behind by a kill in between is an unfinished trial,
        # never a wrong one.
        for name in sorted(names, key=lambda n: n != RESULT):
            os.rename(self.path / name, aside / name)

    def attempts(self) -> tuple[TrialDir, ...]:
        """The folders of earlier attempts, the oldest first; one that was interrupted has no
        result."""
        folder = self.path / ATTEMPTS
        return tuple(TrialDir(folder / str(n), self.id) for n in sorted(self._attempts()))

    def _attempts(self) -> list[int]:
        return [int(name) for name in _names(self.path / ATTEMPTS) if name.isdecimal()]

    def _made(self, name: str) -> Path:
        folder = self.path / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
