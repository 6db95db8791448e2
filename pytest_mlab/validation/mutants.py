"""A valid submission, broken in one way at a time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_mlab.core.task import Submission
from pytest_mlab.validation.csv_table import Row, Table, numbers, read_table, write

BINARY = bytes(range(256)) * 8
UNKNOWN_ID = "no such id"
WORD = "lots"
FILES = 6
"""Files of a directory that are broken each on its own; the rest share their fate in kind."""


COLUMNS = 3
"""Value columns that are broken each on its own; more are of one kind (scores of classes)."""


@dataclass(frozen=True)
class Mutant:
    """``make`` breaks a copy of the workspace of a valid submission. ``broken`` is False where what
    comes out may still be a submission: then it only has to end cleanly."""

    name: str
    make: Callable[[Path], None]
    broken: bool = True


def mutants(workspace: Path, submission: Submission) -> Iterator[Mutant]:
    """All ways in which the submission in ``workspace`` is broken. Raises Unavailable."""
    yield from _any_kind(submission.path)
    if submission.kind == "csv":
        table = read_table(workspace / submission.path, submission.columns)
        for name, changed, broken in _tables(table):
            yield Mutant(name, _writer(submission.path, changed), broken)
        text = table.text().encode()
        yield Mutant("truncated file", _writer(submission.path, text[: len(text) // 2]))
    elif submission.kind == "script":
        content = (workspace / submission.path).read_bytes()
        yield Mutant(
            "truncated file", _writer(submission.path, content[: len(content) // 2]), False
        )
        yield Mutant(
            "text that is not a program", _writer(submission.path, "this is not a program\n")
        )
        yield Mutant(
            "a program that fails", _writer(submission.path, "raise SystemExit('fails')\n")
        )
        yield Mutant("a program without the names asked for", _writer(submission.path, "pass\n"))
    else:
        yield from _directory(workspace, submission.path)


def _any_kind(path: str) -> Iterator[Mutant]:
    def missing(folder: Path) -> None:
        remove(folder / path)

    def directory(folder: Path) -> None:
        remove(folder / path)
        (folder / path).mkdir()

    def link(folder: Path) -> None:
        # The link's target is the valid submission: it is the link itself that must be refused.
        (folder / path).rename(folder / "elsewhere")
        (folder / path).symlink_to(os.path.relpath(folder / "elsewhere", (folder / path).parent))

    def dangling(folder: Path) -> None:
        remove(folder / path)
        (folder / path).symlink_to("no such file")

    def pipe(folder: Path) -> None:
        remove(folder / path)
        os.mkfifo(folder / path)

    def file_of(content: bytes) -> Callable[[Path], None]:
        def make(folder: Path) -> None:
            remove(folder / path)
            (folder / path).write_bytes(content)

        return make

    yield Mutant("missing", missing)
    yield Mutant("empty directory", directory)
    yield Mutant("symbolic link", link)
    yield Mutant("dangling symbolic link", dangling)
    yield Mutant("pipe", pipe)
    yield Mutant("empty file", file_of(b""))
    yield Mutant("binary file", file_of(BINARY))


def _directory(workspace: Path, path: str) -> Iterator[Mutant]:
    root = workspace / path
    names = sorted(
        str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and not p.is_symlink()
    )
    for name in names[:FILES]:
        inner, content = f"{path}/{name}", (root / name).read_bytes()
        # Whether a file is needed is for the task to say; that it ends cleanly without it is not.
        yield Mutant(f"{name} missing", _remover(inner), False)
        yield Mutant(f"{name} empty", _writer(inner, b""), False)
        yield Mutant(f"{name} truncated", _writer(inner, content[: len(content) // 2]), False)
        yield Mutant(f"{name} binary", _writer(inner, BINARY), False)


def _tables(table: Table) -> Iterator[tuple[str, str, bool]]:
    """Names, csv texts, and whether they are surely no submission any more."""

    def text(header: Row, rows: tuple[Row, ...]) -> str:
        return Table(header, rows, table.key).text()

    header, rows = table.header, table.rows
    yield "header only", text(header, ()), True
    yield "no header", text(rows[0], rows[1:]), True
    yield "missing id", text(header, rows[:-1]), True
    yield "extra id", text(header, (*rows, _with(rows[0], table.key, UNKNOWN_ID))), True
    yield "unknown id", text(header, (_with(rows[0], table.key, UNKNOWN_ID), *rows[1:])), True
    yield "duplicate id", text(header, (*rows, rows[0])), True
    if len(rows) > 1:
        yield (
            "one id for another",
            text(header, (_with(rows[0], table.key, rows[1][table.key]), *rows[1:])),
            True,
        )
    yield "row cut short", text(header, (rows[0][:-1], *rows[1:])), True
    yield "extra column", text((*header, "extra"), tuple((*row, "1") for row in rows)), False
    if table.values:
        other = table.values[0]
        names = list(header)
        names[table.key], names[other] = names[other], names[table.key]
        yield "swapped columns", text(tuple(names), rows), True
    for place in table.values[:COLUMNS]:
        yield from _column(table, place, text)


def _column(
    table: Table, place: int, text: Callable[[Row, tuple[Row, ...]], str]
) -> Iterator[tuple[str, str, bool]]:
    header, rows, name = table.header, table.rows, table.header[place]
    without = tuple(n for n in range(len(header)) if n != place)
    cut = tuple(tuple(row[n] for n in without) for row in rows)
    yield f"no column {name}", text(tuple(header[n] for n in without), cut), True
    yield f"column {name} under another name", text(_with(header, place, f"{name}?"), rows), True
    # What is a number in a valid submission has to be one; any text may be an answer that is wrong.
    number = numbers(table.column(place)) is not None
    for value in ("", "NaN", "inf", WORD):
        changed = (_with(rows[0], place, value), *rows[1:])
        yield f"{value or 'blank'} in column {name}", text(header, changed), number


def _with(row: Row, place: int, value: str) -> Row:
    return (*row[:place], value, *row[place + 1 :])


def _writer(path: str, content: str | bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        write(folder / path, content)

    return make


def _remover(path: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        remove(folder / path)

    return make


def remove(path: Path) -> None:
    """Remove a file, link or folder, if it is there."""
    # rmtree refuses a link to a folder; the link alone goes.
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
