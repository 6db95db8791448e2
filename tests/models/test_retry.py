"""Waits between attempts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.errors import ConfigError
from pytest_mlab.models.retry import Retry, retry_after


@given(attempt=st.integers(1, 60), random=st.floats(0, 1, exclude_max=True))
def test_waits_are_bounded_and_jittered(attempt: int, random: float) -> None:
    retry = Retry(base=2, cap=60)
    whole = min(60.0, 2.0**attempt)
    assert whole / 2 <= retry.delay(attempt, random) <= whole


def test_what_the_provider_asks_is_the_least() -> None:
    assert Retry(base=2).delay(1, 0.0, retry_after=30) == 30
    assert Retry(base=2).delay(5, 0.0, retry_after=3) == 16


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "12"}, 12.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=10.0) == seconds


def test_from_the_environment() -> None:
    assert Retry.from_environ({}) == Retry()
    environ = {"MLAB_MODEL_ATTEMPTS": "2", "MLAB_MODEL_WAIT": "0", "MLAB_MODEL_TIMEOUT": "1.5"}
    assert Retry.from_environ(environ) == Retry(attempts=2, base=0, timeout=1.5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MLAB_MODEL_ATTEMPTS", "0"),
        ("MLAB_MODEL_ATTEMPTS", "many"),
        ("MLAB_MODEL_WAIT", "-1"),
        ("MLAB_MODEL_WAIT", "nan"),
        ("MLAB_MODEL_TIMEOUT", "0"),
    ],
)
def test_nonsense_in_the_environment_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}='{value}'"):
        Retry.from_environ({name: value})
