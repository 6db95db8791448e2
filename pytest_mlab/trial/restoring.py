"""Bringing a workspace back to an earlier state, in place: the sandbox mounts this very folder, so
it cannot be replaced by a new one.

The agent's own processes may be running and may swap a folder for a symbolic link at any moment, so
every folder is opened from the one above it without following links, and nothing is done by a path.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from pytest_mlab.errors import StoreError
from pytest_mlab.store import manifest
from pytest_mlab.store.content import ContentStore, copy_content, hash_fd

OpenPublic = Callable[[str], "int | None"]
"""Opens a public file by its sha256, None when there is none."""

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def bring_back(
    root: Path,
    was: Mapping[str, str],
    now: Mapping[str, str],
    *,
    store: ContentStore,
    keep: Collection[str],
    open_public: OpenPublic,
) -> tuple[str, ...]:
    """Make the folder ``root``, which holds the tree ``now``, hold the tree ``was`` (both encoded,
    see :mod:`pytest_mlab.store.manifest`). Idempotent, because it is repeated when the process died
    in the middle.

    ``keep`` are paths that stay as they are, with everything below. Returns the paths of ``was``
    whose content was never kept; they do not exist afterwards. Raises StoreError."""
    wanted = {
        manifest.decode(path): entry
        for path, entry in was.items()
        if not entry.startswith("mounted:")
    }
    found = {manifest.decode(path): entry for path, entry in now.items()}
    stays = {path for path, entry in wanted.items() if found.get(path) == entry} | set(keep)
    try:
        _clear(root, stays, _folders(wanted))
        put = {
            path: _put(root, path, wanted[path], store, open_public)
            for path in sorted(wanted.keys() - stays)
        }
    except OSError as error:
        # For a call by descriptor, filename is its number.
        where = f" ({error.filename})" if isinstance(error.filename, str) else ""
        raise StoreError(
            f"the workspace {root} cannot be brought back: {error.strerror or error}{where}"
        ) from error
    return tuple(path for path, done in put.items() if not done)


def _folders(tree: Mapping[str, str]) -> set[str]:
    """The folders of a tree: those above its paths, and the empty ones."""
    found = {path for path, entry in tree.items() if entry == "dir:"}
    for path in tree:
        while path := path.rpartition("/")[0]:
            found.add(path)
    return found


# --- taking away ---


def _clear(root: Path, stays: Collection[str], folders: Collection[str]) -> None:
    """Remove everything but ``stays`` and ``folders``, special files too. A folder that holds
    something that stays is kept."""
    todo: list[tuple[str, ...]] = [()]
    seen: list[tuple[str, ...]] = []
    while todo:
        parts = todo.pop()
        seen.append(parts)
        with _opened(root, parts) as fd:
            todo += [(*parts, name) for name in _sweep(fd, parts, stays)]
    for parts in reversed(seen[1:]):  # inner folders before outer ones
        if "/".join(parts) not in folders:
            # Not empty: it holds something that stays, or the agent's processes have just written
            # into it.
            with _opened(root, parts[:-1]) as fd, contextlib.suppress(OSError):
                os.rmdir(parts[-1], dir_fd=fd)


def _sweep(fd: int, parts: tuple[str, ...], stays: Collection[str]) -> list[str]:
    """Remove the files of one open folder that do not stay; the names of the folders in it, which
    come next."""
    inside = []
    with os.scandir(fd) as items:
        for item in list(items):
            if "/".join((*parts, item.name)) in stays:
                continue
            if item.is_dir(follow_symlinks=False):
                inside.append(item.name)
            else:
                # The agent's processes may be removing files at the same time.
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(item.name, dir_fd=fd)
    return inside


# --- putting back ---


def _put(root: Path, path: str, entry: str, store: ContentStore, open_public: OpenPublic) -> bool:
    """Write one path of a tree; False when its content was never kept."""
    parts = tuple(path.split("/"))
    # Snapshots are files of the run directory, which may come from another machine.
    if any(part in ("", ".", "..") for part in parts):
        raise StoreError(
            f"a snapshot holds the path {path!r}, which leads out of it; the run directory was"
            " edited"
        )
    kind, colon, rest = entry.partition(":")
    if kind == "dir":
        with _opened(root, parts, make=True):
            return True
    if kind == "unreadable" or (kind == "large" and not store.has(rest)):
        return False
    with _opened(root, parts[:-1], make=True) as folder:
        if kind == "link":
            os.symlink(manifest.decode(rest), parts[-1], dir_fd=folder)
            return True
        with _created(folder, parts[-1], executable=kind == "exec") as target:
            if kind != "public":
                store.copy_fd(rest if colon else kind, target)
                return True
            if _copy_public(rest, target, open_public):
                return True
        os.unlink(parts[-1], dir_fd=folder)
        return False


def _copy_public(digest: str, target: int, open_public: OpenPublic) -> bool:
    source = open_public(digest)
    if source is None:
        return False
    try:
        copy_content(source, target)
    finally:
        os.close(source)
    # The source may be a copy in the workspace, which a script may have changed.
    return hash_fd(target) == digest


@contextlib.contextmanager
def _created(folder: int, name: str, *, executable: bool) -> Iterator[int]:
    mode = 0o755 if executable else 0o644
    # What is in the way was removed before. A file that is here now was put here by the agent's
    # processes and is not written to.
    fd = os.open(
        name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder
    )
    try:
        yield fd
    finally:
        os.close(fd)


# --- folders ---


@contextlib.contextmanager
def _opened(root: Path, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """A descriptor of a folder below ``root``, its owner allowed everything; made when absent with
    ``make``."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=fd)
            inner = _enter(fd, part)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def _enter(fd: int, name: str) -> int:
    # O_PATH needs no rights on the folder itself.
    handle = os.open(name, os.O_PATH | _FOLDER, dir_fd=fd)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        # A script may have taken our own rights away. chmod needs a path, and a descriptor's entry
        # in /proc is one that no script can replace.
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{handle}", mode | stat.S_IRWXU)
        return os.open(".", os.O_RDONLY | _FOLDER, dir_fd=handle)
    finally:
        os.close(handle)
