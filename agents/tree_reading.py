"""Reading what the tree agent's model wrote: a solution, and the review of one."""

from __future__ import annotations

import json
import math
import re
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

_FILE = re.compile(
    r"(?ms)^[ \t*#]*File:[ \t*`]*(?P<name>[^\n`*]+?)[ \t*`]*\n\s*```[^\n]*\n(?P<content>.*?)^```["
    r" \t]*$"
)
_FENCE = re.compile(r"(?ms)^```[^\n]*\n(?P<content>.*?)^```[ \t]*$")
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
    files = tuple((match["name"].strip(), match["content"]) for match in _FILE.finditer(text))
    if not files and (blocks := [match["content"] for match in _FENCE.finditer(text)]):
        files = ((script, max(blocks, key=len)),)
    said = _RUN.search(_FENCE.sub("", text))
    if not files and said is None:
        return None
    scripts = [name for name, _ in files if name.endswith(".py")]
    run = said["name"].strip() if said else (scripts[-1] if scripts else script)
    return Solution(_plan(text), files, run)


def _plan(text: str) -> str:
    outside = re.split(r"(?m)^[ \t*#]*(?:File|Run):|^```", text)[0]
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
