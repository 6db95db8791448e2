"""sha256 of files, of folders, and of what a task's data are made of."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_mlab.core.task import Task

_BLOCK = 1 << 20


def sha256_of(file: Path) -> str:
    """sha256 of a file's content."""
    return hash_of(file, "sha256")


def hash_of(file: Path, algorithm: str) -> str:
    """The hexadecimal digest of a file's content, by the name that hashlib has for the
    ``algorithm``."""
    total = hashlib.new(algorithm)
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            total.update(block)
    return total.hexdigest()


def walk(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """(relative path with '/', entry) of everything below ``folder`` but folders; links are not
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


def data_key(task: Task, variant: str) -> str:
    """The digest of all that decides what the data of a variant are: data.py, sources, embedded
    files, task version.

    The rest of the task's folder does not enter, so that editing a description prepares nothing
    again."""
    parts = {
        "task": task.name,
        "variant": variant,
        "version": task.version,
        "code": sha256_of(task.folder / "data.py"),
    }
    for number, source in enumerate(task.variants[variant].sources):
        parts[f"source {number}"] = f"{source.kind} {source.ref} {source.sha256}"
        if source.kind == "embedded":
            place = task.folder / source.ref
            parts[f"content {number}"] = (
                sha256_of(place) if place.is_file() else folder_digest(place)
            )
    return digest_of(parts)


def folder_digest(folder: Path) -> str:
    """One sha256 over the paths and contents of a folder's files."""
    return digest_of({name: sha256_of(Path(entry.path)) for name, entry in walk(folder)})
