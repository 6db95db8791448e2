"""A trace in which no secret is ever written."""

from __future__ import annotations

from pathlib import Path

from pytest_mlab.store.events import Event
from pytest_mlab.store.journal import Journal
from pytest_mlab.trial.process.child_env import Redactor


class RedactedJournal(Journal):
    """A journal whose events have every secret that ``redact`` knows replaced by its name."""

    def __init__(self, path: Path, redact: Redactor) -> None:
        super().__init__(path)
        self._redact = redact

    def write(self, event: Event) -> None:
        """Append ``event`` without secrets. Raises StoreError."""
        if self._redact.active:
            content = event.model_dump()
            clean = self._redact.tree(content)
            if clean != content:
                event = type(event).model_validate(clean)
        super().write(event)
