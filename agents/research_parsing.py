"""Reading what a model wrote: the fields of a reply, and arguments that are nearly JSON."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

REFLECTION = "Reflection"
PLAN = "Research Plan and Status"
FACT_CHECK = "Fact Check"
THOUGHT = "Thought"
ACTION = "Action"
INPUT = "Action Input"
FIELDS = (REFLECTION, PLAN, FACT_CHECK, THOUGHT, ACTION, INPUT)

STOP = "Observation:"


def parse_reply(text: str, fields: Sequence[str] = FIELDS) -> tuple[dict[str, str], str]:
    """The ``fields`` of a reply, and '' or which of them are missing. They count in their order
    only: a heading that comes too early belongs to the text around it. Headings may be bold or in
    other letters."""
    text = re.split(rf"(?mi)^[ \t*#>]*{STOP}", text)[0]
    found: list[tuple[str, int, int]] = []
    start = 0
    for field in fields:
        heading = re.compile(rf"(?mi)^[ \t*#>]*{field}[ \t*]*:[ \t*]*")
        match = heading.search(text, start)
        if match:
            found.append((field, match.start(), match.end()))
            start = match.end()
    ends = [*(begin for _, begin, _ in found), len(text)][1:]
    values = {
        field: text[begin:end].strip() for (field, _, begin), end in zip(found, ends, strict=True)
    }
    missing = [field for field in fields if field not in values]
    return values, f"it lacks {', '.join(missing)}" if missing else ""


def clean_action(name: str) -> str:
    """An action's name without decoration around it; only the first line counts."""
    lines = name.strip().splitlines() or [""]
    return lines[0].strip(" \t`*\"'.[]")


def unmarked(plan: str) -> str:
    """A plan without the marks of what is new, and without a code fence around it."""
    return plan.strip().strip("`").strip().replace("**", "")


def read_arguments(text: str, names: Iterable[str]) -> tuple[dict[str, Any] | None, str]:
    """The arguments in ``text`` and how they were read: ``as is``, ``sanitised``, ``by names``;
    None when not at all.

    ``names`` are the arguments that the action has.
    """
    for how, read in (("as is", _as_is), ("sanitised", _sanitised)):
        try:
            value = read(text)
            if isinstance(value, str):  # the object was encoded twice
                value = read(value)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
        if isinstance(value, dict) and all(isinstance(name, str) for name in value):
            return value, how
    by_names = _by_names(text, names)
    return (by_names, "by names") if by_names else (None, "")


def _as_is(text: str) -> Any:
    return json.loads(text)


def _sanitised(text: str) -> Any:
    """Code fences and words around the object dropped, raw line breaks in strings and commas before
    a bracket allowed, a missing last brace added; then a Python literal."""
    start = text.find("{")
    if start < 0:
        raise ValueError("no object")
    body = text[start:].rstrip().removesuffix("```").rstrip()
    for attempt in (body, re.sub(r",(\s*[}\]])", r"\1", body), body + "}", body + '"}'):
        value = _decoded(attempt)
        if value is not None:
            return value
    return ast.literal_eval(body[: body.rfind("}") + 1])


def _decoded(text: str) -> Any:
    try:
        return json.JSONDecoder(strict=False).raw_decode(text)[0]
    except ValueError:
        return None


def _by_names(text: str, names: Iterable[str]) -> dict[str, Any]:
    places = sorted(
        (match.start(), match.end(), name)
        for name in names
        if (match := re.search(rf"[\"']?\b{re.escape(name)}\b[\"']?\s*:", text))
    )
    ends = [*(start for start, _, _ in places), len(text)][1:]
    return {
        name: _value(text[begin:end]) for (_, begin, name), end in zip(places, ends, strict=True)
    }


def _value(raw: str) -> Any:
    text = raw.strip().removesuffix("```").rstrip()
    text = text.removesuffix("}").rstrip().removesuffix(",").rstrip()
    try:
        return json.loads(text, strict=False)
    except ValueError:
        pass
    text = text.removeprefix('"').removesuffix('"')
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
