"""A task's folder as a set of files: which files count, and a cheap signature of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

# The inode shows a file that was replaced by one of the same size and time.
Signature = tuple[tuple[str, int, int, int], ...]

# What editors, tools and Python leave behind; none of it is part of a task.
_JUNK = (".*", "*~", "#*#", "*.pyc", "*.pyo", "*.swp", "*.orig", "*.rej", "__pycache__")


def is_junk(name: str) -> bool:
    """True for names of files and folders that do not count as part of a task."""
    return any(fnmatchcase(name, pattern) for pattern in _JUNK)


def files_of(folder: Path) -> list[str]:
    """Relative paths ('/') of all files of ``folder`` that count, sorted."""
    return [name for name, _, _, _ in signature(folder)]


def signature(folder: Path) -> Signature:
    """(relative path, size, modification time in ns, inode) of every file that counts, sorted by
    path."""
    return tuple(sorted(_scan(str(folder), "")))


def _scan(folder: str, prefix: str) -> Iterator[tuple[str, int, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_junk(entry.name):
                continue
            # Links to folders are not entered: one that points upwards would never end.
            # A link to a file counts with the size and time of the file that it points to.
            if entry.is_dir(follow_symlinks=False):
                yield from _scan(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file():
                stat = entry.stat()
                yield f"{prefix}{entry.name}", stat.st_size, stat.st_mtime_ns, stat.st_ino
