"""Takes a file's new content out of a model's answer: out of its code block, even where the content
has code blocks of its own, or words stand around it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

# Three tildes or backticks, and after these no other backtick: that would be code in a line.
_FENCE = re.compile(r"([ \t]*)(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*?)[ \t]*$")
_IN_LINE = re.compile(r"(`{3,})([^`\n]+)\1")
_MARKDOWN = ("markdown", "md", "rst", "text", "txt")
_NO_PROGRAM = "``` (\n"
_MOST = 200
"""Readings of an answer that are tried at most."""


class _Fence(NamedTuple):
    line: int
    indent: int
    mark: str
    info: str

    def closed_by(self, other: _Fence) -> bool:
        """The rules of CommonMark: the same character, as many or more, nothing behind them."""
        return (
            other.line > self.line
            and other.mark.startswith(self.mark)
            and not other.info
            and other.indent <= self.indent + 3
        )


class _Reading(NamedTuple):
    """A part of an answer that may be the content: its lines from ``begin`` up to ``end``."""

    begin: int
    end: int
    indent: int = 0

    @property
    def size(self) -> int:
        return self.end - self.begin


def fence_around(content: str) -> str:
    """A fence for a code block that holds ``content``: longer than any in it."""
    return "`" * max(3, 1 + max((len(run) for run in re.findall("`+", content)), default=0))


def unfenced(
    answer: str, before: str = "", *, fence: str = "```", fits: Callable[[str], bool] | None = None
) -> str:
    """The content in ``answer``; ends in a line break, unless it is empty.

    ``before`` is what it replaces, ``fence`` the one that was asked for. ``fits`` says whether the
    file would be well formed with it; of several readings of the answer the largest that fits is
    taken, and else the one that is most like ``before``."""
    lines = answer.replace("\r\n", "\n").strip("\n").split("\n")
    fences = list(_fences(lines))
    whole = _Reading(0, len(lines))
    if not fences:
        if in_line := _IN_LINE.fullmatch(answer.strip()):
            return in_line[2].strip() + "\n"
        return _text(lines, whole)
    asked = _as_asked(fences, fence)
    if asked is not None:
        return _text(lines, asked)
    readings = _readings(fences, len(lines))
    # The ordinary answer: one block, which begins it.
    if len(fences) == 2 and len(readings) == 2 and not "".join(lines[: fences[0].line]).strip():
        return _text(lines, readings[0])
    if "".join(lines[: fences[0].line]).strip():
        readings.append(whole)
    readings = _after_quotes(lines, readings, before)
    # In the middle of a string everything fits, and so says nothing.
    if fits is not None and not fits(_NO_PROGRAM):
        for reading in sorted(readings, key=lambda r: (-r.size, -r.begin)):
            text = _text(lines, reading)
            if text.strip() and fits(text):
                return text
    likeness = [_likeness(before, _text(lines, reading)) for reading in readings]
    if max(likeness) > 0:
        return _text(lines, readings[likeness.index(max(likeness))])
    return _text(lines, _by_form(fences, readings, len(lines), before))


def _fences(lines: Sequence[str]) -> Iterator[_Fence]:
    for number, line in enumerate(lines):
        if found := _FENCE.match(line):
            yield _Fence(number, len(found[1].expandtabs(4)), found[2], found[3])


def _as_asked(fences: Sequence[_Fence], fence: str) -> _Reading | None:
    """The block between fences that are longer than any in the content, as was asked."""
    long = [found for found in fences if len(found.mark) >= len(fence)]
    if len(fence) == 3 or not long or not (ends := [f for f in long if long[0].closed_by(f)]):
        return None
    return _Reading(long[0].line + 1, ends[-1].line, long[0].indent)


def _readings(fences: Sequence[_Fence], count: int) -> list[_Reading]:
    """Every block that the fences can mean: the outermost first, the one without an end last."""
    found = [
        _Reading(begin.line + 1, end.line, begin.indent)
        for begin in fences
        for end in reversed(fences)
        if begin.closed_by(end)
    ]
    return [*found[:_MOST], _Reading(fences[0].line + 1, count, fences[0].indent)]


def _after_quotes(
    lines: Sequence[str], readings: Sequence[_Reading], before: str
) -> list[_Reading]:
    """``readings`` without a block that shows what is to be replaced, when more come after it."""
    last = max(reading.begin for reading in readings)
    quotes = [r.end for r in readings if r.end < last and _text(lines, r) == before]
    # The line after the quote's end is where its closing fence, taken for an opening one, leads.
    return [r for r in readings if not quotes or r.begin > max(quotes) + 1]


def _by_form(
    fences: Sequence[_Fence], readings: Sequence[_Reading], count: int, before: str
) -> _Reading:
    """The reading that the form of the answer alone suggests."""
    blocks = [r for r in _one_after_the_other(fences, count) if r in readings]
    nested = fences[0].info.partition(" ")[0].casefold() in _MARKDOWN or any(
        _fences(before.split("\n"))
    )
    if nested or not blocks:
        return readings[0]
    # An answer may also quote a few lines of the file. The longest block is the content.
    return max(blocks, key=lambda r: r.size)


def _one_after_the_other(fences: Sequence[_Fence], count: int) -> list[_Reading]:
    """The outer blocks, when a fence with a language opens one inside another and a fence without
    one closes the last that is open."""
    blocks: list[_Reading] = []
    top, depth = None, 0
    for fence in fences:
        if top is None:
            top, depth = fence, 1
        elif not fence.mark.startswith(top.mark) or fence.indent > top.indent + 3:
            continue
        elif fence.info:
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                blocks.append(_Reading(top.line + 1, fence.line, top.indent))
                top = None
    if top is not None:
        blocks.append(_Reading(top.line + 1, count, top.indent))
    return blocks


def _text(lines: Sequence[str], reading: _Reading) -> str:
    taken = lines[reading.begin : reading.end]
    if reading.indent:
        taken = [re.sub(rf"^[ \t]{{0,{reading.indent}}}", "", line) for line in taken]
    text = "\n".join(taken)
    return text + "\n" if text else ""


def _likeness(before: str, text: str) -> float:
    """The share of lines that two texts have in common, 0 to 1."""
    one, other = (Counter(filter(str.strip, t.split("\n"))) for t in (before, text))
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0
