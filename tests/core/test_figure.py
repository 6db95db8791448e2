from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pytest_mlab.core.figure import Figure
from pytest_mlab.core.trial import TrialResult
from pytest_mlab.errors import ConfigError


def giving(value: Any) -> Figure:
    return Figure("mine", "mine", lambda _: value)


@pytest.mark.parametrize(
    ("given", "value", "kind"),
    [
        (3, 3, int),
        (np.int64(3), 3, int),
        (np.float64(0.5), 0.5, float),
        (None, None, type(None)),
        (math.nan, None, type(None)),
        (math.inf, None, type(None)),
    ],
)
def test_values_are_plain_numbers(given: object, value: object, kind: type) -> None:
    found = giving(given).value([])
    assert found == value
    assert type(found) is kind


def _raise(results: Sequence[TrialResult]) -> float:
    return len(results) / 0


@pytest.mark.parametrize("compute", [_raise, lambda _: "3", lambda _: [1]])
def test_a_fault_of_the_users_code_names_the_figure(compute: Callable[[Any], Any]) -> None:
    with pytest.raises(ConfigError, match="mine"):
        Figure("mine", "mine", compute).value([])


@pytest.mark.parametrize("name", ["My", "a-b", "a.b", "1a", "a b"])
def test_a_name_is_a_key(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Figure(name, "mine", lambda _: 1)


def test_the_unit_is_known() -> None:
    with pytest.raises(ConfigError, match="miles"):
        Figure("mine", "mine", lambda _: 1, "miles")  # type: ignore[arg-type]
