"""Read a submission's csv file by id, or say in one sentence what is wrong with it.

Rows are counted from 1 without the header. A message lists at most three examples and how many
there are in all."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_mlab.evaluation.refusals import InvalidSubmission, NoSubmission

EXAMPLES = 3
_WHOLE_NUMBER = re.compile(r"([+-]?)0*(\d+)(?:\.0*)?")

Row = dict[str, Any]
Converter = Callable[[str], Any]


# --- kinds of values ---


def number(value: str) -> float:
    """A finite number. Raises ValueError."""
    found = float(value) if "_" not in value else math.nan
    if not math.isfinite(found):
        raise ValueError(value)
    return found


@dataclass(frozen=True)
class number_within:
    """A finite number from ``low`` to ``high``. Raises ValueError."""

    low: float
    high: float

    def __call__(self, value: str) -> float:
        found = number(value)
        if not self.low <= found <= self.high:
            raise ValueError(value)
        return found

    @property
    def expected(self) -> str:
        """For a message."""
        return f"a finite number from {self.low:g} to {self.high:g}"


def boolean(value: str) -> bool:
    """True for ``true`` and ``1``, False for ``false`` and ``0``, in any case, also as ``1.0``.
    Raises ValueError."""
    word = value.strip().lower()
    if word in ("true", "1", "1.0"):
        return True
    if word in ("false", "0", "0.0"):
        return False
    raise ValueError(value)


def text(value: str) -> str:
    """Any text that is not blank. Raises ValueError."""
    if not value.strip():
        raise ValueError(value)
    return value


_EXPECTED: dict[Converter, str] = {
    number: "a finite number",
    boolean: "True or False",
    text: "some text",
}


# --- reading ---


def read_submission(
    path: Path,
    *,
    key: str,
    columns: Mapping[str, Converter],
    ids: Iterable[str],
    max_mb: float = 100,
) -> dict[str, Row]:
    """The rows of the csv file ``path`` by id, in the order of ``ids``, their values converted by
    ``columns``.

    ``key`` is the name of the id column ('' for an index written without a name); the file has this
    column and ``columns``, in any order, and no other; its ids are exactly ``ids``, in any order.
    Ids are compared as :func:`normal_id` writes them. Raises NoSubmission when there is no file,
    InvalidSubmission with a reason otherwise."""
    name = path.name
    header, records = _parse(name, read_file(path, max_mb=max_mb))
    places = _check_header(name, header, [key, *columns])
    _check_lengths(name, header, records)
    found = [normal_id(record[places[key]]) for record in records]
    _check_ids(name, _label(key), found, wanted := {normal_id(i): i for i in ids})
    rows = _convert(name, records, places, columns, found, key)
    return {original: rows[normal] for normal, original in wanted.items()}


def read_answers(
    path: Path, *, key: str, columns: Mapping[str, Converter], max_mb: float = 1000
) -> dict[str, Row]:
    """The rows of a task's own answer file by id. Raises ValueError: a broken answer file is the
    task's fault."""
    try:
        header, records = _parse(path.name, read_file(path, max_mb=max_mb))
        places = _check_header(path.name, header, [key, *columns])
        _check_lengths(path.name, header, records)
        found = [record[places[key]].strip() for record in records]
        _check_ids(path.name, _label(key), found, {i: i for i in found})
        return _convert(path.name, records, places, columns, found, key)
    except (InvalidSubmission, NoSubmission) as error:
        raise ValueError(f"answers: {error}") from error


def normal_id(value: str) -> str:
    """``value`` without surrounding blanks; a whole number without sign ``+``, leading zeros and
    ``.0``, so that an id column that went through floating point still joins. ``0013_01`` stays as
    it is."""
    value = value.strip()
    whole = _WHOLE_NUMBER.fullmatch(value)
    if not whole:
        return value
    return ("-" if whole[1] == "-" and whole[2] != "0" else "") + whole[2]


def read_file(path: Path, *, max_mb: float) -> bytes:
    """The content of a regular file of at most ``max_mb`` (1e6 bytes): no link is followed, nothing
    that blocks opened.

    Raises NoSubmission when there is none, InvalidSubmission when it is something else, too large,
    or blank."""
    name = path.name
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise NoSubmission(f"{name} is missing: write it into the workspace") from None
    if not stat.S_ISREG(mode):
        raise InvalidSubmission(f"{name} is {_file_kind(mode)}; expected a regular file")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InvalidSubmission(f"{name} cannot be read: {error.strerror}") from None
    with open(handle, "rb") as file:
        size = os.fstat(handle).st_size
        if size > max_mb * 1e6:
            raise InvalidSubmission(
                f"{name} has {size / 1e6:.1f} MB; expected at most {max_mb:g} MB"
            )
        content = file.read(size)
    if not content.strip():
        raise InvalidSubmission(f"{name} is empty")
    return content


def _file_kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    return "a pipe, socket or device"


def _parse(name: str, content: bytes) -> tuple[list[str], list[list[str]]]:
    """Header and records of csv text."""
    try:
        decoded = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidSubmission(
            f"{name} is not UTF-8 text: byte 0x{content[error.start]:02x} in line {line}; expected"
            " a csv file"
        ) from None
    if "\0" in decoded:
        line = decoded.count("\n", 0, decoded.index("\0")) + 1
        raise InvalidSubmission(f"{name} is binary: a NUL byte in line {line}; expected a csv file")
    reader = csv.reader(io.StringIO(decoded, newline=""), strict=True)
    try:
        lines = [line for line in reader if line]
    except csv.Error as error:
        raise InvalidSubmission(
            f"{name} is not a csv file: line {reader.line_num}: {error}"
        ) from None
    if len(lines) < 2:
        raise InvalidSubmission(f"{name} has a header but no rows; expected one row for each id")
    return [column.strip() for column in lines[0]], lines[1:]


# --- checks ---


def _check_header(name: str, header: list[str], expected: list[str]) -> dict[str, int]:
    """The position of every expected column."""
    wanted = f"expected the columns {', '.join(map(_label, expected))}"
    if (
        len(header) == 1
        and len(expected) > 1
        and (separator := next((s for s in ";\t|" if s in header[0]), ""))
    ):
        raise InvalidSubmission(f"{name} is separated by {separator!r}; expected commas")
    if duplicates := [column for column, times in Counter(header).items() if times > 1]:
        raise InvalidSubmission(
            f"{name} has the column {_some(map(_label, duplicates))} more than once; {wanted}"
        )
    if missing := [column for column in expected if column not in header]:
        found = _some(map(_label, header), limit=12)
        raise InvalidSubmission(
            f"{name} has no column {_some(map(_label, missing))}: found {found}; {wanted}"
        )
    if extra := [column for column in header if column not in expected]:
        hint = " (an index? pandas writes none with index=False)" if "" in extra else ""
        raise InvalidSubmission(
            f"{name} has the unexpected column {_some(map(_label, extra))}{hint}; {wanted}"
        )
    return {column: header.index(column) for column in expected}


def _check_lengths(name: str, header: list[str], records: list[list[str]]) -> None:
    ragged = [f"row {n} has {len(r)}" for n, r in enumerate(records, 1) if len(r) != len(header)]
    if ragged:
        raise InvalidSubmission(
            f"{name} has rows of another length than its header: {_some(ragged)}; expected"
            f" {len(header)} values"
        )


def _check_ids(name: str, key: str, found: list[str], wanted: Collection[str]) -> None:
    """``found`` has every id of ``wanted`` once and no other."""
    counts = Counter(found)
    if duplicates := [f"{_show(i)} ({times} times)" for i, times in counts.items() if times > 1]:
        raise InvalidSubmission(
            f"{name} has duplicate ids in column {key}: {_some(duplicates)}; expected each once"
        )
    rows = f"{len(found)} rows found, {len(wanted)} expected"
    missing = [_show(i) for i in wanted if i not in counts]
    extra = [f"{_show(i)} in row {n}" for n, i in enumerate(found, 1) if i not in wanted]
    if missing:
        also = f"; unknown ids: {_some(extra)}" if extra else ""
        raise InvalidSubmission(
            f"{name} lacks ids in column {key}: {_some(missing)}{also} ({rows})"
        )
    if extra:
        raise InvalidSubmission(f"{name} has unknown ids in column {key}: {_some(extra)} ({rows})")


def _convert(
    name: str,
    records: list[list[str]],
    places: Mapping[str, int],
    columns: Mapping[str, Converter],
    ids: list[str],
    key: str,
) -> dict[str, Row]:
    """The rows by id with converted values."""
    rows: dict[str, Row] = {i: {} for i in ids}
    for column, converter in columns.items():
        bad = []
        for n, (i, record) in enumerate(zip(ids, records, strict=True), 1):
            value = record[places[column]]
            try:
                rows[i][column] = converter(value)
            except ValueError:
                bad.append(f"{_show(value)} in row {n} ({_label(key)} {_show(i)[1:-1]})")
        if bad:
            expected = _EXPECTED.get(converter) or getattr(
                converter, "expected", "another kind of value"
            )
            raise InvalidSubmission(
                f"{name} has bad values in column {_label(column)}: {_some(bad)}; expected"
                f" {expected}"
            )
    return rows


# --- words ---


def _label(column: str) -> str:
    """A column's name for a message, in printable ASCII."""
    return _show(column)[1:-1] or "'' (no name)"


def _show(value: str) -> str:
    """A value for a message: quoted, printable ASCII, at most about 40 characters."""
    return ascii(value if len(value) <= 40 else value[:37] + "...")


def _some(items: Iterable[str], limit: int = EXAMPLES) -> str:
    """The first ``limit`` items, and how many more there are."""
    everything = list(items)
    more = f" and {len(everything) - limit} more" if len(everything) > limit else ""
    return ", ".join(everything[:limit]) + more
