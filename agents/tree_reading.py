"""Reading what the tree agent's model wrote: a solution, and the review of one."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

REVIEW: dict[str, Any] = {
    "type": "object",
    "properties": {
        "is_bug": {
            "type": "boolean",
            "description": "true when the script failed or did not do what the task needs",
        },
        "summary": {"type": "string", "description": "your findings, in two or three sentences"},
        "metric": {
            "type": ["number", "null"],
            "description": "the validation metric that it printed, or null",
        },
        "lower_is_better": {"type": "boolean", "description": "true when a lower metric is better"},
    },
    "required": ["is_bug", "summary", "metric", "lower_is_better"],
    "additionalProperties": False,
}
"""The schema of a review."""

_FILE = re.compile(r"[ \t*#]*File:[ \t*`]*(?P<name>[^\n`*]+?)[ \t*`]*$")
_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`]*?)[ \t]*$")
_RUN = re.compile(r"(?m)^[ \t*#]*Run:[ \t*`]*(?P<name>[^\n`*]+?)[ \t*`]*$")
_PLAN = re.compile(r"(?ms)^[ \t*#]*Plan:[ \t*]*(?P<plan>.*)")


@dataclass(frozen=True)
class Solution:
    """What a reply proposes: files to write, whole, and the script to run."""

    plan: str
    files: tuple[tuple[str, str], ...]
    run: str


@dataclass(frozen=True)
class Review:
    """What a review says; ``metric`` is None when there is none that is a finite number."""

    is_bug: bool
    summary: str
    metric: float | None
    lower_is_better: bool


def read_solution(text: str, script: str) -> Solution | None:
    """The solution in a reply, None when it holds none. Code without a name is ``script``'s."""
    lines = text.split("\n")
    blocks = list(_blocks(lines))
    files = tuple((b.name, b.content) for b in blocks if b.name)
    if not files and blocks:
        files = ((script, max((b.content for b in blocks), key=len)),)
    for block in reversed(blocks):
        del lines[block.begin : block.end]
    said = _RUN.search("\n".join(lines))
    if not files and said is None:
        return None
    scripts = [name for name, _ in files if name.endswith(".py")]
    run = said["name"].strip() if said else (scripts[-1] if scripts else script)
    return Solution(_plan(text), files, run)


@dataclass(frozen=True)
class _Block:
    """A code block: the name above it ('' without one), its fences' lines from ``begin`` to before
    ``end``."""

    name: str
    content: str
    begin: int
    end: int


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    at, name = 0, ""
    while at < len(lines):
        if named := _FILE.match(lines[at]):
            name = named["name"].strip()
        elif opened := _FENCE.match(lines[at]):
            if end := _end(lines, at, opened, name):
                yield _Block(name, _joined(lines[at + 1 : end]), at, end + 1)
                at = end
            name = ""
        elif lines[at].strip():
            name = ""
        at += 1


def _end(lines: Sequence[str], begin: int, opened: re.Match[str], name: str) -> int:
    """The line that closes a block, 0 for none. Code may hold fences in its texts: a program's
    block ends where it is a whole program."""
    ends, depth, outer = [], 0, 0
    for at in range(begin + 1, len(lines)):
        if _FILE.match(lines[at]) and _FENCE.match(next(filter(str.strip, lines[at + 1 :]), "")):
            break
        fence = _FENCE.match(lines[at])
        if fence is None or not fence["mark"].startswith(opened["mark"]):
            continue
        if fence["info"]:
            depth += 1
        else:
            ends.append(at)
            outer = outer or (0 if depth else at)
            depth = max(0, depth - 1)
    if name.endswith(".py") or (not name and opened["info"] in ("", "py", "python")):
        for end in reversed(ends):
            if _is_program(_joined(lines[begin + 1 : end])):
                return end
    return outer or next(iter(ends), 0)


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _is_program(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _plan(text: str) -> str:
    outside = re.split(r"(?m)^[ \t*#]*(?:File|Run):|^(?:```|~~~)", text)[0]
    match = _PLAN.search(outside)
    return (match["plan"] if match else outside).strip()


def read_review(text: str) -> Review | None:
    """The review in a reply, None when it is not JSON of :data:`REVIEW`."""
    try:
        found, _ = json.JSONDecoder(strict=False).raw_decode(text, text.index("{"))
    except ValueError:
        return None
    if not isinstance(found.get("is_bug"), bool) or not isinstance(
        found.get("lower_is_better"), bool
    ):
        return None
    metric = found.get("metric")
    usable = (
        isinstance(metric, (int, float)) and not isinstance(metric, bool) and math.isfinite(metric)
    )
    return Review(
        found["is_bug"],
        str(found.get("summary", "")),
        float(metric) if usable else None,
        found["lower_is_better"],
    )
