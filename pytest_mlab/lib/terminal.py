"""Output as a terminal shows it: progress bars overwrite themselves, colours are gone.

Not a whole emulator such as pyte: lines are as long as they are and nothing scrolls away, because
the result is read as text. What it costs is linear in the output."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

HEIGHT = 100
"""Rows that the cursor can go back to. What is above them is final."""

WIDTH = 200
"""Columns that a move of the cursor can reach beyond a row's end."""

LONGEST = 4096
"""Characters of a row that can still change; a longer one goes on as if it were another row."""

_STRING = r"[\]PX^_][^\x00-\x1f]*"  # such as a title; it ends in a bell or in ESC \
# It begins with a class, so that the search for it is fast.
_TOKEN = re.compile(
    r"([\x00-\x08\x0d-\x1f\x7f](?:(?<=\r)\r*|(?<=\x08)\x08*|(?<=\x1b)(?:"
    rf"\[[0-?]*[ -/]*[@-~]|{_STRING}(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])"
    r"|(?<![\r\x08\x1b])[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]*))"
)
_ORDINARY = bytes({*range(256)} - {*range(9), *range(0x0D, 0x20), 0x7F})
_BEGUN = re.compile(rf"\x1b(?:\[[0-?]*[ -/]*|{_STRING}\x1b?|[ -/]*)\Z")
_HELD = 4096
_CSI = re.compile(r"\x1b\[([\d;]*)(.)")

_Row = str | list[str]
"""Text that was only added to, or the characters of a row in which something was overwritten."""


class Screen:
    """A terminal of any width: gets bytes in pieces of any size, and hands ``take`` the text, each
    part once it is final."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._rows: list[_Row] = [""]
        self._row = self._column = 0
        self._saved = (0, 0)
        self.changed = False
        """Whether the text is another than the bytes': there were control characters."""

    def feed(self, data: bytes, *, final: bool = False) -> None:
        """Show some output."""
        text = self._held + self._decoder.decode(data, final)
        if not self._held and not data.translate(None, _ORDINARY):
            self._print(text)
            return
        self._held = ""
        # A sequence of control characters may be cut between two pieces of output.
        if not final and (begun := _BEGUN.search(text, max(0, len(text) - _HELD))):
            self._held, text = begun[0], text[: begun.start()]
        parts = _TOKEN.split(text)
        self._print(parts[0])
        for at in range(1, len(parts), 2):
            if parts[at][-1] != "m":  # a colour
                self._obey(parts[at])
            self._print(parts[at + 1])
        self.changed = True

    def end(self) -> None:
        """Hand over the rest."""
        self._held = ""  # the output ends inside a sequence: nothing of it is text
        self.feed(b"", final=True)
        while self._row < len(self._rows) - 1 and not _text(self._rows[-1]):
            del self._rows[-1]
        self._take("\n".join(map(_text, self._rows)))
        self._rows = [""]
        self._row = self._column = 0

    # --- text ---

    def _print(self, text: str) -> None:
        """Print text in which the line break is the only control character."""
        if not text:
            return
        if "\x1b" in text:  # of a sequence that no terminal knows
            text = text.replace("\x1b", "")
        first, line_break, rest = text.partition("\n")
        if first:
            self._write(first)
        if not line_break:
            return
        if self._row < len(self._rows) - 1:
            for line in rest.split("\n"):
                self._down(1)
                self._column = 0
                self._write(line)
            return
        # The ordinary output: only its last lines can still change.
        final, *lines = rest.rsplit("\n", HEIGHT)
        if len(lines) == HEIGHT:
            self._hand_over(len(self._rows))
            self._take(f"{final}\n")
        else:
            lines.insert(0, final)
        self._rows += lines
        self._bottom()

    def _write(self, text: str) -> None:
        row = self._rows[self._row]
        if isinstance(row, str) and self._column == len(row):
            row = self._rows[self._row] = row + text
        else:
            row = self._characters()
            row.extend(" " * (self._column - len(row)))
            row[self._column : self._column + len(text)] = text
        self._column += len(text)
        if len(row) > LONGEST:
            self._cut()

    def _characters(self) -> list[str]:
        row = self._rows[self._row]
        if isinstance(row, str):
            row = self._rows[self._row] = list(row)
        return row

    def _cut(self) -> None:
        """End what can change of a row that is too long."""
        if self._row == len(self._rows) - 1:
            self._hand_over(self._row)
            self._take(_text(self._rows[0]))
            self._rows = []
        self._rows.append("")
        self._bottom()

    def _bottom(self) -> None:
        self._row = len(self._rows) - 1
        self._column = len(self._rows[-1])
        self._trim()

    def _trim(self) -> None:
        # Not at every line, so that the cost of a line does not grow with the height.
        if len(self._rows) > 2 * HEIGHT:
            self._hand_over(len(self._rows) - HEIGHT)

    def _hand_over(self, count: int) -> None:
        """The first rows are final."""
        self._take("".join(f"{_text(row)}\n" for row in self._rows[:count]))
        del self._rows[:count]
        self._row = max(0, self._row - count)
        self._saved = (max(0, self._saved[0] - count), self._saved[1])

    # --- control characters ---

    def _obey(self, token: str) -> None:
        if token[0] == "\r":
            self._column = 0
        elif token[0] == "\b":
            self._column = max(0, self._column - len(token))
        elif token in ("\x1b7", "\x1b8"):
            self._sequence("s" if token == "\x1b7" else "u", 1, 1)
        elif found := _CSI.fullmatch(token):
            numbers = [int(part[:6] or 0) for part in found[1].split(";")]
            if found[2] in "JK":
                # What erases up to the cursor (1) is left out: no program was seen that uses it.
                if numbers[0] != 1:
                    self._erase(found[2], numbers[0])
            else:
                self._sequence(found[2], *(max(1, n) for n in [*numbers, 1][:2]))

    def _sequence(self, name: str, n: int, m: int) -> None:
        """A move of the cursor; other sequences show nothing."""
        if name in "AF":
            self._row = max(0, self._row - n)
        elif name in "BEe":
            self._down(n)
        elif name in "Ca":
            self._go_to(self._column + n)
        elif name == "D":
            self._column = max(0, self._column - n)
        elif name in "G`":
            self._go_to(n - 1)
        elif name in "Hfd":
            self._row = max(0, len(self._rows) - HEIGHT)
            self._down(n - 1)
            self._go_to(self._column if name == "d" else m - 1)
        elif name == "X":
            column = self._column
            self._write(" " * min(n, WIDTH))
            self._column = column
        elif name == "s":
            self._saved = (self._row, self._column)
        elif name == "u":
            self._row = min(self._saved[0], len(self._rows) - 1)
            self._column = self._saved[1]
        if name in "EF":
            self._column = 0

    def _down(self, count: int) -> None:
        self._row += min(count, HEIGHT)
        while self._row >= len(self._rows):
            self._rows.append("")
        self._trim()

    def _go_to(self, column: int) -> None:
        self._column = min(column, max(WIDTH, len(self._rows[self._row])))

    def _erase(self, name: str, how: int) -> None:
        """Erase a part of the row (K) or of the screen (J): from the cursor on (0), or all (2)."""
        row = self._characters()
        del row[self._column if how == 0 else 0 :]
        if name == "J":
            del self._rows[self._row + 1 :]
            if how != 0:
                for at in range(max(0, len(self._rows) - HEIGHT), self._row):
                    self._rows[at] = ""


def shown(data: bytes) -> str:
    """All of ``data`` as a terminal shows it."""
    parts: list[str] = []
    screen = Screen(parts.append)
    screen.feed(data)
    screen.end()
    return "".join(parts)


def _text(row: _Row) -> str:
    # A bar that has been wiped out is made of blanks.
    return row if isinstance(row, str) else "".join(row).rstrip(" ")
