"""The failure of a Python script in one line, read from its output."""

from __future__ import annotations

import re
from posixpath import basename
from textwrap import shorten

LONGEST = 300

_FRAME = re.compile(r'\s*File "([^"]+)", line (\d+)')
_LIBRARY = re.compile(r"^<|/(site|dist)-packages/|/lib(64)?/python3")


def crash_line(output: str) -> str:
    """Such as ``train.py:122: ValueError: …``: the last line of the program's own code in the
    traceback, and the exception; '' when ``output`` has no traceback. ``output`` is untrusted: the
    result is at most :data:`LONGEST` characters."""
    lines = output.strip().splitlines()
    frames = [
        match for line in lines if (match := _FRAME.match(line)) and not _LIBRARY.search(match[1])
    ]
    if not frames:
        return ""
    # Of exceptions with a cause, Python prints the one that ended the program last.
    return shorten(f"{basename(frames[-1][1])}:{frames[-1][2]}: {lines[-1]}", LONGEST)
