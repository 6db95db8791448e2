"""A submission that is a csv file, as a table that can be changed."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from pytest_mlab.validation.finding import Unavailable

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """``key`` is the position of the column of ids: the first declared one whose values are all
    different."""

    header: Row
    rows: tuple[Row, ...]
    key: int

    @property
    def values(self) -> tuple[int, ...]:
        """Positions of the other columns."""
        return tuple(n for n in range(len(self.header)) if n != self.key)

    def column(self, place: int) -> list[str]:
        """The values of one column."""
        return [row[place] for row in self.rows]

    def with_columns(self, columns: Mapping[int, Sequence[str]]) -> Table:
        """The same with other values in some columns."""
        rows = [
            tuple(columns[n][number] if n in columns else value for n, value in enumerate(row))
            for number, row in enumerate(self.rows)
        ]
        return replace(self, rows=tuple(rows))

    def text(self) -> str:
        """As a csv file."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
        return out.getvalue()


def read_table(path: Path, declared: Sequence[str]) -> Table:
    """The table in a csv file. Raises Unavailable for another file, and for a table without a
    column of ids."""
    try:
        # A byte order mark, as spreadsheets write it, would become part of the first column's name.
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [tuple(line) for line in csv.reader(file) if line]
    except (OSError, ValueError, csv.Error) as error:
        raise Unavailable(
            f"{path.name} of the reference cannot be read as a csv file: {error}"
        ) from None
    header, rows = lines[0] if lines else (), lines[1:]
    if not rows or any(len(row) != len(header) for row in rows):
        raise Unavailable(f"{path.name} of the reference has no rows, or rows of different lengths")
    order = [header.index(name) for name in declared if name in header] or range(len(header))
    for place in order:
        if len({row[place] for row in rows}) == len(rows):
            return Table(header, tuple(rows), place)
    raise Unavailable(f"{path.name} of the reference has no column of ids, all of them different")


def numbers(values: Sequence[str]) -> list[float] | None:
    """The values as numbers; None when a value is not a number."""
    try:
        return [float(value) for value in values]
    except ValueError:
        return None


def constants(table: Table) -> Iterator[tuple[str, Table]]:
    """The table with every value column constant: its first, its most frequent, its mean value."""
    count = len(table.rows)
    columns = {place: table.column(place) for place in table.values}
    yield (
        "first value",
        table.with_columns({n: [values[0]] * count for n, values in columns.items()}),
    )
    frequent = {n: [Counter(values).most_common(1)[0][0]] * count for n, values in columns.items()}
    yield "most frequent value", table.with_columns(frequent)
    means = {n: found for n, values in columns.items() if (found := numbers(values)) is not None}
    if len(means) == len(columns):
        yield (
            "mean value",
            table.with_columns({n: [repr(fmean(found))] * count for n, found in means.items()}),
        )


def write(path: Path, content: str | bytes) -> None:
    """Replace a file, never in place: a copied submission shares its files with the original."""
    if os.path.lexists(path):
        path.unlink()
    path.write_bytes(content.encode() if isinstance(content, str) else content)
