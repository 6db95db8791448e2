"""A figure of a user's own: a number that every report shows beside the built-in ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from typing import Literal

from pytest_mlab.core.trial import TrialResult
from pytest_mlab.errors import ConfigError

Unit = Literal["count", "ratio", "percent", "seconds", "dollars"]
_UNITS = ("count", "ratio", "percent", "seconds", "dollars")


@dataclass(frozen=True)
class Figure:
    """A number for each task of an agent with a model, and for all its tasks together.

    ``name`` is its key in ``summary.json`` and, after ``mlab.``, in JUnit: lower-case letters,
    digits and underscores. ``label`` is what people read. ``unit`` says how it is written: a ratio
    as ``0.38``, a percent (0.1 is 10 %) as ``+10.0%``. ``compute`` gets one result for every
    planned trial, those that did not run included, and gives None for unknown.

    Raises ConfigError for another name or unit."""

    name: str
    label: str
    compute: Callable[[Sequence[TrialResult]], float | None]
    unit: Unit = "count"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise ConfigError(
                f"figure {self.name!r}: a name is made of lower-case letters, digits and _"
            )
        if self.unit not in _UNITS:
            raise ConfigError(
                f"figure {self.name}: unknown unit {self.unit!r}; units: {', '.join(_UNITS)}"
            )

    def value(self, results: Sequence[TrialResult]) -> int | float | None:
        """The figure of ``results`` as a plain number; None when it is unknown or not finite.

        Raises ConfigError when ``compute`` raises or gives something else."""
        try:
            found: object = self.compute(results)
        except Exception as error:  # the user's own code may raise anything
            raise ConfigError(
                f"figure {self.name}: compute raised {type(error).__name__}: {error}"
            ) from error
        if found is None:
            return None
        # numpy's numbers are of these types too, and neither JSON nor execnet takes them as they
        # are.
        if isinstance(found, Integral):
            return int(found)
        if isinstance(found, Real):
            return float(found) if isfinite(found) else None
        raise ConfigError(f"figure {self.name}: compute gave {found!r}, which is not a number")
