"""Where every attempt at a provider passes: what all workers of a run share decides when it may go
out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pytest_mlab.core.model_api import ModelReply, ModelRequest
from pytest_mlab.errors import ModelError


class Turn(Protocol):
    """One attempt that was let through; it ends by one of the two calls."""

    @property
    def waited(self) -> float:
        """Seconds that it waited."""
        ...

    def answered(self, reply: ModelReply) -> None:
        """The provider has answered."""
        ...

    def failed(self, error: ModelError, delay: float | None) -> None:
        """It has not; the next attempt comes after ``delay`` seconds, or never (None)."""
        ...


class Gate(Protocol):
    """Lets attempts through."""

    def enter(self, request: ModelRequest) -> Turn:
        """Wait until an attempt may go out. Raises a ModelError when it never may, or not before
        the request's end; its ``waited`` says how long that took."""
        ...


@dataclass(frozen=True)
class FreeTurn:
    """Nothing was waited for, and nobody wants to know."""

    waited: float = 0.0

    def answered(self, reply: ModelReply) -> None:
        """Nothing to do."""

    def failed(self, error: ModelError, delay: float | None) -> None:
        """Nothing to do."""


class OpenGate:
    """Lets everything through at once."""

    def enter(self, request: ModelRequest) -> Turn:
        """At once."""
        return FreeTurn()
