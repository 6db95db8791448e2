"""A trial's folder of files, and how the harness itself reads and writes in it.

The agent's own processes share the folder and may swap a file for a symbolic link at any moment. A
path is therefore resolved first, and then opened folder by folder without following links: what was
checked is what is opened."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_mlab.core.sandbox_api import Mount
from pytest_mlab.errors import MlabError, StoreError
from pytest_mlab.sandboxes.opening import WORKSPACE
from pytest_mlab.store.content import hash_fd, open_regular

NEW_FILE = 0o644
"""Permissions of files that the harness makes; copies of executable files are executable."""

_HASH_ALWAYS = 1 << 20
"""Bytes up to which a read-only file is read again at the end, whatever its times say."""

# Below PATH_MAX of Linux, which is 4096 bytes.
_LONGEST = 4000


class PathRefused(MlabError):
    """An action may not use this path or file; the message is for the agent."""


@dataclass(frozen=True)
class Place:
    """A resolved path: ``rel`` is relative to the workspace ('.' is itself); its bytes are in
    ``parts`` below ``base``."""

    rel: str
    base: str
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The path on this machine."""
        return Path(self.base, *self.parts)


@dataclass(frozen=True)
class _Protected:
    digest: str
    key: tuple[int, ...]
    trusted: bool


class Workspace:
    """The folder ``root`` of a trial; made by :func:`pytest_mlab.trial.provision.provision`.

    ``mounts`` are what the sandbox shows read-only in it; ``public`` the sha256 of the task's
    public files by path."""

    def __init__(
        self,
        root: Path,
        *,
        mounts: tuple[Mount, ...],
        public: Mapping[str, str],
        read_only: tuple[str, ...],
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self.mounts = mounts
        self.public = public
        self._read_only = tuple(_normal(pattern) for pattern in read_only)
        self._targets = {mount.target: os.fspath(mount.source) for mount in mounts}
        self._protected: dict[str, _Protected] = {}
        self._frozen = False
        self.inside = WORKSPACE
        """The workspace's path as code in the sandbox sees it; set once the sandbox is open."""

    @property
    def mounted(self) -> tuple[str, ...]:
        """The paths over which the sandbox shows public files."""
        return tuple(self._targets)

    @property
    def untouchable(self) -> frozenset[str]:
        """The paths that must not change: mounted ones, and the read-only files of the
        beginning."""
        return frozenset(self._targets) | frozenset(self._protected)

    def open_public(self, digest: str) -> int | None:
        """A descriptor of a public file by its sha256; None when there is none, or it is gone."""
        for path, found in self.public.items():
            if found == digest:
                with contextlib.suppress(PathRefused), self.opened(path) as fd:
                    # The block closes its own descriptor.
                    return os.dup(fd)
        return None

    # --- paths ---

    def locate(self, rel: str, *, write: bool = False) -> Path:
        """The path on this machine of a path of the workspace, mounts included.

        It may be absolute, as the sandbox or this machine names it. Raises PathRefused for paths
        that lead out of the workspace (also through links) and, with ``write``, for read-only
        ones. Nothing has to exist there."""
        return self.resolve(rel, write=write).path

    def resolve(self, rel: str, *, write: bool = False) -> Place:
        """:meth:`locate`, together with the path's resolved form."""
        if not rel or "\0" in rel:
            raise PathRefused(
                f"{rel!r} is not a path; give one relative to the workspace, such as train.py"
            )
        if len(rel) > _LONGEST:
            raise PathRefused(f"{rel[:80]}... cannot be a path: it has {len(rel)} characters")
        root = os.fspath(self.root)
        # Links are followed here and then the result is judged. A test of the text alone would let
        # a link lead anywhere.
        real = os.path.realpath(os.path.join(root, self._relative(rel)))
        # With the separator: /runs/work2 begins with /runs/work too.
        if real != root and not real.startswith(root + os.sep):
            raise PathRefused(f"{rel} leads out of the workspace; only files inside it can be used")
        inside = "." if real == root else real[len(root) + 1 :]
        if write:
            self._check_writable(rel, inside)
        parts = () if inside == "." else tuple(inside.split(os.sep))
        # On this machine a mounted path is only a placeholder: its content is at the mount's
        # source.
        for count in range(len(parts), 0, -1):
            source = self._targets.get("/".join(parts[:count]))
            if source is not None:
                return Place(
                    inside, os.path.dirname(source), (os.path.basename(source), *parts[count:])
                )
        return Place(inside, root, parts)

    def _relative(self, path: str) -> str:
        """``path`` relative to the workspace; an absolute one as tracebacks and scripts show it,
        below the workspace. Raises PathRefused for other absolute ones."""
        if not os.path.isabs(path):
            return path
        one_slash = f"/{path.lstrip('/')}"
        for base in dict.fromkeys((self.inside, WORKSPACE, os.fspath(self.root))):
            if one_slash == base or one_slash.startswith(base.rstrip("/") + "/"):
                return one_slash[len(base) :].strip("/") or "."
        raise PathRefused(
            f"{path} is absolute and not below {self.inside}; give a path relative to the"
            " workspace, such as train.py"
        )

    def is_read_only(self, inside: str) -> bool:
        """True when the (resolved, relative) path may not be written: public data and the task's
        read-only files."""
        if inside in self.public or any(
            inside == t or inside.startswith(t + "/") for t in self._targets
        ):
            return True
        return any(fnmatch.fnmatchcase(inside, pattern) for pattern in self._read_only)

    def _check_writable(self, rel: str, inside: str) -> None:
        if self._frozen:
            raise PathRefused(f"{rel} cannot be written: the trial is over")
        if inside == ".":
            raise PathRefused(f"{rel} is the workspace itself; name a file in it")
        if self.is_read_only(inside):
            raise PathRefused(f"{rel} is read-only; write to another file")

    # --- reading and writing ---

    @contextlib.contextmanager
    def opened(
        self, rel: str, *, write: bool = False, append: bool = False, mode: int = NEW_FILE
    ) -> Iterator[int]:
        """A descriptor of a regular file: to read, or with ``write`` emptied, or with ``append`` to
        add to it (made with its folders when absent). A file that is made is executable where
        ``mode`` is; one that is there keeps its permissions. Raises PathRefused for what is not
        a file."""
        place = self.resolve(rel, write=write or append)
        flags = os.O_RDONLY
        if write or append:
            flags = os.O_RDWR | os.O_CREAT | (os.O_APPEND if append else 0)
        folder = self._folder(place, rel, make=write or append)
        try:
            name = place.parts[-1] if place.parts else "."
            # O_NONBLOCK: to open a FIFO would otherwise wait for its other end, and an agent's
            # script can make one. O_TRUNC is not used: the file is emptied below, once it is known
            # to be a regular one.
            options = flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            try:
                fd = os.open(name, options, NEW_FILE | mode & 0o111, dir_fd=folder)
            except OSError as error:
                raise self._refusal(rel, error) from None
        finally:
            os.close(folder)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise PathRefused(f"{rel} is not a file; List Files shows what there is")
            if write:
                os.ftruncate(fd, 0)
            yield fd
        finally:
            os.close(fd)

    def read(self, rel: str, limit: int) -> bytes:
        """A file's content, at most ``limit`` bytes from its beginning. Raises PathRefused."""
        with self.opened(rel) as fd:
            return _read(fd, limit)

    def write(self, rel: str, data: bytes, *, append: bool = False, mode: int = NEW_FILE) -> None:
        """Replace a file's content, or add to it; ``mode`` as in :meth:`opened`. Raises
        PathRefused, OSError."""
        with self.opened(rel, write=not append, append=append, mode=mode) as fd:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]

    def exists(self, rel: str) -> bool:
        """True when there is a file or folder. Raises PathRefused for a path that leads out."""
        return os.path.lexists(self.resolve(rel).path)

    def is_folder(self, rel: str) -> bool:
        """True when there is a folder. Raises PathRefused for a path that leads out."""
        return self.resolve(rel).path.is_dir()

    def remove(self, rel: str) -> None:
        """Remove a file. Raises PathRefused, OSError."""
        place = self.resolve(rel, write=True)
        folder = self._folder(place, rel, make=False)
        try:
            os.unlink(place.parts[-1], dir_fd=folder)
        finally:
            os.close(folder)

    def listdir(self, rel: str) -> list[str]:
        """Sorted names in a folder: folders end in ``/``, links in ``@``. Raises PathRefused."""
        place = self.resolve(rel)
        # _folder() opens all parts but the last, so an empty one is added.
        folder = self._folder(Place(place.rel, place.base, (*place.parts, "")), rel, make=False)
        try:
            with os.scandir(folder) as entries:
                return sorted(entry.name + _mark(entry) for entry in entries)
        finally:
            os.close(folder)

    def _folder(self, place: Place, rel: str, *, make: bool) -> int:
        """A descriptor of the folder that holds ``place``, reached without following any link."""
        fd = os.open(place.base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in place.parts[:-1]:
            try:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=fd)
                inner = os.open(
                    part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd
                )
            except OSError as error:
                os.close(fd)
                raise self._refusal(rel, error) from None
            os.close(fd)
            fd = inner
        return fd

    def _refusal(self, rel: str, error: OSError) -> PathRefused:
        if isinstance(error, FileNotFoundError):
            return PathRefused(f"{rel} does not exist; List Files shows what there is")
        if isinstance(error, IsADirectoryError):
            return PathRefused(f"{rel} is a folder; name a file")
        if isinstance(error, NotADirectoryError):
            return PathRefused(
                f"{rel} leads through a file as if it were a folder; List Files shows what there is"
            )
        return PathRefused(f"{rel} cannot be opened ({error.strerror})")

    # --- the end ---

    def tampered(self) -> list[str]:
        """Read-only files of the beginning whose content is no longer the original's, or that are
        gone."""
        return [
            path for path, was in sorted(self._protected.items()) if not self._intact(path, was)
        ]

    def _intact(self, path: str, was: _Protected) -> bool:
        place = self.root / path
        try:
            info = os.lstat(place)
            # A script cannot set the change time (ctime) of a file: where it is the old one, the
            # content is. So large data are not read again.
            if was.trusted and _key(info) == was.key:
                return True
            # A link in the place of a folder above would lead to another file.
            if os.path.realpath(place) != os.path.join(os.fspath(self.root), path):
                return False
            fd = open_regular(place)
        except (OSError, StoreError):
            return False
        try:
            return hash_fd(fd) == was.digest
        finally:
            os.close(fd)

    def protect(self) -> None:
        """Remember the read-only files as they are now; called once, before anything else can
        write."""
        for folder, names, files in os.walk(self.root):
            # Changed in place, so that os.walk() does not enter the placeholders of mounts.
            names[:] = [
                n
                for n in names
                if os.path.relpath(os.path.join(folder, n), self.root) not in self._targets
            ]
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), self.root)
                if path in self._targets or not self.is_read_only(path):
                    continue
                info = os.lstat(os.path.join(folder, name))
                digest = self.public.get(path) or _digest(os.path.join(folder, name))
                trusted = path in self.public and info.st_size > _HASH_ALWAYS
                self._protected[path] = _Protected(digest, _key(info), trusted)

    def freeze(self) -> None:
        """Refuse all further writes by actions; to be called once the sandbox is closed."""
        self._frozen = True


def _mark(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "@"
    return "/" if entry.is_dir(follow_symlinks=False) else ""


def _read(fd: int, limit: int) -> bytes:
    chunks, left = [], limit
    while left > 0 and (chunk := os.read(fd, min(left, 1 << 20))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def _digest(path: str) -> str:
    if os.path.islink(path):
        return ""
    fd = open_regular(path)
    try:
        return hash_fd(fd)
    finally:
        os.close(fd)


def _key(info: os.stat_result) -> tuple[int, ...]:
    return (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, info.st_mode)


def _normal(pattern: str) -> str:
    return pattern.removeprefix("./")
