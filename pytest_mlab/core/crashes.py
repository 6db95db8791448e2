"""What broke in a script, in one line: from the output of a Python program that failed."""

from __future__ import annotations

import re
from posixpath import basename
from textwrap import shorten

LONGEST = 300

_FRAME = re.compile(r'\s*File "([^"]+)", line (\d+)')
_LIBRARY = re.compile(r"^<|/(site|dist)-packages/|/lib(64)?/python3")


def crash_line(output: str) -> str:
    """``train.py:122: ValueError: …``: the last line of the program's own code that the exception
    came through, and the exception; '' when ``output`` does not end in a traceback. ``output`` is
    anybody's text: the line is bounded."""
    lines = output.strip().splitlines()
    frames = [
        match for line in lines if (match := _FRAME.match(line)) and not _LIBRARY.search(match[1])
    ]
    if not frames:
        return ""
    return shorten(f"{basename(frames[-1][1])}:{frames[-1][2]}: {lines[-1]}", LONGEST)
