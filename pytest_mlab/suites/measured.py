"""Write measured scores into the text of a task.toml: the lines of one table, and no other.

Not with tomlkit: it keeps the comments above a header with the table before it, so that a table
added there comes between a header and the comment about it (tomlkit 0.15)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from statistics import fmean, stdev

from pytest_mlab.core.task import Baseline

SIGNIFICANT_DIGITS = 12
_KEYS = ("measured", "scores", "mean", "std", "machine")


def summarise(scores: Sequence[float], *, measured: str, machine: str) -> Baseline:
    """Scores rounded to ``SIGNIFICANT_DIGITS``, with the mean and the standard deviation (ddof=1)
    of the rounded ones."""
    # The mean is taken of the rounded scores: the loader compares it with the scores in the file.
    kept = tuple(float(f"{score:.{SIGNIFICANT_DIGITS}g}") for score in scores)
    return Baseline(measured, kept, fmean(kept), stdev(kept) if len(kept) > 1 else 0.0, machine)


def with_measured(text: str, table: str, result: Baseline) -> str:
    """``text`` with ``result`` as the table ``[table]``, such as ``data.mini.baseline``.

    An existing table keeps its place, its comments and its blank lines; a new one comes after the
    last table of the same data variant. All other lines stay as they are, byte for byte."""
    lines = text.splitlines(keepends=True)
    start = _header(lines, re.escape(table))
    if start is None:
        variant = table.rpartition(".")[0]
        last = _header(lines, rf"{re.escape(variant)}(\.\w+)*", last=True)
        place = len(lines) if last is None else _end(lines, last)
        before = ["\n"] if place and lines[place - 1].strip() else []
        return "".join(
            [*_closed(lines[:place]), *before, f"[{table}]\n", *_entries(result), *lines[place:]]
        )
    stop = _end(lines, start)
    kept = _without_entries(lines[start + 1 : stop])
    return "".join([*lines[: start + 1], *_entries(result), *kept, *lines[stop:]])


def _entries(result: Baseline) -> list[str]:
    scores = ", ".join(f"{score!r}" for score in result.scores)
    values = (json.dumps(result.measured), f"[{scores}]", _float(result.mean), _float(result.std))
    pairs = zip(_KEYS, (*values, json.dumps(result.machine, ensure_ascii=False)), strict=True)
    return [f"{key} = {value}\n" for key, value in pairs]


def _float(value: float) -> str:
    """Two digits more than the scores have."""
    return repr(float(f"{value:.{SIGNIFICANT_DIGITS + 2}g}"))


def _header(lines: Sequence[str], name: str, *, last: bool = False) -> int | None:
    """The line of the first (or last) header of a table whose name matches."""
    pattern = re.compile(rf"\s*\[\[?\s*{name}\s*\]\]?\s*(#.*)?")
    found = [number for number, line in enumerate(lines) if pattern.fullmatch(line.rstrip("\r\n"))]
    return found[-1 if last else 0] if found else None


def _end(lines: Sequence[str], start: int) -> int:
    """Index after the table that begins at ``start``; comments directly above the next header
    belong to that one."""
    after = (n for n in range(start + 1, len(lines)) if re.match(r"\s*\[\[?\s*[A-Za-z]", lines[n]))
    stop = next(after, len(lines))
    while stop > start + 1 and (
        not lines[stop - 1].strip() or lines[stop - 1].lstrip().startswith("#")
    ):
        stop -= 1
    return stop


def _without_entries(lines: Sequence[str]) -> list[str]:
    """The lines of a table without those of the keys written here, lists over several lines
    included."""
    kept = []
    inside = False
    for line in lines:
        key = re.match(r"\s*(\w+)\s*=", line)
        if not inside and not (key and key[1] in _KEYS):
            kept.append(line)
            continue
        inside = (inside or "[" in line) and "]" not in line
    return kept


def _closed(lines: list[str]) -> list[str]:
    """The lines, the last one ended."""
    return [*lines[:-1], lines[-1].rstrip("\n") + "\n"] if lines else []
