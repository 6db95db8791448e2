"""Requests and tokens a minute: never more in any stretch of time, whatever comes when."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlab.models.rates import Rates, Window


def rates(
    folder: Path, rpm: int | None = None, tpm: int | None = None, seconds: float = 60.0
) -> Rates:
    requests, tokens = (
        None if limit is None else Window.of(limit, seconds) for limit in (rpm, tpm)
    )
    return Rates(folder / "rates.sqlite", requests, tokens)


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
    assert counts.fits(100)
    assert not counts.fits(101)
    assert counts.book("small", 1, 1000.0) == 0
    assert counts.book("large", 5000, 1001.0) == pytest.approx(59, abs=0.01)
    assert counts.book("large", 5000, 1060.1) == 0
    assert counts.book("small", 1, 1119.0) > 0
    assert counts.book("small", 1, 1121.0) == 0


def test_a_large_limit_is_counted_in_pieces_that_are_never_too_small(tmp_path: Path) -> None:
    counts = rates(tmp_path, tpm=2_000_000)
    assert counts.unit == 200
    assert [counts.book(str(n), 201, 1000.0) for n in range(3)] == [0, 0, 0]
    assert counts.book("rest", 2_000_000 - 3 * 400, 1000.0) == 0
    assert counts.book("one", 1, 1000.0) > 0


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
        counts = Rates(Path(folder, "r.sqlite"), Window(rpm, 60.0), Window(200, 60.0))
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
