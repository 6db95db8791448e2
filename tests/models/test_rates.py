"""Requests and tokens a minute: never more in any stretch of time, whatever comes when."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlab.errors import StoreError
from pytest_mlab.models.rates import Rates, Window


def rates(
    folder: Path, rpm: int | None = None, tpm: int | None = None, seconds: float = 60.0
) -> Rates:
    requests, tokens = (
        None if limit is None else Window.of(limit, seconds) for limit in (rpm, tpm)
    )
    return Rates(folder / "shared.sqlite", "a route", requests, tokens)


@pytest.mark.parametrize(
    ("limit", "seconds", "window"),
    [
        (60, 60, Window(60, 60)),
        (240, 1, Window(4, 1)),
        (90, 1, Window(1, 1)),
        (5, 1, Window(1, 12)),
        (1, 60, Window(1, 60)),
    ],
)
def test_a_minutes_share_of_a_stretch(limit: int, seconds: float, window: Window) -> None:
    assert Window.of(limit, seconds) == window


def test_requests_wait_until_the_oldest_is_a_minute_old(tmp_path: Path) -> None:
    counts = rates(tmp_path, rpm=2)
    assert [counts.book("a", 0, 1000.0), counts.book("b", 0, 1010.0)] == [0, 0]
    assert counts.book("c", 0, 1020.0) == pytest.approx(40, abs=0.01)
    assert counts.book("c", 0, 1060.1) == 0
    assert counts.book("d", 0, 1060.2) == pytest.approx(9.8, abs=0.01)


def test_tokens_are_corrected_by_what_was_used(tmp_path: Path) -> None:
    counts = rates(tmp_path, tpm=1000)
    assert counts.book("a", 900, 1000.0) == 0
    assert counts.book("b", 200, 1001.0) > 50
    counts.correct("a", 900, 300, 1002.0)
    assert counts.book("b", 200, 1002.0) == 0
    counts.correct("b", 200, 700, 1003.0)
    assert counts.book("c", 1, 1003.0) > 50
    assert counts.book("c", 1, 1063.1) == 0


def test_what_does_not_fit_by_its_tokens_takes_no_request_and_the_other_way_round(
    tmp_path: Path,
) -> None:
    counts = rates(tmp_path, rpm=2, tpm=100)
    assert counts.book("a", 90, 1000.0) == 0
    assert counts.book("b", 90, 1000.0) > 0
    assert counts.book("c", 5, 1000.0) == 0
    assert counts.book("d", 5, 1000.0) > 0  # no request is left
    counts.correct("a", 90, 1, 1000.0)
    assert counts.book("d", 5, 1060.1) == 0
    assert counts.book("e", 90, 1060.1) == 0


def test_a_request_above_the_whole_limit_goes_alone(tmp_path: Path) -> None:
    counts = rates(tmp_path, tpm=100)
    assert counts.book("small", 1, 1000.0) == 0
    assert counts.book("large", 5000, 1001.0) == pytest.approx(59, abs=0.01)
    assert counts.book("large", 5000, 1060.1) == 0
    assert counts.book("small", 1, 1119.0) > 0
    assert counts.book("small", 1, 1121.0) == 0


def test_a_large_limit_is_kept_to_the_token(tmp_path: Path) -> None:
    counts = rates(tmp_path, tpm=2_000_000)
    assert counts.book("a", 1_999_998, 1000.0) == 0
    assert counts.book("b", 3, 1000.0) > 0
    assert counts.book("b", 2, 1000.0) == 0
    assert counts.book("c", 1, 1000.0) > 0


def test_what_a_call_used_beyond_its_booking_counts_from_its_end(tmp_path: Path) -> None:
    """Even when the call took so long that its own row has left the window."""
    counts = rates(tmp_path, tpm=1000)
    assert counts.book("slow", 100, 1000.0) == 0
    assert counts.book("between", 1, 1090.0) == 0
    counts.correct("slow", 100, 600, 1100.0)
    assert counts.book("next", 500, 1101.0) == pytest.approx(49, abs=0.01)  # "between" leaves
    assert counts.book("next", 501, 1151.0) == pytest.approx(9, abs=0.01)
    assert counts.book("next", 501, 1160.0) == 0


def test_routes_are_counted_apart(tmp_path: Path) -> None:
    one, other = rates(tmp_path, rpm=1), replace(rates(tmp_path, rpm=1), route="another")
    assert [one.book("a", 0, 1000.0), other.book("b", 0, 1000.0)] == [0, 0]
    assert one.book("c", 0, 1000.0) == other.book("c", 0, 1000.0) == pytest.approx(60)


def test_a_clock_that_was_set_back_blocks_nothing_for_longer_than_a_window(tmp_path: Path) -> None:
    counts = rates(tmp_path, rpm=1)
    assert counts.book("a", 0, 9000.0) == 0
    assert counts.book("b", 0, 1000.0) == 0


def test_a_file_that_is_damaged_is_named(tmp_path: Path) -> None:
    counts = rates(tmp_path, rpm=1)
    counts.database.write_bytes(b"not a database, " * 100)
    with pytest.raises(StoreError, match=str(counts.database)):
        counts.book("a", 0, 1000.0)


def test_processes_share_the_counts(tmp_path: Path) -> None:
    counts = rates(tmp_path, rpm=10)
    children = []
    for worker in range(4):
        pid = os.fork()
        if not pid:
            granted = sum(counts.book(f"{worker}-{n}", 0, 1000.0) == 0 for n in range(5))
            os._exit(granted)
        children.append(pid)
    assert sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children) == 10


@settings(max_examples=25, deadline=None)
@given(
    arrivals=st.lists(
        st.tuples(st.floats(0, 20), st.integers(1, 150), st.integers(0, 150)), max_size=25
    ),
    rpm=st.integers(1, 8),
)
def test_no_stretch_has_more_than_its_share(
    arrivals: list[tuple[float, int, int]], rpm: int
) -> None:
    """Calls come at any time; each books, and uses at most what it has booked."""
    with TemporaryDirectory() as folder:
        counts = Rates(
            Path(folder, "shared.sqlite"), "a route", Window(rpm, 60.0), Window(200, 60.0)
        )
        now, passed = 1000.0, []
        for number, (gap, booked, used) in enumerate(arrivals):
            now += gap
            while wait := counts.book(str(number), booked, now):
                now += wait
            counts.correct(str(number), booked, min(used, booked), now)
            passed.append((now, min(used, booked)))
        for begin, _ in passed:
            inside = [tokens for at, tokens in passed if begin <= at < begin + 60.0]
            assert len(inside) <= rpm
            assert sum(inside) <= 200
