"""The gate of a run: limits a minute, a provider's wish to be left alone, and keys that were
refused count for all of its workers."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from pytest_mlab.core.model_api import ModelReply, ModelRequest
from pytest_mlab.core.trial import slug
from pytest_mlab.errors import (
    AuthError,
    ModelError,
    ProviderDownError,
    ProviderError,
    QuotaError,
    RateLimitError,
)
from pytest_mlab.models.rates import MINUTE, Rates, Window
from pytest_mlab.models.retry import number_from
from pytest_mlab.models.tokens import prompt_tokens

_FIRST_REPLY = 1000
"""Tokens that a reply is expected to have before there was one, unless the request says how many at
most."""

_LOOK = 1.0
"""Seconds after which who waits looks again whether the endpoint was given up, or may be asked
earlier."""

_MOMENT = 0.001
"""Seconds; the least that is called a wait."""

_KINDS: Mapping[str, type[ModelError]] = {"AuthError": AuthError, "QuotaError": QuotaError}
"""What no waiting mends, for anybody who asks the same endpoint."""

_SPREAD = 0.1
"""Who was told to wait comes back later by up to this share of the wait, so that not all come back
at once."""


def window_from(environ: Mapping[str, str]) -> float:
    """Seconds of the stretches over which limits a minute are kept: MLAB_MODEL_WINDOW, else 60.
    Raises ConfigError."""
    return number_from(environ, "MLAB_MODEL_WINDOW", MINUTE, at_least=0.1)


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


class SharedState(Protocol):
    """What the workers of a run know in common, by endpoint."""

    def given_up(self) -> Mapping[str, GivenUp]:
        """Why endpoints are not to be asked any more."""
        ...

    def give_up(self, endpoint: str, kind: str, reason: str) -> None:
        """Nobody is to ask it any more."""
        ...

    def held(self, endpoint: str) -> float:
        """Seconds for which nobody is to ask it."""
        ...

    def hold(self, endpoint: str, seconds: float) -> None:
        """Nobody is to ask it for so long."""
        ...


class GivenUp(Protocol):
    """The kind of error (its class) and its message."""

    @property
    def kind(self) -> str:
        """``AuthError`` or ``QuotaError``."""
        ...

    @property
    def reason(self) -> str:
        """What the provider said."""
        ...


@dataclass(frozen=True)
class Line:
    """Where requests to one endpoint line up; None: no limit a minute. ``max_tokens`` is the
    longest reply that the run's settings allow, whatever a request says."""

    endpoint: str
    rpm: int | None = None
    tpm: int | None = None
    max_tokens: int | None = None

    def rates(self, folder: Path, seconds: float) -> Rates | None:
        """The line's counts, kept over stretches of ``seconds``; None without a limit."""
        if self.rpm is None and self.tpm is None:
            return None
        requests = None if self.rpm is None else Window.of(self.rpm, seconds)
        tokens = None if self.tpm is None else Window.of(self.tpm, seconds)
        return Rates(folder / f"{slug(self.endpoint)}.sqlite", requests, tokens)


@dataclass(frozen=True)
class RunGate:
    """Implements :class:`pytest_mlab.models.limiter.Gate` for one trial.

    ``line`` finds the line of the model that a request names; ``charge`` hears that model's name
    and the dollars of each answer (None: unknown). ``folder`` holds the counts; ``window`` is the
    length in seconds of the stretches over which limits a minute are kept. ``note`` hears what
    somebody should know."""

    shared: SharedState
    folder: Path
    line: Callable[[str], Line]
    charge: Callable[[str, float | None], None]
    window: float = MINUTE
    note: Callable[[str], None] = lambda text: None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    random: Callable[[], float] = random.random
    usual: dict[str, int] = field(default_factory=dict)

    def enter(self, request: ModelRequest) -> Turn:
        """Wait until the endpoint may be asked.

        Raises AuthError or QuotaError when it was given up, ProviderDownError when the request's
        end comes first."""
        line = self.line(request.model)
        waiting = _Waiting(self, line, request)
        rates = line.rates(self.folder, self.window)
        if rates is None:
            waiting.until(lambda: 0.0)
            return _Turn(self, line, request, waiting.waited)
        prompt = 0 if rates.tokens is None else prompt_tokens(request)
        most = line.max_tokens or request.max_tokens
        booked = prompt + (most or self.usual.get(request.model, _FIRST_REPLY))
        if not rates.fits(booked):
            self.note(
                f"a request of about {booked} tokens is above the {line.tpm} of a minute: it goes"
                " alone"
            )
        turn = _Turn(self, line, request, 0.0, rates, prompt, booked)
        with waiting.first_in_line(f"{rates.file}.line"):
            waiting.until(lambda: rates.book(turn.call, booked, self.now()))
        turn.waited = waiting.waited
        return turn


@dataclass
class _Waiting:
    """A request's wait at the gate; ``waited`` seconds so far. ``back`` is when who was told to
    wait comes back."""

    gate: RunGate
    line: Line
    request: ModelRequest
    waited: float = 0.0
    back: float = 0.0

    def until(self, book: Callable[[], float]) -> None:
        """Wait as long as the endpoint is held, and then until ``book`` has no more seconds to ask
        for."""
        while wait := self._held() or book():
            self._pause(min(wait, _LOOK))

    @contextmanager
    def first_in_line(self, file: str) -> Iterator[None]:
        """One at a time stands before the counter and the others behind it: small requests could
        otherwise keep a large one out for ever."""
        from filelock import FileLock, Timeout

        lock, begin = FileLock(file), self.gate.clock()
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                lock.acquire(timeout=max(0.0, min(_LOOK, self._left())) if self.waited else 0)
                break
            except Timeout:
                self.waited = max(self.gate.clock() - begin, _MOMENT)
                self._refuse_given_up()
                self._refuse_late()
        try:
            yield
        finally:
            lock.release()

    def _held(self) -> float:
        """Seconds for which the endpoint is to be left alone."""
        self._refuse_given_up()
        clock, held = self.gate.clock(), self.gate.shared.held(self.line.endpoint)
        if held:
            self.back = max(self.back, clock + held * (1 + _SPREAD * self.gate.random()))
        return max(0.0, self.back - clock)

    def _pause(self, seconds: float) -> None:
        self._refuse_late()
        seconds = min(seconds, self._left())
        self.gate.sleep(seconds)
        self.waited += seconds

    def _refuse_given_up(self) -> None:
        found = self.gate.shared.given_up().get(self.line.endpoint)
        if found is not None:
            raise self._error(_KINDS.get(found.kind, AuthError), found.reason)

    def _refuse_late(self) -> None:
        if self._left() <= 0:
            what = "the trial's time was over before the run's limits let the request through"
            raise self._error(ProviderDownError, f"{self.request.model}: {what}")

    def _left(self) -> float:
        return self.request.end(math.inf) - self.gate.clock()

    def _error(self, kind: type[ModelError], reason: str) -> ModelError:
        error = kind(reason)
        error.waited = self.waited
        return error


@dataclass
class _Turn:
    """Implements :class:`pytest_mlab.models.limiter.Turn`. ``booked`` tokens were counted for it,
    of which the ``prompt`` is sent in any case."""

    gate: RunGate
    line: Line
    request: ModelRequest
    waited: float
    rates: Rates | None = None
    prompt: int = 0
    booked: int = 0
    call: str = field(default_factory=lambda: uuid4().hex)

    def answered(self, reply: ModelReply) -> None:
        """Count what the provider has, and what it costs."""
        self.gate.charge(self.request.model, reply.cost)
        self.gate.usual[self.request.model] = reply.usage.completion_tokens
        self._count(reply.usage.total)

    def failed(self, error: ModelError, delay: float | None) -> None:
        """Tell the other workers: to wait as long as this one, or not to ask any more."""
        if isinstance(error, ProviderError) and error.for_everyone:
            self.gate.shared.give_up(self.line.endpoint, type(error).__name__, str(error))
        elif isinstance(error, RateLimitError) and delay:
            self.gate.shared.hold(self.line.endpoint, delay)
        self._count(self.prompt)

    def _count(self, tokens: int) -> None:
        if self.rates is not None:
            self.rates.correct(self.call, self.booked, tokens, self.gate.now())
