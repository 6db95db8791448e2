"""Output as a terminal shows it."""

from __future__ import annotations

import io
import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.lib.terminal import HEIGHT, LONGEST, Screen, shown


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("plain\ntext\n", "plain\ntext\n"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("\r 10%\r 20%\r100%\nacc 0.5\n", "100%\nacc 0.5\n"),
        ("a long bar\rshort\n", "shortg bar\n"),
        ("a long bar\r\x1b[Kshort\n", "short\n"),
        ("1/9\b\b\b2/9\b\b\b3/9 done\n", "3/9 done\n"),
        ("\x1b[1;31mred\x1b[0m \x1b]0;title\x07and\n", "red and\n"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
        ("bar 50%\r       \rdone\n", "done\n"),
        ("bar 50%\r       \r", ""),
        # tqdm: an outer bar, an inner one below it, and back.
        ("\router 0\n\rinner 1\x1b[A\n\rinner 2\x1b[A\router 1\n\n", "outer 1\ninner 2\n"),
        # rich's live display: the old lines are erased, then written again.
        ("a 1\nb 1\n\x1b[1A\x1b[2K\x1b[1A\x1b[2Ka 2\nb 2\n", "a 2\nb 2\n"),
        ("\x1b[?25lone\r\x1b[2K\x1b[1G two\x1b[?25h\n", " two\n"),
        ("old\n\x1b[2J\x1b[Hnew\n", "new\n"),
        ("a\x00\x07b\x7f\n", "ab\n"),
        ("tab\there\x0cfeed\n", "tab\there\x0cfeed\n"),
        ("half \x1b[3", "half "),
        ("lone \x1b\n", "lone \n"),
        ("abc\x1b[2Dx\x1b[3Cy\n", "axc  y\n"),
        ("\x1b[99999Cx\n", " " * 200 + "x\n"),
    ],
)  # fmt: skip
def test_what_is_seen(printed: str, text: str) -> None:
    assert shown(printed.encode()) == text


def in_pieces(data: bytes, cuts: list[int]) -> str:
    parts: list[str] = []
    screen = Screen(parts.append)
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for begin, end in itertools.pairwise(places):
        screen.feed(data[begin:end])
    screen.end()
    return "".join(parts)


PIECES = st.sampled_from(
    [
        *("a", "bc", "grün", "█▏", "\n", "\n", "\r", "\r\n", "\b\b", " ", "\x1b[A", "\x1b[2A"),
        *("\x1b[K", "\x1b[2K", "\x1b[31m", "\x1b[0m", "\x1b]0;t\x07", "\x1b[5G", "\x1b[J", "\x1b7"),
        *("\x1b8", "\x1b[2J", "\x1b[H", "\x1b[3;4H", "\x1b(B", "\x1b[1X", "\x1b[", "\x1b"),
    ]
)
CUTS = st.lists(st.integers(0, 10_000), max_size=8)


@given(st.lists(PIECES, max_size=40).map("".join), CUTS)
def test_where_the_output_is_cut_into_pieces_does_not_matter(text: str, cuts: list[int]) -> None:
    data = text.encode()
    assert in_pieces(data, cuts) == shown(data)


@given(st.text(alphabet="ab ü€\n\t\x0c\u2028", max_size=60), st.integers(1, 200), CUTS)
def test_plain_output_is_shown_as_it_is(text: str, times: int, cuts: list[int]) -> None:
    assert in_pieces(text.encode() * times, cuts) == text * times


def test_long_and_many_rows_are_kept() -> None:
    long = "x" * (3 * LONGEST)
    many = "".join(f"{n}\n" for n in range(5 * HEIGHT))
    assert shown(f"{long}\n{many}{long}".encode()) == f"{long}\n{many}{long}"
    assert shown((many + f"\x1b[{HEIGHT * 9}Atop").encode()).count("top") == 1


def test_the_libraries_own_bars() -> None:
    from tqdm import tqdm

    printed = io.StringIO()
    for epoch in tqdm(range(2), file=printed, ascii=True, mininterval=0, position=0):
        for _ in tqdm(range(50), file=printed, ascii=True, mininterval=0, position=1, leave=False):
            pass
        tqdm.write(f"epoch {epoch}: accuracy 0.{epoch}", file=printed)
    lines = [line for line in shown(printed.getvalue().encode()).split("\n") if line]
    assert lines[:2] == ["epoch 0: accuracy 0.0", "epoch 1: accuracy 0.1"]
    assert len(lines) == 3
    assert "2/2" in lines[2]


def test_the_cost_is_linear() -> None:
    bar = f"\rEpoch 1:  50%|{'█' * 30}| 200/400 [00:01<00:01, 1234.5it/s]".encode()
    begin = time.process_time()
    assert len(shown(bar * 30_000)) < 100
    assert len(shown(b"x" * 300_000 + b"\rlonger" * 50_000)) > 300_000
    assert time.process_time() - begin < 5
