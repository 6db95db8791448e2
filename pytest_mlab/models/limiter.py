"""The limiter: limits a minute, pauses that a provider asks for, and refused keys hold for all
workers of a run."""

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
from pytest_mlab.core.routes import GivenUp, RouteLimits
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

QUEUES = "rates"
"""The folder beside the shared database that holds a lock file for each route with a limit."""

_FIRST_REPLY = 1000
"""Tokens expected of a model's first reply when the request does not bound it."""

_POLL = 1.0
"""Seconds between looks, while waiting, at whether the route was given up or is free earlier."""

_KINDS: Mapping[str, type[ModelError]] = {"AuthError": AuthError, "QuotaError": QuotaError}
"""Errors for which a route is given up: no retry helps, whichever worker asks."""

_SPREAD = 0.1
"""Pauses that a provider asks for are lengthened at random by up to this share, so that the workers
do not all come back in the same moment."""


def window_from(environ: Mapping[str, str]) -> float:
    """Seconds of the window over which limits a minute are kept: MLAB_MODEL_WINDOW, else 60.
    Raises ConfigError."""
    return number_from(environ, "MLAB_MODEL_WINDOW", MINUTE, at_least=0.1)


@dataclass
class Turn:
    """One attempt that was let through after ``waited`` seconds; one of the two calls ends it."""

    waited: float = 0.0

    def answered(self, reply: ModelReply) -> None:
        """The provider has answered."""

    def failed(self, error: ModelError, delay: float | None) -> None:
        """The attempt failed; the next one comes after ``delay`` seconds, or never (None)."""


class Limiter:
    """Decides when an attempt at a provider may go out; this one lets all through at once."""

    def enter(self, request: ModelRequest) -> Turn:
        """Wait until an attempt may go out. Raises a ModelError when it never may, or not before
        the request's end; the error's ``waited`` says how long that took."""
        return Turn()


class SharedState(Protocol):
    """What the workers of a run know about its routes (:class:`pytest_mlab.store.shared.Shared`;
    models do not import the store)."""

    def given_up(self) -> Mapping[str, GivenUp]:
        """The routes that must not be asked any more."""
        ...

    def give_up(self, route: str, kind: str, reason: str) -> None:
        """``route`` must not be asked any more."""
        ...

    def held(self, route: str) -> float:
        """Seconds for which ``route`` must not be asked."""
        ...

    def hold(self, route: str, seconds: float) -> None:
        """``route`` must not be asked for ``seconds``."""
        ...


@dataclass(frozen=True)
class RunLimiter(Limiter):
    """The limiter of one trial, which shares its counts with all workers of the run.

    ``database`` is the run's shared SQLite file, which holds the counts. ``limits`` gives the
    limits of the model that a request names. ``charge`` is called with that model's name and the
    dollars of each answer (None: unknown), ``note`` with texts for the trial's trace. ``window`` is
    the length in seconds of the window over which limits a minute are kept; ``usual`` holds the
    tokens of each model's last reply."""

    shared: SharedState
    database: Path
    limits: Callable[[str], RouteLimits]
    charge: Callable[[str, float | None], None]
    window: float = MINUTE
    note: Callable[[str], None] = lambda text: None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    random: Callable[[], float] = random.random
    usual: dict[str, int] = field(default_factory=dict)

    def enter(self, request: ModelRequest) -> Turn:
        """Wait until the route may be asked.

        Raises AuthError or QuotaError when it was given up, ProviderDownError when the request's
        end comes first."""
        limits = self.limits(request.model)
        waiting = _Waiting(self, limits.route, request)
        # Without limits a route may still be held or given up by another worker.
        if limits.rpm is None and limits.tpm is None:
            waiting.until(lambda: 0.0)
            return _RunTurn(waiting.waited, limiter=self, route=limits.route, request=request)
        windows = (self._window(limits.rpm), self._window(limits.tpm))
        rates = Rates(self.database, limits.route, *windows)
        # Counting imports litellm's tokenizer and takes time, so only where there is a limit of
        # tokens.
        prompt = prompt_tokens(request.messages, request.tools) if rates.tokens else 0
        # the settings' max_tokens wins over the request's, as in the request that goes out
        reply = limits.max_tokens or request.max_tokens or self.usual.get(request.model)
        booked = prompt + (reply or _FIRST_REPLY)
        if rates.tokens and booked > rates.tokens.limit:
            self.note(
                f"a request of about {booked} tokens is above the {limits.tpm} of a minute: it goes"
                " alone"
            )
        turn = _RunTurn(
            limiter=self,
            route=limits.route,
            request=request,
            rates=rates,
            prompt=prompt,
            booked=booked,
        )
        # The line is left once the request is booked, not when it is answered: requests run side by
        # side.
        with waiting.first_in_line(self.database.parent / QUEUES / f"{slug(limits.route)}.line"):
            waiting.until(lambda: rates.book(turn.call, booked, self.now()))
        turn.waited = waiting.waited
        return turn

    def _window(self, limit: int | None) -> Window | None:
        return None if limit is None else Window.of(limit, self.window)


@dataclass
class _Waiting:
    """A request's wait; ``waited`` seconds so far. ``back`` is the moment, by the limiter's clock,
    before which the provider wants no request."""

    limiter: RunLimiter
    route: str
    request: ModelRequest
    waited: float = 0.0
    back: float = 0.0

    def until(self, book: Callable[[], float]) -> None:
        """Wait while the route is held, and then until ``book`` asks for no more seconds."""
        # book() comes last and only for a route that is free: it counts the request, which must
        # then go out.
        while wait := self._held() or book():
            self._refuse_late()
            # Short sleeps: another worker may give the route up, or correct its booking downwards,
            # at any time.
            seconds = min(wait, _POLL, self._left())
            self.limiter.sleep(seconds)
            self.waited += seconds

    @contextmanager
    def first_in_line(self, file: Path) -> Iterator[None]:
        """One request waits for the counter and the others queue behind it: otherwise small
        requests could keep a large one out for ever."""
        # A lock of the kernel on a file, so that a killed worker leaves the line by itself.
        from filelock import FileLock, Timeout

        file.parent.mkdir(parents=True, exist_ok=True)
        # The first try does not wait. Only then is it known that there is a line, which is shown as
        # a wait.
        lock, begin, patience = FileLock(file), self.limiter.clock(), 0.0
        while True:
            try:
                lock.acquire(timeout=patience)
                break
            except Timeout:
                # a queue counts as a wait, even where the clock has not moved
                self.waited = max(self.limiter.clock() - begin, 0.001)
                self._refuse_given_up()
                self._refuse_late()
                patience = min(_POLL, self._left())
        try:
            yield
        finally:
            lock.release()

    def _held(self) -> float:
        """Seconds for which the route must be left alone."""
        self._refuse_given_up()
        clock, held = self.limiter.clock(), self.limiter.shared.held(self.route)
        if held:
            self.back = max(self.back, clock + held * (1 + _SPREAD * self.limiter.random()))
        return max(0.0, self.back - clock)

    def _refuse_given_up(self) -> None:
        found = self.limiter.shared.given_up().get(self.route)
        if found is not None:
            # The kind was written by another worker, possibly of another version, so it may be
            # unknown here.
            raise self._error(_KINDS.get(found.kind, AuthError), found.reason)

    def _refuse_late(self) -> None:
        if self._left() <= 0:
            reason = "the trial's time was over before the run's limits let the request through"
            raise self._error(ProviderDownError, f"{self.request.model}: {reason}")

    def _left(self) -> float:
        return self.request.end(math.inf) - self.limiter.clock()

    def _error(self, kind: type[ModelError], reason: str) -> ModelError:
        error = kind(reason)
        error.waited = self.waited
        return error


@dataclass(kw_only=True)
class _RunTurn(Turn):
    """``booked`` tokens were counted for it, of which the ``prompt`` is sent in any case."""

    limiter: RunLimiter
    route: str
    request: ModelRequest
    rates: Rates | None = None
    prompt: int = 0
    booked: int = 0
    call: str = field(default_factory=lambda: uuid4().hex)

    def answered(self, reply: ModelReply) -> None:
        """Count the tokens that the provider reports, and the dollars."""
        # First: the answer is paid for, and counting its tokens below may raise StoreError.
        self.limiter.charge(self.request.model, reply.cost)
        self.limiter.usual[self.request.model] = reply.usage.completion_tokens
        self._count(reply.usage.total)

    def failed(self, error: ModelError, delay: float | None) -> None:
        """Let the other workers wait as long as this one, or give the route up for all."""
        if isinstance(error, ProviderError) and error.for_everyone:
            self.limiter.shared.give_up(self.route, type(error).__name__, str(error))
        # Other faults, such as a dropped connection, may be this worker's alone, and hold up no
        # other.
        elif isinstance(error, RateLimitError) and delay:
            self.limiter.shared.hold(self.route, delay)
        # Providers count refused requests as well; the reply that was booked for did not come.
        self._count(self.prompt)

    def _count(self, tokens: int) -> None:
        if self.rates is not None:
            self.rates.correct(self.call, self.booked, tokens, self.limiter.now())
