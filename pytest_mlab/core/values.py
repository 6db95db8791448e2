"""Readers of option values: each turns a text into a value or raises ValueError that says what is
allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pytest_mlab.lib.suggest import nearest_first

_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


def whole(text: str) -> int:
    """A whole number from 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ValueError("give a whole number from 1")
    return value


def positive(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    # NaN fails both comparisons and is refused as well.
    if not 0 < value < math.inf:
        raise ValueError("give a number above 0")
    return value


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError("give a number such as 0.1")
    return value


def rate(text: str) -> float:
    """A share: ``0.5`` or ``50%``."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError("give a share between 0 and 1, or 0% to 100%")
    return value


def switch(text: str) -> bool:
    """True or false, as ini files write them."""
    if text.lower() not in _TRUE | _FALSE:
        raise ValueError("give true or false")
    return text.lower() in _TRUE


def name(text: str) -> str:
    """Any text that is not blank."""
    if not text.strip():
        raise ValueError("give a name")
    return text.strip()


def assignment(text: str) -> str:
    """``key=value`` with a key; returned as text."""
    key, equals, _ = text.partition("=")
    if not key.strip() or not equals:
        raise ValueError("give key=value")
    return text.strip()


@dataclass(frozen=True)
class PerModel:
    """A whole number for one model; ``model`` '' means every model."""

    value: int
    model: str = ""

    @classmethod
    def parse(cls, text: str) -> PerModel:
        """``60``, or ``gpt-4-turbo=60``."""
        # From the right, because a model's name may hold an equals sign.
        model, _, value = text.rpartition("=")
        try:
            return cls(whole(value), model.strip())
        except ValueError:
            raise ValueError("give a whole number from 1, or model=number") from None

    def __str__(self) -> str:
        return f"{self.model}={self.value}" if self.model else str(self.value)


def one_of(*allowed: str) -> Callable[[str], str]:
    """A reader that takes one of ``allowed``."""

    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"allowed: {', '.join(nearest_first(text, allowed))}")
        return text

    return parse
