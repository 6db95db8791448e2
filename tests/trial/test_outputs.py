"""Where outputs are kept, and what of them is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.trial.outputs import Ends, Output, shown_parts


@pytest.fixture
def output(tmp_path: Path) -> Callable[[int, int], Output]:
    return lambda threshold, limit: Output(tmp_path / "outputs" / "out.txt", threshold, limit)


def test_short_output_makes_no_file(output: Callable[[int, int], Output], tmp_path: Path) -> None:
    with output(10, 100) as sink:
        sink(b"12345")
        sink(b"67890")
    assert not sink.made
    assert sink.kept(tmp_path) == ""
    assert sink.text() == "1234567890"
    assert list(tmp_path.iterdir()) == []


def test_the_bytes_of_a_short_output_are_kept_where_the_text_is_another(
    output: Callable[[int, int], Output],
) -> None:
    with output(100, 100) as sink:
        sink(b"\r10%\r")
        sink(b"20%\x1b")
        sink(b"[0m\n")
    assert sink.text() == "20%\n"
    assert sink.path.read_bytes() == b"\r10%\r20%\x1b[0m\n"
    assert "".join(shown_parts(sink.path)) == "20%\n"


def test_the_file_of_an_output_is_bounded_and_says_so(
    output: Callable[[int, int], Output], tmp_path: Path
) -> None:
    with output(3, 8) as sink:
        for _ in range(1000):
            sink(b"12345")
    assert sink.total == 5000
    assert sink.path.read_bytes() == b"12345123\n[... 4992 bytes were not kept ...]\n"
    assert "of 5000 bytes are kept as outputs/out.txt" in sink.kept(tmp_path)


@given(st.lists(st.text(alphabet="ab", max_size=9), max_size=9), st.integers(2, 20))
def test_the_ends_of_a_text(parts: list[str], limit: int) -> None:
    ends, whole = Ends(limit), "".join(parts)
    for part in parts:
        ends(part)
    half = limit // 2
    if len(whole) <= 2 * half:
        assert ends.text() == whole
    else:
        cut = f"\n[... {len(whole) - 2 * half} characters left out; x ...]\n"
        assert ends.text("; x") == whole[:half] + cut + whole[-half:]
