"""When to ask a provider again: bounded exponential backoff with jitter that respects Retry-After.
No clock here."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from pytest_mlab.errors import ConfigError


@dataclass(frozen=True)
class Retry:
    """How often and how patiently to ask.

    ``attempts`` in all, each of which waits at most ``timeout`` seconds for the provider. The wait
    after the first is between ``base / 2`` and ``base`` seconds, doubles with every attempt and
    never passes ``cap``. A provider's Retry-After lengthens a wait; when it asks for more than
    ``longest`` seconds, there is no further attempt."""

    attempts: int = 8
    base: float = 2.0
    cap: float = 60.0
    longest: float = 600.0
    timeout: float = 600.0

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Retry:
        """The defaults, changed by MLAB_MODEL_ATTEMPTS (at least 1), MLAB_MODEL_WAIT (``base``) and
        MLAB_MODEL_TIMEOUT. Raises ConfigError for other values."""
        return cls(
            attempts=int(number_from(environ, "MLAB_MODEL_ATTEMPTS", cls.attempts, at_least=1)),
            base=number_from(environ, "MLAB_MODEL_WAIT", cls.base, at_least=0),
            timeout=number_from(environ, "MLAB_MODEL_TIMEOUT", cls.timeout, at_least=0.001),
        )

    def delay(self, attempt: int, random: float, retry_after: float | None = None) -> float:
        """Seconds to wait after failed attempt number ``attempt`` (from 1); ``random`` is from [0,
        1)."""
        own = min(self.cap, self.base * 2.0 ** (attempt - 1)) * (0.5 + 0.5 * random)
        return max(own, retry_after or 0.0)


_DELAY = re.compile(r'"retryDelay": ?"([0-9.]+)s"')


def retry_after_in(text: str) -> float | None:
    """Seconds that a provider asks to wait in its error's ``text``, as Google's APIs do (they send
    no such header)."""
    found = _DELAY.search(text)
    return float(found[1]) if found and found[1].count(".") <= 1 and found[1] != "." else None


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a provider asks to wait, from ``retry-after-ms`` or ``Retry-After`` (seconds or
    a date; ``now`` is Unix time). None when it does not ask, or not in a readable way."""
    try:
        return _seconds(headers["retry-after-ms"]) / 1000
    except (KeyError, ValueError):
        pass
    value = headers.get("retry-after") or headers.get("Retry-After") or ""
    try:
        return _seconds(value)
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (TypeError, ValueError, OverflowError):
        return None


def _seconds(text: str) -> float:
    """Raises ValueError."""
    found = float(text)
    if math.isnan(found):
        raise ValueError(text)
    return max(0.0, found)


def number_from(environ: Mapping[str, str], name: str, default: float, *, at_least: float) -> float:
    """The variable ``name``, or ``default``. Raises ConfigError for a value that is not a number
    of at least ``at_least``."""
    text = environ.get(name, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not at_least <= value < float("inf"):
        raise ConfigError(
            f"{name}={text!r} is not a number of at least {at_least:g}; unset it for the default"
            f" {default:g}"
        )
    return value
