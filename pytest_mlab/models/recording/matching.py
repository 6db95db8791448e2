"""Compares a request with the recorded one.

Texts that vary from run to run by themselves are left out of the comparison: see :data:`VOLATILE`.
Other output of an agent's own scripts counts, such as a loss in its eighth digit."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pytest_mlab.core.model_api import Message, ModelRequest

_NUMBER = r"\d+(?:[.,]\d+)?(?:e[-+]?\d+)?"

VOLATILE: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "<date>",
        re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"),
    ),
    ("<time>", re.compile(r"\b\d?\d:\d\d:\d\d(?:[.,]\d+)?\b|\b\d\d:\d\d<(?:\d\d:\d\d|\?)")),
    ("<rate>", re.compile(rf"\b{_NUMBER}\s?(?:[a-z]+/s(?:ec(?:ond)?)?|s/[a-z]+)\b")),
    (
        "<duration>",
        re.compile(
            rf"\b(?:\d+\s?(?:hours?|h|minutes?|min|m),?\s?)*{_NUMBER}\s?(?:ns|us|[µμ]s|ms|msecs?|s|secs?|seconds?)\b"
            r"|\b\d+\.\d+\s?(?:minutes?|mins?|hours?|h)\b"
        ),
    ),
    ("<temporary>", re.compile(r"(?:/var)?/tmp/[\w./-]+")),
    ("<address>", re.compile(r"\b0x[0-9a-f]{6,16}\b")),
    ("<pid>", re.compile(r"\b(?:pid|process)[ =:#]+\d+", re.IGNORECASE)),
    # Earlier versions hid these as keys in their recordings; lib/secrets.py takes less for a key.
    # A prompt of today is compared with such a recording only after the same is hidden in it.
    (
        "[key]",
        re.compile(
            r"\b(?:sk|pk|rk)-(?:[A-Za-z]+\d*-){0,4}(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[\w-]{20,}"
            r"|\b(?:hf|gsk|r8|nvapi|pplx|gh[pousr])[_-](?=[A-Za-z]*\d)[\w-]{30,}"
            r"|\bxai-[A-Za-z0-9]{30,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{35}"
            r"|(?<=Bearer )[A-Za-z0-9._~+/-]{16,}=*",
            re.ASCII,
        ),
    ),
    # Of the task's text; earlier versions did not have it.
    ("", re.compile(r"\n\nThe sandbox has Python 3[^\n]*")),
    ("<size>", re.compile(r"\b\d+ (?:bytes|characters)(?= are kept as| left out| of \d+ bytes)")),
)
"""What is replaced before requests are compared: points in time, times of day and of progress bars,
rates, durations, files below /tmp, addresses in memory, process numbers, what the task's text says
of the sandbox, and the sizes in the environment's notes on cut outputs."""

SCREEN = 24
"""Lines of a difference at most."""

_WIDTH = 74
_CONTEXT = 2


class Part(NamedTuple):
    """A part of a request, comparable: its title for people and its text."""

    title: str
    text: str


def comparable(request: ModelRequest, clean: Callable[[str], str]) -> tuple[Part, ...]:
    """All that matters of a request, in parts, without what is volatile. Timeouts do not matter.

    ``clean`` takes secrets and paths out. It is applied to recorded requests too, which another
    version may have cleaned in another way."""
    parameters = {
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "stop": list(request.stop),
        "must_call": request.must_call,
        "schema": request.schema,
        "extra": dict(request.extra),
    }
    tools = [tool.as_json() for tool in request.tools]
    return (
        Part("model", request.model),
        Part("parameters", clean(_json(parameters))),
        Part("tools", clean(_json(tools))),
        *(
            Part(f"message {n} ({m.role})", without_volatile(clean(_plain(m))))
            for n, m in enumerate(request.messages, 1)
        ),
    )


def without_volatile(text: str) -> str:
    """``text`` with everything that :data:`VOLATILE` lists replaced by its name."""
    for name, pattern in VOLATILE:
        text = pattern.sub(name, text)
    return text


def difference(recorded: tuple[Part, ...], now: tuple[Part, ...]) -> list[str]:
    """Where two requests differ, for people: a line a part, each with a unified diff; at most
    :data:`SCREEN` lines."""
    lines: list[str] = []
    for title, old, new in _unequal(recorded, now):
        if old is None or new is None:
            if old is None:
                sign, change = "+", "is there now and was not recorded"
            else:
                sign, change = "-", "was recorded and is not there now"
            lines.append(f"{title} {change}:")
            lines += [f"{sign}{_cut(line)}" for line in (new or old or "").split("\n")]
        else:
            lines.append(f"{title} (- recorded, + now):")
            lines += _unified(old.split("\n"), new.split("\n"))
    if len(lines) > SCREEN:
        lines = [*lines[: SCREEN - 1], f"... and {len(lines) - SCREEN + 1} more lines that differ"]
    return lines


def _unequal(
    recorded: tuple[Part, ...], now: tuple[Part, ...]
) -> Iterator[tuple[str, str | None, str | None]]:
    old, new = {part.title: part.text for part in recorded}, {part.title: part.text for part in now}
    for title in dict.fromkeys((*old, *new)):
        if old.get(title) != new.get(title):
            yield title, old.get(title), new.get(title)


def _unified(old: list[str], new: list[str]) -> list[str]:
    """The unified diff, long lines cut to where they differ."""
    lines: list[str] = []
    gone: list[str] = []
    for line in list(difflib.unified_diff(old, new, n=_CONTEXT, lineterm=""))[2:]:
        if line.startswith("-"):
            gone.append(line[1:])
        elif line.startswith("+") and gone:
            before, after = _cut_together(gone.pop(0), line[1:])
            lines += [f"-{before}", f"+{after}"]
        else:
            lines += [f"-{_cut(text)}" for text in gone]
            gone.clear()
            place = re.match(r"@@ -(\d+)", line)
            lines.append(f"@@ line {place[1]}" if place else line[:1] + _cut(line[1:]))
    return lines + [f"-{_cut(text)}" for text in gone]


def _cut_together(before: str, after: str) -> tuple[str, str]:
    """Two lines from shortly before their first difference on."""
    same = next(
        (n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b),
        min(len(before), len(after)),
    )
    start = same - _WIDTH // 3
    if max(len(before), len(after)) <= _WIDTH or start <= 4:
        return _cut(before), _cut(after)
    return _cut(f"... {before[start:]}"), _cut(f"... {after[start:]}")


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 4]} ..."


def _plain(message: Message) -> str:
    calls = "".join(
        f"\ncalls {call.name} ({call.id}): {call.arguments}" for call in message.tool_calls
    )
    answers = f"\nanswers {message.tool_call_id}" if message.tool_call_id else ""
    # Signatures and encrypted reasoning are left out: nobody can read where they differ.
    thought = "".join(f"\nthinks {b['thinking']}" for b in message.reasoning if b.get("thinking"))
    return f"{message.content}{calls}{answers}{thought}"


def _json(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, default=str)
