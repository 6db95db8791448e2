"""One line of the benchmark table."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A measured figure. ``target`` (same unit) is DESIGN 9's, None where there is none; ``ratio``
    relates the value to what it is compared with in the same run (None where nothing is), and
    ``against`` says what that is."""

    name: str
    value: float
    unit: str
    target: float | None = None
    ratio: float | None = None
    against: str = ""
