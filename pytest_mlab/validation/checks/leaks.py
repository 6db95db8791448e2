"""Check: no answer, and nothing that determines answers, is in what an agent sees."""

from __future__ import annotations

import csv
import os
import random
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pytest_mlab.core.scoring import TIE_ABS, TIE_REL
from pytest_mlab.lib.digests import walk
from pytest_mlab.reporting import text
from pytest_mlab.validation.bench import Bench, LeakLimits
from pytest_mlab.validation.columns import Columns, columns_in
from pytest_mlab.validation.dependence import bits, normal, rank_correlation, saved
from pytest_mlab.validation.finding import Finding, Unavailable, fail, ok
from pytest_mlab.validation.hidden import PIECE, search, secrets_of
from pytest_mlab.validation.needles import column_needles, pieces
from pytest_mlab.validation.packed import LARGEST, unpacked

FILES = 64
"""Answer files without columns whose pieces are searched for; of more, evenly spread ones are
taken."""

MOSTLY = 0.5
"""Share of the answers' ids that a visible column must hold to be joined with; also of different
values from which on the sorted values of a column mean something."""


@dataclass(frozen=True)
class Answers:
    """A table of answers: its ids (None where rows count by their place), its other columns, and
    runs of those as bytes to search for."""

    name: str
    ids: Sequence[str] | None
    columns: dict[str, Sequence[str]]
    needles: dict[str, list[bytes]]


@dataclass(frozen=True)
class Suspicion:
    """Something visible that tells the answers in ``file``; ``column`` is '' for the file as a
    whole."""

    file: str
    column: str
    words: str


class Leaks:
    """Compares by value: names of files and columns mean nothing."""

    name = "leaks"
    about = "no answers, nor columns that determine them, are in sight"

    def run(self, bench: Bench) -> Finding:
        """Compare every visible file with every hidden answer."""
        limits = bench.settings.leaks
        closed: Counter[str] = Counter()
        tables, opaque = _hidden(bench, closed)
        found, count = [], 0
        for parts in _visible(bench, closed):
            count += 1
            for name, content in parts:
                found += list(_in_file(name, content, tables, opaque, limits))
        found = [item for item in _distinct(found) if not item.column or _matters(bench, item)]
        words = [item.words for item in found]
        if bench.sandbox.isolated:
            runs = [needle for table in tables for few in table.needles.values() for needle in few]
            everything = [*runs, *(piece for _, few in opaque for piece in few)]
            words += [word for word in search(bench, everything) if PIECE in word]
        if words:
            more = f" (and {len(words) - 3} more)" if len(words) > 3 else ""
            return fail("; ".join(words[:3]) + more, found=words, closed=dict(closed))
        view = (
            ""
            if bench.sandbox.isolated
            else "; the sandbox's view: not applicable, local hides nothing"
        )
        columns = sum(len(table.columns) for table in tables)
        sought = (
            f"{text.plural(columns, 'column')} and {text.plural(len(opaque), 'other file')} of"
            " answers"
        )
        shared = f"; shared: {', '.join(bench.task.shared)}" if bench.task.shared else ""
        told = f"{sought}, {text.plural(count, 'visible file')}{shared}{view}{_not_seen(closed)}"
        return ok(told, columns=columns, opaque=len(opaque), visible=count, closed=dict(closed))


def _not_seen(closed: Counter[str]) -> str:
    """What the scan did not look into, in words."""
    kinds = ", ".join(f"{count} x {kind}" for kind, count in closed.most_common())
    return f"; not looked into: {kinds}" if kinds else ""


# --- what is hidden, what is visible --------------------------------------------------------------


def _hidden(
    bench: Bench, closed: Counter[str]
) -> tuple[list[Answers], list[tuple[str, list[bytes]]]]:
    """Tables of answers, and pieces of the files that are none."""
    limits = bench.settings.leaks
    tables, opaque = [], []
    secrets = [
        secret
        for secret in secrets_of(bench.task, bench.prepared)
        if secret.name.startswith("answers/")
    ]
    for secret in secrets:
        name, content = secret.name.removeprefix("answers/"), _content(secret.path, closed)
        inside = list(unpacked(name, content, closed))
        for inner, data in inside[1:] or inside:  # what is packed looks like nothing that it holds
            parsed = columns_in(inner, data)
            tables += [_answers(table, limits.bits) for table in parsed if table.length >= 2]
            if not parsed and (few := pieces(data, limits.bits)):
                opaque.append((inner, few))
    step = max(1, len(opaque) // FILES)
    return tables, opaque[::step]


def _answers(table: Columns, least: float) -> Answers:
    """The first column whose values are all different holds the ids, when there are others beside
    it."""
    columns = dict(table.columns)
    ids = None
    if len(columns) > 1:
        unique = next(
            (name for name, values in columns.items() if len(set(values)) == len(values)), None
        )
        ids = [normal(value) for value in columns.pop(unique)] if unique is not None else None
    return Answers(
        table.name,
        ids,
        columns,
        {name: list(column_needles(v, least)) for name, v in columns.items()},
    )


def _visible(bench: Bench, closed: Counter[str]) -> Iterator[Iterable[tuple[str, bytes]]]:
    """All that an agent gets, file by file with what is in it: its workspace with the public files,
    and the task's description."""
    yield [("description.md", bench.task.description.encode())]
    for folder in (bench.task.folder / "env", bench.prepared.public):
        for name, entry in walk(folder):
            if entry.is_file():
                yield unpacked(name, _content(Path(entry.path), closed), closed)


def _content(path: Path, closed: Counter[str]) -> bytes:
    with path.open("rb") as file:
        content = file.read(LARGEST)
        if file.read(1):
            closed[f"part of a file beyond {LARGEST >> 20} MiB"] += 1
        return content


# --- comparing ------------------------------------------------------------------------------------


def _in_file(
    name: str,
    content: bytes,
    tables: Sequence[Answers],
    opaque: Sequence[tuple[str, list[bytes]]],
    limits: LeakLimits,
) -> Iterator[Suspicion]:
    for file, few in opaque:
        hits = sum(piece in content for piece in few)
        if hits > limits.windows * len(few):
            yield Suspicion(file, "", f"{name} holds {hits} of {len(few)} pieces of answers/{file}")
    visible = columns_in(name, content)
    for table in tables:
        for column, few in table.needles.items():
            if any(needle in content for needle in few):
                yield Suspicion(
                    table.name, column, f"{name} holds a run of {column} of answers/{table.name}"
                )
        for other in visible:
            yield from _in_table(other, table, limits)


def _in_table(visible: Columns, answers: Answers, limits: LeakLimits) -> Iterator[Suspicion]:
    joined = _join(visible, answers)
    rows = joined[1] if joined else None
    for name, values in visible.columns.items():
        if joined and name == joined[0]:
            continue
        for column, truth in answers.columns.items():
            say = partial(Suspicion, answers.name, column)
            what = f"{column} of answers/{answers.name}"
            if rows is not None:
                pairs = [(values[row], truth[number]) for number, row in rows]
                how = "by id"
            else:
                pairs = list(zip(values, truth, strict=True)) if len(values) == len(truth) else []
                how = "by its place"
            if pairs and (
                told := _determined([p[0] for p in pairs], [p[1] for p in pairs], limits)
            ):
                yield say(f"{visible.name}: {name} {told} {what}, row {how}")
            elif _same_values(values, truth, limits):
                yield say(f"{visible.name}: {name} has the values of {what} in another order")


def _join(visible: Columns, answers: Answers) -> tuple[str, list[tuple[int, int]]] | None:
    """The visible column that holds the answers' ids, and pairs of rows (of answers, of
    visible)."""
    if answers.ids is None:
        return None
    for name, values in visible.columns.items():
        places: dict[str, int] = {}
        for place, value in enumerate(values):
            places.setdefault(normal(value), place)
        rows = [(number, places[i]) for number, i in enumerate(answers.ids) if i in places]
        if len(rows) > MOSTLY * len(answers.ids):
            return name, rows
    return None


def _determined(visible: Sequence[str], answers: Sequence[str], limits: LeakLimits) -> str:
    """How the visible values tell the answers of their rows; '' when they do not."""
    left, right = [normal(v) for v in visible], [normal(a) for a in answers]
    if bits(right) < limits.bits:
        return ""
    if (share := saved(left, right)) >= limits.error:
        return "equals" if left == right else f"determines ({share:.0%} of errors saved)"
    if (rank := rank_correlation(left, right)) >= limits.rank:
        return f"has the order (rank correlation {rank:.4f}) of"
    return ""


def _same_values(visible: Sequence[str], answers: Sequence[str], limits: LeakLimits) -> bool:
    """True for a permutation of answers that are many different values: their distribution is given
    away."""
    if len(visible) != len(answers):
        return False
    right = sorted(map(normal, answers))
    if bits(right) < limits.bits or len(set(right)) < MOSTLY * len(right):
        return False
    return sorted(map(normal, visible)) == right


def _distinct(found: Sequence[Suspicion]) -> list[Suspicion]:
    """One for each visible place and column of answers: what a join found need not be told as a run
    of bytes too."""
    return list(
        {
            (item.file, item.column, item.words.split(":")[0].split(" holds")[0]): item
            for item in found
        }.values()
    )


def _matters(bench: Bench, item: Suspicion) -> bool:
    """False when the score does not depend on the column: a group or a month beside the answers is
    none itself."""
    path = bench.prepared.answers / item.file
    if path.suffix != ".csv" or not path.is_file():
        return True
    try:
        folder, before = bench.submission, bench.valid_score
    except Unavailable:
        return True
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = [line for line in csv.reader(file) if line]
    place = next(
        (n for n, name in enumerate(header) if (name.strip() or "''") == item.column), None
    )
    if place is None:
        return True
    others = [row[place] for row in rows]
    random.Random(0).shuffle(others)
    changed = bench.folder("answers")
    shutil.copytree(bench.prepared.answers, changed)
    os.chmod(changed / item.file, 0o644)
    with (changed / item.file).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(
            [*row[:place], value, *row[place + 1 :]]
            for row, value in zip(rows, others, strict=True)
        )
    after = bench.evaluate(folder, changed).score
    return after is None or abs(after - before) > TIE_ABS + TIE_REL * abs(before)
