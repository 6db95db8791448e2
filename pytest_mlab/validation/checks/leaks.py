"""Check: an agent sees no answers, and nothing that determines them."""

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


Opaque = Sequence[tuple[str, list[bytes]]]
"""Answer files that are not tables: their names, and pieces of each."""


@dataclass(frozen=True)
class Suspicion:
    """Something visible that gives away the answers in ``file``; ``column`` is '' for the whole
    file."""

    file: str
    column: str
    words: str


class Leaks:
    """Compares by value: names of files and columns mean nothing."""

    name = "leaks"
    about = "no answers, nor columns that determine them, are in sight"

    def run(self, bench: Bench) -> Finding:
        """Compare every visible file with every hidden answer."""
        closed: Counter[str] = Counter()
        tables, opaque = _hidden(bench, closed)
        visible = 0
        found: list[Suspicion] = []
        for parts in _visible(bench, closed):
            visible += 1
            for name, content in parts:
                found += _in_file(name, content, tables, opaque, bench.settings.leaks)
        words = [
            item.words for item in _distinct(found) if not item.column or _matters(bench, item)
        ]
        if bench.sandbox.isolated:
            words += _in_the_sandbox(bench, tables, opaque)
        if words:
            more = f" (and {len(words) - 3} more)" if len(words) > 3 else ""
            return fail("; ".join(words[:3]) + more, found=words, closed=dict(closed))
        columns = sum(len(table.columns) for table in tables)
        parts_of_answers = (
            f"{text.plural(columns, 'column')} and {text.plural(len(opaque), 'other file')}"
        )
        return ok(
            f"{parts_of_answers} of answers, {text.plural(visible, 'visible file')}"
            + _remarks(bench, closed),
            columns=columns,
            opaque=len(opaque),
            visible=visible,
            closed=dict(closed),
        )


def _in_the_sandbox(bench: Bench, tables: Sequence[Answers], opaque: Opaque) -> list[str]:
    """The files with pieces of answers that a program finds from inside the sandbox."""
    needles = [needle for table in tables for few in table.needles.values() for needle in few]
    needles += [piece for _, few in opaque for piece in few]
    return [word for word in search(bench, needles) if PIECE in word]


def _remarks(bench: Bench, closed: Counter[str]) -> str:
    """What the task shares by its own word, and what the scan did not look into."""
    words = ""
    if bench.task.shared:
        words += f"; shared: {', '.join(bench.task.shared)}"
    if not bench.sandbox.isolated:
        words += "; the sandbox's view: not applicable, local hides nothing"
    if closed:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in closed.most_common())
        words += f"; not looked into: {kinds}"
    return words


# --- what is hidden, what is visible ---


def _hidden(bench: Bench, closed: Counter[str]) -> tuple[list[Answers], Opaque]:
    """Tables of answers, and pieces of the other answer files."""
    limits = bench.settings.leaks
    tables: list[Answers] = []
    opaque: list[tuple[str, list[bytes]]] = []
    secrets = [
        secret
        for secret in secrets_of(bench.task, bench.prepared)
        if secret.name.startswith("answers/")
    ]
    for secret in secrets:
        name, content = secret.name.removeprefix("answers/"), _content(secret.path, closed)
        inside = list(unpacked(name, content, closed))
        # A packed file holds none of the bytes that its members have.
        for inner, data in inside[1:] or inside:
            parsed = columns_in(inner, data)
            tables += [_answers(table, limits.bits) for table in parsed if table.length >= 2]
            if not parsed and (few := pieces(data, limits.bits)):
                opaque.append((inner, few))
    step = max(1, len(opaque) // FILES)
    return tables, opaque[::step]


def _answers(table: Columns, least: float) -> Answers:
    """The first column whose values are all different holds the ids, when there are others beside
    it."""
    # A copy: the ids are taken out of it below, and the table stays whole.
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


# --- comparing ---


def _in_file(
    name: str, content: bytes, tables: Sequence[Answers], opaque: Opaque, limits: LeakLimits
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
            suspicion = partial(Suspicion, answers.name, column)
            what = f"{column} of answers/{answers.name}"
            if rows is not None:
                pairs = [(values[row], truth[number]) for number, row in rows]
                how = "by id"
            else:
                pairs = list(zip(values, truth, strict=True)) if len(values) == len(truth) else []
                how = "by its place"
            if pairs and (
                relation := _determined([p[0] for p in pairs], [p[1] for p in pairs], limits)
            ):
                yield suspicion(f"{visible.name}: {name} {relation} {what}, row {how}")
            elif _same_values(values, truth, limits):
                yield suspicion(f"{visible.name}: {name} has the values of {what} in another order")


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
    """How the visible values determine the answers of their rows; '' when they do not."""
    left, right = [normal(v) for v in visible], [normal(a) for a in answers]
    if bits(right) < limits.bits:
        return ""
    if (share := saved(left, right)) >= limits.error:
        return "equals" if left == right else f"determines ({share:.0%} of errors saved)"
    if (rank := rank_correlation(left, right)) >= limits.rank:
        return f"has the order (rank correlation {rank:.4f}) of"
    return ""


def _same_values(visible: Sequence[str], answers: Sequence[str], limits: LeakLimits) -> bool:
    """True for a permutation of answers with many different values: it gives their distribution
    away."""
    if len(visible) != len(answers):
        return False
    right = sorted(map(normal, answers))
    if bits(right) < limits.bits or len(set(right)) < MOSTLY * len(right):
        return False
    return sorted(map(normal, visible)) == right


def _distinct(found: Sequence[Suspicion]) -> list[Suspicion]:
    """One suspicion for each visible place and column of answers: what a join found is not listed
    again as a run of bytes."""
    return list(
        {
            (item.file, item.column, item.words.split(":")[0].split(" holds")[0]): item
            for item in found
        }.values()
    )


def _matters(bench: Bench, item: Suspicion) -> bool:
    """False when the score does not depend on the column: answers.csv may hold a group or a month
    beside the answers, and an agent may see those."""
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
    # Shuffled values are still valid ones, so the evaluator does not refuse the file. The fixed
    # seed makes the check repeatable.
    random.Random(0).shuffle(others)
    changed = bench.folder("answers")
    shutil.copytree(bench.prepared.answers, changed)
    # copytree keeps modes, and an answer file may be read-only.
    os.chmod(changed / item.file, 0o644)
    with (changed / item.file).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(
            [*row[:place], value, *row[place + 1 :]]
            for row, value in zip(rows, others, strict=True)
        )
    after = bench.evaluate(folder, changed).score
    # An evaluator that stops over the change reads the column too.
    return after is None or abs(after - before) > TIE_ABS + TIE_REL * abs(before)
