"""A file's bytes through an edit."""

from __future__ import annotations

import io

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_mlab.trial.actions.answers import fence_around, unfenced
from pytest_mlab.trial.actions.file_text import FileText, NotText, said_encoding

PIECES = st.sampled_from(
    [
        *(b"a", b"x = 1", b" ", b"\t", b"```", b"    ```", b"~~~", b"````python", b"\\", b'"""'),
        *(b"\n", b"\n", b"\r\n", b"\r", b"\x0c", b"\x0b", b"\x1c", b"\x85", b"\xc2\x85"),
        *(b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xef\xbb\xbf", b"\xe9", "ü€".encode()),
        *(b"# coding: latin-1\n", b"# coding: cp1252\n", b"# coding: utf-16\n"),
    ]
)
FILES = st.lists(PIECES, max_size=25).map(b"".join)


def echoed(before: str) -> str:
    """What comes out when the model answers with what it was shown."""
    fence = fence_around(before)
    return unfenced(f"Sure:\n{fence}python\n{before}{fence}\nDone.", before, fence=fence)


@given(FILES)
def test_a_file_that_is_answered_as_it_was_stays_byte_for_byte(data: bytes) -> None:
    file = FileText("f", data)
    try:
        before = file.text()
    except NotText:
        return
    assume(before.strip())
    assert file.rewritten(echoed(before)) == data
    assert file.replaced(1, len(file.lines), echoed(before)) == data


@given(FILES, st.data())
def test_an_edit_of_a_segment_leaves_every_other_byte(data: bytes, draw: st.DataObject) -> None:
    file = FileText("f", data)
    count = len(file.lines)
    assume(count)
    first = draw.draw(st.integers(1, count))
    last = draw.draw(st.integers(first, count))
    text = draw.draw(st.sampled_from(["new", "a\nb\n", "x = 1\r\n\r\ny\r\n", "\n", "```\n"]))
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    head, tail = b"".join(file.lines[: first - 1]), b"".join(file.lines[last:])
    assert mark + head + b"".join(file.lines[first - 1 : last]) + tail == data
    after = file.replaced(first, last, text)
    assert after.startswith(mark + head)
    assert after.endswith(tail)
    middle = after[len(mark + head) : len(after) - len(tail)].replace(b"\r", b"")
    if file.newline != b"\r":
        assert middle.removesuffix(b"\n") == text.replace("\r", "").removesuffix("\n").encode()
    # A segment in the middle stays one: the line after it is not joined to it.
    assert not tail or after[: len(after) - len(tail)].endswith(file.newline[-1:])


@given(st.text(alphabet="ab\n\r\x0c\x0b\x1c\x85\u2028\u2029", max_size=30))
def test_lines_are_counted_as_an_editor_does(text: str) -> None:
    assume("\n" in text)
    assert len(FileText("f", text.encode()).lines) == len(io.StringIO(text).readlines())


@pytest.mark.parametrize(
    ("data", "text", "after"),
    [
        (b"a\r\nb\nc\r\n", "a\nb\nnew\nc\n", b"a\r\nb\nnew\r\nc\r\n"),
        (b"a\nb\r\nc\n", "A\nb\nc\n", b"A\nb\r\nc\n"),
        (b"a\rb\rc", "a\nB\nc\n", b"a\rB\rc"),
        (b"a\nb", "a\nb\nc\n", b"a\nb\nc"),
        (b"", "a\n", b"a\n"),
        (b"", "a\r\nb\r\n", b"a\nb\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffb\n", b"\xef\xbb\xbfb\n"),
        (b"# coding: latin-1\nx = '\xe9'\n", "# coding: latin-1\nx = '\xe9'\ny = '\xfc'\n",
         b"# coding: latin-1\nx = '\xe9'\ny = '\xfc'\n"),
        # The new text says another encoding, so every line is written in it.
        (b"# coding: latin-1\nx = '\xe9'\n", "x = '\xe9'\n", b"x = '\xc3\xa9'\n"),
    ],
)  # fmt: skip
def test_new_lines_are_written_as_the_file_is(data: bytes, text: str, after: bytes) -> None:
    assert FileText("f", data).rewritten(text) == after


def test_what_an_encoding_does_not_hold_is_refused_with_its_line() -> None:
    with pytest.raises(NotText, match=r"line 2 of f is not UTF-8.*0xe9"):
        FileText("f", b"a\nb\xe9\n").text()
    assert FileText("f", b"a\nb\xe9\n").text(1, 1) == "a\n"
    with pytest.raises(NotText, match=r"line 2 of the new text has '→'.*iso8859-1"):
        FileText("f", b"# coding: latin-1\n").rewritten("# coding: latin-1\n→\n")


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"# -*- coding: latin-1 -*-\n", "iso8859-1"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n", "cp1252"),
        (b"x = 1\n# coding: latin-1\n", ""),
        (b"# coding: utf-16\n", ""),
        (b"# coding: rot13\n", ""),
        (b"# coding: nonsense\n", ""),
        (b"\xef\xbb\xbf# coding: latin-1\n", "utf-8"),
    ],
)
def test_the_encoding_is_the_one_that_the_file_says(data: bytes, name: str) -> None:
    assert said_encoding(data) == name
