from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.core.trial import Outcome
from pytest_mlab.core.wire import from_wire, to_wire
from pytest_mlab.errors import WireError

PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text())


@dataclass
class Fact:
    x: int = 1


class Word(str, Enum):
    A = "a"


@given(st.dictionaries(st.text(), PLAIN))
def test_what_is_plain_comes_back(values: dict[str, object]) -> None:
    assert from_wire(to_wire(values)) == values


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.float64(0.5), "numpy.float64"),
        (np.int64(5), "numpy.int64"),
        (np.bool_(True), "numpy.bool"),
        (Path("x"), "PosixPath"),
        (datetime(2024, 1, 1, tzinfo=timezone.utc), "datetime.datetime"),
        (Word.A, "Word"),
        (Outcome.SUCCESS, "Outcome"),
        (Fact(), "Fact"),
        ([1], "builtins.list"),
        ({"a": 1}, "builtins.dict"),
        (b"x", "builtins.bytes"),
    ],
)
def test_what_execnet_would_choke_on_is_refused_by_name_and_type(value: object, kind: str) -> None:
    with pytest.raises(WireError, match=f"'mlab.score' is .* of type .*{kind}"):
        to_wire({"mlab.score": value})


def test_names_are_plain_text() -> None:
    with pytest.raises(WireError, match="name 1"):
        to_wire({1: 2})  # type: ignore[dict-item]


def test_a_name_that_comes_twice_is_refused() -> None:
    with pytest.raises(WireError, match="'a' came twice"):
        from_wire([("a", 1), ("a", 2)])


@given(st.text(st.characters(categories=["Cs", "L"])))
def test_lone_surrogates_become_escapes_that_encode(text: str) -> None:
    ((key, value),) = to_wire({text: text})
    assert isinstance(value, str)
    value.encode()
    key.encode()


def test_a_lone_surrogate_stays_readable() -> None:
    assert to_wire({"a": "x\udc80y"}) == [("a", "x\\udc80y")]


def test_infinity_and_nan_travel() -> None:
    found = from_wire(to_wire({"a": math.inf, "b": math.nan}))
    assert found["a"] == math.inf
    assert math.isnan(float(found["b"] or 0))


def test_execnet_takes_what_comes_out(execnet_dumps: Callable[[object], bytes]) -> None:
    pairs = to_wire(
        {"a": 1, "b": 2.5, "c": "x\udc80", "d": None, "e": True, "f": 10**30, "g": math.nan}
    )
    assert execnet_dumps(pairs)


@pytest.fixture
def execnet_dumps() -> Callable[[object], bytes]:
    gateway_base = pytest.importorskip("execnet.gateway_base")
    dumps: Callable[[object], bytes] = gateway_base.dumps_internal
    return dumps
