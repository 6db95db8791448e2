"""A text file's bytes as the actions that show and edit lines see them: its lines, its encoding,
its line endings. What an edit does not replace stays as it is, byte for byte."""

from __future__ import annotations

import codecs
import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import takewhile

from pytest_mlab.errors import MlabError

UTF8 = "utf-8"
_BOM = codecs.BOM_UTF8
# PEP 263. The second line counts when the first is a comment or empty.
_CODING = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_COMMENT = re.compile(rb"[ \t\f]*(?:#.*)?\r?\n")


class NotText(MlabError):
    """Lines cannot be read or written as text; the message is for the agent."""


@dataclass(frozen=True)
class FileText:
    """The text file ``name`` with the bytes ``data``.

    Its lines end in ``\\n``, as Python, editors and compilers count them, and not at form feeds or
    Unicode's separators. A file that has only ``\\r`` has its lines there."""

    name: str
    data: bytes

    @cached_property
    def lines(self) -> tuple[bytes, ...]:
        """The lines with their endings, without a byte order mark; the last may have no ending."""
        end = b"\r" if self.newline == b"\r" else b"\n"
        parts = self.data.removeprefix(_BOM).split(end)
        return (*(part + end for part in parts[:-1]), *filter(None, parts[-1:]))

    @cached_property
    def newline(self) -> bytes:
        """The ending that most lines have; ``\\n`` when there is none."""
        every, both = self.data.count(b"\n"), self.data.count(b"\r\n")
        if every == 0 and b"\r" in self.data:
            return b"\r"
        return b"\r\n" if 2 * both > every else b"\n"

    @cached_property
    def encoding(self) -> str:
        """What the file's first lines say (``# -*- coding: latin-1 -*-``), else UTF-8."""
        return said_encoding(self.data) or UTF8

    def contents(self) -> list[str]:
        """The lines without their endings, for showing: what cannot be decoded is replaced."""
        return [_content(line).decode(self.encoding, "replace") for line in self.lines]

    def text(self, first: int = 1, last: int | None = None) -> str:
        """The lines from ``first`` to ``last`` (1 is the first), each ended by ``\\n``. Raises
        NotText, with the line that cannot be decoded."""
        wanted = enumerate(self.lines[first - 1 : last], first)
        return "".join(self._decoded(number, line) + "\n" for number, line in wanted)

    def _decoded(self, number: int, line: bytes) -> str:
        try:
            return _content(line).decode(self.encoding)
        except UnicodeDecodeError as error:
            raise NotText(
                f"line {number} of {self.name} is not {self.encoding.upper()} (its byte"
                f" {error.start + 1} is 0x{line[error.start]:02x}), so an AI cannot edit it; edit"
                " lines without it, or change the file by Python code"
            ) from None

    def replaced(self, first: int, last: int, text: str) -> bytes:
        """The file with ``text`` in the place of the lines from ``first`` to ``last``. Raises
        NotText for what the file's encoding cannot hold."""
        old, rest = self.lines[first - 1 : last], self.lines[last:]
        new = self._joined(old, text, self.encoding, closed=bool(rest))
        mark = _BOM if self.data.startswith(_BOM) else b""
        return b"".join([mark, *self.lines[: first - 1], *new, *rest])

    def rewritten(self, text: str) -> bytes:
        """The file with ``text`` as its whole content; lines that stay keep their bytes. The
        encoding is the one that ``text`` says. Raises NotText."""
        mark = _BOM if self.data.startswith(_BOM) else b""
        encoding = said_encoding(mark + text.encode(UTF8, "replace")) or UTF8
        return b"".join([mark, *self._joined(self.lines, text, encoding, closed=False)])

    def _joined(
        self, old: Sequence[bytes], text: str, encoding: str, *, closed: bool
    ) -> list[bytes]:
        """The lines of ``text``; those that are in ``old`` as they are there. ``closed``: the last
        one is followed by another and so needs an ending."""
        text = text.replace("\r\n", "\n")
        if not (old and old[0].startswith(_BOM)):
            text = text.removeprefix("\ufeff")
        if self.newline == b"\r":
            text = text.replace("\r", "\n")
        new = text.removesuffix("\n").split("\n")
        kept = self._kept(old, new) if encoding == self.encoding else {}
        joined = [
            kept[at] if at in kept else self._encoded(line, at + 1, encoding) + self.newline
            for at, line in enumerate(new)
        ]
        # Whether a file ends in a line break is no part of what an edit asks for.
        end = self.newline[-1:]
        open_end = bool(old) and not closed and not old[-1].endswith(end)
        for at, line in enumerate(joined):
            if at == len(joined) - 1 and open_end:
                joined[at] = _content(line) if line.endswith(end) else line
            elif not line.endswith(end):
                joined[at] = line + self.newline
        return joined

    def _kept(self, old: Sequence[bytes], new: Sequence[str]) -> dict[int, bytes]:
        """The lines of ``old`` that ``new`` has too, by their place in ``new``."""
        # A model may leave out a carriage return before the end, or add one.
        before = [_content(line).decode(self.encoding, "replace").rstrip("\r") for line in old]
        after = [line.rstrip("\r") for line in new]
        head = _same(before, after)
        tail = _same(before[head:][::-1], after[head:][::-1])
        middle = SequenceMatcher(
            None, before[head : len(before) - tail], after[head : len(after) - tail]
        )
        kept = {at: old[at] for at in range(head)}
        for block in middle.get_matching_blocks():
            for k in range(block.size):
                kept[head + block.b + k] = old[head + block.a + k]
        return kept | {len(new) - k: old[len(old) - k] for k in range(1, tail + 1)}

    def _encoded(self, line: str, number: int, encoding: str) -> bytes:
        # One file has one encoding: where bytes of an unknown one stand, only ASCII is safe.
        try:
            self.data.decode(self.encoding)
        except UnicodeDecodeError:
            encoding = "ascii"
        try:
            return line.rstrip("\r").encode(encoding)
        except UnicodeEncodeError as error:
            raise NotText(
                f"line {number} of the new text has {line[error.start]!r}, which {self.name}"
                f" cannot hold (its encoding: {'unknown' if encoding == 'ascii' else encoding}), so"
                " nothing was changed; ask for ASCII only"
            ) from None


def decoded(data: bytes) -> str:
    """A file's text for showing: what cannot be decoded is replaced."""
    return data.decode(said_encoding(data) or UTF8, "replace")


def said_encoding(data: bytes) -> str:
    """The encoding that one of the first two lines says, '' for none or one that does not hold
    ASCII as it is."""
    if data.startswith(_BOM):
        return UTF8
    line, _, rest = data[:4096].partition(b"\n")
    found = _CODING.match(line)
    if found is None and _COMMENT.fullmatch(line + b"\n"):
        found = _CODING.match(rest.partition(b"\n")[0])
    if found is None:
        return ""
    try:
        name = codecs.lookup(found[1].decode("ascii")).name
        return name if string.printable.encode(name) == string.printable.encode("ascii") else ""
    except (LookupError, UnicodeError):
        return ""


def _content(line: bytes) -> bytes:
    """A line without its ending."""
    if line.endswith(b"\n"):
        return line[:-1].removesuffix(b"\r")
    return line.removesuffix(b"\r")


def _same(one: Iterable[str], other: Iterable[str]) -> int:
    """How many elements the two begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
