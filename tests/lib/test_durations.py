"""Durations as people write them."""

from __future__ import annotations

import pytest

from pytest_mlab.lib.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("45m", 2700),
        ("5h", 18000),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (" 1h 30M 5s ", 5405),
    ],
)
def test_forms_that_are_allowed(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0h", "-5", "5d", "30m1h", "h", "1e3", "nan", "soon"])
def test_other_texts_are_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match=f"{text!r} .*90s, 45m, 5h or 1h30m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0s"), (2.5, "2.5s"), (60, "1m"), (5400, "1h30m"), (18000, "5h"), (3605.4, "1h5s")],
)
def test_the_shortest_text(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
