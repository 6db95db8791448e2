"""Digests of files and folders.

They stand in recorded runs and name prepared data: what a function returns for the same content
must never change."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_BLOCK = 1 << 20


def sha256_of(file: Path) -> str:
    """sha256 of a file's content."""
    return hash_of(file, "sha256")


def hash_of(file: Path, algorithm: str) -> str:
    """Hexadecimal digest of a file's content; ``algorithm`` is a name that hashlib knows."""
    total = hashlib.new(algorithm)
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            total.update(block)
    return total.hexdigest()


def walk(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """(relative path with '/', entry) of every file and link below ``folder``. Links are not
    followed."""
    pending = [(str(folder), "")]
    while pending:
        place, prefix = pending.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, name + "/"))
                else:
                    yield name, entry


def digest_of(parts: Mapping[str, str]) -> str:
    """One sha256 over named digests, independent of their order."""
    return hashlib.sha256(json.dumps(sorted(parts.items())).encode()).hexdigest()


def folder_digest(folder: Path) -> str:
    """One sha256 over the paths and contents of a folder's files."""
    return digest_of({name: sha256_of(Path(entry.path)) for name, entry in walk(folder)})


def digest_of_files(folder: Path, names: Iterable[str]) -> str:
    """One sha256 over the paths ``names``, relative to ``folder``, and the contents of these files.

    Each part is preceded by its length, so that no two sets of files give the same bytes."""
    total = hashlib.sha256()
    for name in sorted(names):
        for part in (name.encode(), (folder / name).read_bytes()):
            total.update(len(part).to_bytes(8, "big"))
            total.update(part)
    return total.hexdigest()
