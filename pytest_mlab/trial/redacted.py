"""A trace in which no secret is ever written."""

from __future__ import annotations

from pathlib import Path

from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.store.events import Event
from pytest_mlab.store.journal import Journal


class RedactedJournal(Journal):
    """A journal that takes secrets out of its events with ``redact``."""

    def __init__(self, path: Path, redact: Redactor) -> None:
        super().__init__(path)
        self._redact = redact

    def write(self, event: Event) -> None:
        """Append ``event`` without secrets. Raises StoreError."""
        if self._may_hold_secret(event):
            event = type(event).model_validate(self._redact.tree(event.model_dump()))
        super().write(event)

    def _may_hold_secret(self, event: Event) -> bool:
        # Looking through the event's JSON once is quicker than through each of its texts: a step
        # has a hundred of them, and secrets are rare.
        try:
            text = event.model_dump_json()
        except (ValueError, UnicodeError):  # a lone surrogate, which the journal replaces
            return True
        return self._redact(text) != text
