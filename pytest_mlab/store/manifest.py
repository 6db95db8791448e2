"""What a workspace held: a text of one line a path, whose digest is the snapshot's id.

A line is a JSON list of the path and one of these entries:

    <sha256>           a file; its content is in the run's store
    exec:<sha256>      the same, executable by its owner
    large:<sha256>     a file past the size limit, or past the run's disk budget:
                       stored with the final snapshot only
    public:<sha256>    a file of the task's public data: never stored,
                       found in the prepared data by its digest
    mounted:<sha256>   the same, shown by the sandbox over a placeholder, which is not read
    link:<target>      a symbolic link, never followed
    dir:               an empty folder
    unreadable:        a file that could not be opened

Paths are relative, with ``/``. Mounted files come first: their lines never change in a trial, so
their hash is computed once. Other lines are sorted by path. A name that is not UTF-8 is written as
``%b:`` and its percent-encoded bytes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pytest_mlab.errors import StoreError
from pytest_mlab.store.content import ContentStore, copy_content, open_regular

HEADER = b"mlab-manifest 1\n"
_BYTES = "%b:"


class Public(NamedTuple):
    """A task's prepared public data: the folder, and the sha256 of its files by relative path."""

    folder: Path
    files: Mapping[str, str]


def encode(path: str) -> str:
    """A path or link target of the file system as text that every reader understands."""
    if not path.startswith(_BYTES):
        if path.isascii():
            return path
        with contextlib.suppress(UnicodeEncodeError):
            path.encode()
            return path
    return _BYTES + quote_from_bytes(os.fsencode(path))


def decode(text: str) -> str:
    """The path or link target that :func:`encode` wrote."""
    if not text.startswith(_BYTES):
        return text
    return os.fsdecode(unquote_to_bytes(text[len(_BYTES) :]))


def line(path: str, entry: str) -> bytes:
    """The manifest's line of an encoded path."""
    return json.dumps([path, entry]).encode() + b"\n"


def text(lines: Iterable[bytes]) -> bytes:
    """The manifest of the given lines, in their order."""
    return HEADER + b"".join(lines)


def of(tree: Mapping[str, str]) -> bytes:
    """The manifest of a tree (encoded path → entry)."""
    order = sorted(tree, key=lambda path: (not tree[path].startswith("mounted:"), path))
    return text(line(path, tree[path]) for path in order)


def parse(data: bytes, source: str) -> dict[str, str]:
    """The tree (encoded path → entry) of a manifest; ``source`` names it in errors. Raises
    StoreError."""
    if not data.startswith(HEADER):
        raise StoreError(
            f"{source} is not a manifest of this version (it begins with {data[:20]!r}); start a"
            " new run"
        )
    try:
        return dict(json.loads(row) for row in data[len(HEADER) :].splitlines())
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"{source} is damaged ({error}); restore the run directory from a copy"
        ) from None


def digest_of(entry: str) -> str:
    """The sha256 of an entry's content, '' for entries without one."""
    kind, colon, rest = entry.partition(":")
    if not colon:
        return entry
    return rest if kind in ("exec", "large", "public", "mounted") else ""


def load(store: ContentStore, snapshot: str) -> dict[str, str]:
    """The tree of a snapshot whose manifest is in the store. Raises StoreError."""
    return parse(store.read_bytes(snapshot), f"snapshot {snapshot}")


def snapshot_id(tree: Mapping[str, str]) -> str:
    """The snapshot id of a tree."""
    return hashlib.sha256(of(tree)).hexdigest()


def restore(
    store: ContentStore, tree: Mapping[str, str], target: Path, public: Public | None = None
) -> tuple[str, ...]:
    """Write the files of ``tree`` into the folder ``target`` (made when absent, otherwise empty).

    ``public`` gives the task's public data; None leaves those files out. Returns the paths whose
    content was never stored (large files of a step, unreadable ones). Raises StoreError on damage,
    OSError."""
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise StoreError(f"{target} is not empty; restore a snapshot into a new folder")
    by_digest = (
        {}
        if public is None
        else {digest: public.folder / path for path, digest in public.files.items()}
    )
    links: dict[Path, str] = {}
    missing: list[str] = []
    for path, entry in tree.items():
        place = _place(target, path)
        kind, colon, rest = entry.partition(":")
        if kind == "link":
            links[place] = decode(rest)
        elif kind == "dir":
            place.mkdir(parents=True, exist_ok=True)
        elif kind in ("public", "mounted"):
            if rest in by_digest:
                _copy(by_digest[rest], place)
            elif public is not None:
                missing.append(decode(path))
        elif kind == "unreadable" or (kind == "large" and not store.has(rest)):
            missing.append(decode(path))
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            store.copy_to(rest if colon else kind, place)
            if kind == "exec":
                place.chmod(0o755)
    # Links last, so that no file above is ever written through one.
    for place, points_at in links.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(points_at)
    return tuple(missing)


def _place(target: Path, path: str) -> Path:
    parts = decode(path).split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise StoreError(
            f"a snapshot holds the path {path!r}, which leads out of it; the run directory was"
            " edited"
        )
    return target.joinpath(*parts)


def _copy(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    fd = open_regular(source)
    try:
        with open(place, "xb") as file:
            copy_content(fd, file.fileno())
    finally:
        os.close(fd)
