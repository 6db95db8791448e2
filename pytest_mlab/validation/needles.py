"""Runs of answers as bytes that can be searched for: as text, as packed numbers, as a pickle writes
them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence

from pytest_mlab.validation.dependence import bits

PLACES = 3
"""How many runs of a column are tried."""

PIECES = 16
"""Pieces of a file without columns."""

PIECE = 64
LONGEST_PIECE = 4096
SEPARATORS = ("\n", "\r\n", ",", ", ", " ", "\t", '", "', "', '")
_PACKED = ("<b", "<B", "<h", "<i", "<q", "<f", "<d")


def column_needles(values: Sequence[str], least: float) -> Iterator[bytes]:
    """Encodings of some runs of ``values``, each with at least ``least`` bits of information."""
    for run in runs(values, least):
        words = [value.strip() for value in run]
        for separator in SEPARATORS:
            yield separator.join(words).encode()
        numbers = _numbers(words)
        if numbers is None:  # words as numbers: their places in the alphabet
            order = {
                word: place
                for place, word in enumerate(sorted({value.strip() for value in values}))
            }
            numbers = [float(order[word]) for word in words] if len(order) <= 256 else None
        if numbers is not None:
            yield from _encoded(numbers)


def runs(values: Sequence[str], least: float) -> list[Sequence[str]]:
    """The shortest informative runs from a few places on."""
    found = []
    for place in range(PLACES):
        rest = values[place * len(values) // PLACES :]
        length = 4
        while length < len(rest):
            length = min(2 * length, len(rest))
            if bits(rest[:length]) >= least:
                found.append(rest[:length])
                break
    return found


def pieces(content: bytes, least: float) -> list[bytes]:
    """Pieces of an opaque file, spread over it, each with enough information; long ones where
    little varies."""
    found = []
    for place in range(PIECES):
        start = place * len(content) // PIECES
        length = PIECE
        while start + length <= len(content) and length <= LONGEST_PIECE:
            piece = content[start : start + length]
            if bits(piece) >= least:
                found.append(piece)
                break
            length *= 2
    # A file that repeats itself gives equal pieces, which would count several times as hits.
    return list(dict.fromkeys(found))


def _numbers(words: Sequence[str]) -> list[float] | None:
    try:
        found = [float(word) for word in words]
    except ValueError:
        return None
    return found if all(map(math.isfinite, found)) else None


def _encoded(numbers: Sequence[float]) -> Iterator[bytes]:
    whole = all(number.is_integer() for number in numbers)
    for kind in _PACKED:
        if kind[1] in "fd" or whole:
            packed = _pack(
                kind, numbers if kind[1] in "fd" else [int(number) for number in numbers]
            )
            if packed:
                yield packed
    if whole and all(0 <= number < 256 for number in numbers):
        yield b"".join(
            b"K" + bytes([int(number)]) for number in numbers
        )  # a list of small ints in a pickle
    yield b"".join(
        b"G" + struct.pack(">d", number) for number in numbers
    )  # a list of floats in a pickle


def _pack(kind: str, numbers: Sequence[float]) -> bytes:
    convert: Callable[..., bytes] = struct.Struct(f"<{len(numbers)}{kind[1]}").pack
    try:
        return convert(*numbers)
    except (struct.error, OverflowError):
        return b""
