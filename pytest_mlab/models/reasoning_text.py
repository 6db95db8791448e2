"""Reasoning that a model writes into its answer, in tags such as ``<think>``: found and taken out.

A tag counts where a model's own stands, and nowhere else:

- an opening tag at the beginning or the end of a line, a closing tag anywhere;
- neither in a fenced code block, nor in a JSON object (a tool call's arguments), nor in quotation
  marks or backticks: there, tags are content.

A closing tag without an opening one ends reasoning that began with the answer, because many chat
templates put the opening tag into the prompt. An opening tag without a closing one begins reasoning
that lasts to the answer's end. Where tags are nested, the outermost count."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

_NAMES = r"(?:think|thinking|thought|reasoning|seed:think|budget:thinking)"
_TAG = re.compile(
    rf"<(?P<close>/?){_NAMES}(?:\s[^<>\n]*)?>|(?-i:\[(?P<end>/?)THINK\])|◁(?P<last>/?)think▷"
    r"|<\|(?:START_THINKING|begin_of_thought|(?P<over>END_THINKING|end_of_thought))\|>",
    re.IGNORECASE,
)
_MESSAGE = re.compile(
    r"<\|channel\|>\s*(?P<channel>\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"(?P<text>.*?)(?=<\|(?:end|start|channel|return|call)\|>|\Z)",
    re.DOTALL,
)
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_JSON = json.JSONDecoder(strict=False)


class _Tag(NamedTuple):
    start: int
    stop: int
    closes: bool


def split_reasoning(text: str, *, cut: bool = False) -> tuple[tuple[str, ...], str]:
    """The reasoning in ``text``, a piece for each stretch of it, and the answer without it; an
    answer without reasoning is ``text`` itself.

    ``cut``: the answer ended because it was too long. It matters only for nested tags of which the
    outer one is not closed: a complete answer begins after the last closing tag then."""
    if text.lstrip().startswith(("<|channel|>", "<|start|>")) and _MESSAGE.search(text):
        return _channels(text)
    if not _TAG.search(text):
        return (), text
    found: list[str] = []
    kept: list[str] = []
    at = 0
    for begin, inner, stop, end in _stretches(text, cut=cut):
        kept.append(text[at:begin])
        found.append(text[inner:stop].strip())
        at = end
    if not found:
        return (), text
    kept.append(text[at:])
    answer = "".join(kept)
    # Of the blanks before it only whole lines go: the first line of code is indented perhaps.
    blanks = answer[: len(answer) - len(answer.lstrip())]
    first = blanks.rfind("\n") + 1 or len(blanks)
    return tuple(filter(None, found)), answer[first:].rstrip() if answer.strip() else ""


def _channels(text: str) -> tuple[tuple[str, ...], str]:
    """The same of an answer in the form of gpt-oss (harmony), which some servers hand on as it is:
    a message's channel says whether it is analysis."""
    thoughts, answer, end = list[str](), list[str](), 0
    for message in _MESSAGE.finditer(text):
        analysis = message["channel"].lower() == "analysis"
        (thoughts if analysis else answer).append(message["text"].strip())
        end = message.end()
    answer.append(re.sub(r"<\|[^|<>]*\|>", "", text[end:]).strip())
    return tuple(filter(None, thoughts)), "\n".join(filter(None, answer))


def is_open(text: str) -> bool:
    """True when more tags of reasoning are opened than closed in ``text``."""
    tags = list(_tags(text, 0))
    return sum(tag.closes for tag in tags) * 2 < len(tags)


def _stretches(text: str, *, cut: bool) -> Iterator[tuple[int, int, int, int]]:
    """Where each stretch of reasoning begins, its text begins, its text ends, and it ends."""
    at, tag = 0, _next(text, 0)
    while tag is not None:
        if tag.closes:
            # What was kept so far was reasoning too, up to the last stretch.
            yield at, at, tag.start, tag.stop
            at = tag.stop
        else:
            last = _end(text, tag, cut=cut)
            if last is None:
                yield tag.start, tag.stop, len(text), len(text)
                return
            yield tag.start, tag.stop, last.start, last.stop
            at = last.stop
        tag = _next(text, at)


def _end(text: str, opening: _Tag, *, cut: bool) -> _Tag | None:
    """The tag that closes ``opening``; None when none does."""
    depth, last = 1, None
    # Inside reasoning a model may open a fence and forget it, so fences protect nothing here.
    for tag in _tags(text, opening.stop):
        if not tag.closes:
            depth += 1
            continue
        depth, last = depth - 1, tag
        if depth == 0:
            return tag
    return None if cut else last


def _next(text: str, at: int) -> _Tag | None:
    """The next tag from ``at`` on that is no content. An opening tag that is content takes its
    closing one with it."""
    content = 0
    fences = list(_fenced(text, at))
    for tag in _tags(text, at):
        if any(begin < tag.start < end for begin, end in fences) or _in_object(text, at, tag):
            continue
        if tag.closes:
            if not content:
                return tag
            content -= 1
        elif not text[at : tag.start].rpartition("\n")[2].strip() or _ends_line(text, tag):
            return tag
        else:
            content += 1
    return None


def _ends_line(text: str, tag: _Tag) -> bool:
    return text[tag.stop :].lstrip(" \t")[:1] in ("", "\n")


def _tags(text: str, at: int) -> Iterator[_Tag]:
    """All tags from ``at`` on that are not quoted."""
    for match in _TAG.finditer(text, at):
        if not _is_quoted(text, match.start(), match.end()):
            yield _Tag(match.start(), match.end(), _closes(match))


def _closes(match: re.Match[str]) -> bool:
    return any(match.group("close", "end", "last", "over"))


def _is_quoted(text: str, start: int, stop: int) -> bool:
    """True when a quotation mark that touches the tag opens or ends a quotation around it."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    if before.endswith(('\\"', "\\'")):
        return True
    around = before[-1:] + text[stop : stop + 1]
    # A mark that is even in number on the line has ended a quotation before the tag.
    return any(before.count(mark) % 2 == 1 for mark in around if mark in "\"'`")


def _fenced(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Begin and end of every fenced block from ``at`` on. A block that nothing closes, or in which
    another one begins, was perhaps forgotten in the middle of reasoning: it lasts to a line that is
    a closing tag."""
    begin, mark, forgotten = 0, "", False
    for match in _FENCE.finditer(text, at):
        fence, rest = match[1], match[2].strip()
        if not mark:
            begin, mark, forgotten = match.start(), fence, False
        elif rest:
            forgotten = True
        elif fence.startswith(mark):
            yield begin, _forgotten(text, begin, match.end()) if forgotten else match.end()
            mark = ""
    if mark:
        yield begin, _forgotten(text, begin, len(text))


def _forgotten(text: str, begin: int, end: int) -> int:
    """Where a closing tag that nothing in the block opens has a line of its own, else ``end``."""
    depth = 0
    for match in _TAG.finditer(text, begin, end):
        depth += -1 if _closes(match) else 1
        line = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
        if depth < 0 and line.strip() == match[0]:
            return match.start()
    return end


def _in_object(text: str, at: int, tag: _Tag) -> bool:
    """True when a JSON object that begins before ``tag`` ends after it."""
    start = text.find("{", at, tag.start)
    while start >= 0:
        try:
            _, end = _JSON.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1, tag.start)
            continue
        if end > tag.start:
            return True
        start = text.find("{", end, tag.start)
    return False
