"""File contents by digest: each content is stored once a run, whichever trial and step it came
from.

A content with the sha256 ``abcdef…`` is the file ``ab/cdef…``. Files get there by a rename of a
finished temporary file, so that any number of processes may store at the same time and no reader
ever sees a part. ``used`` counts the bytes that all of them have stored."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pytest_mlab.errors import StoreError

BLOCK = 1 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Stored(NamedTuple):
    """A content in the store: its sha256, its size, and whether this call added it."""

    digest: str
    size: int
    new: bool


class ContentStore:
    """Contents below ``root`` (created on first use)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._root = os.fspath(root)
        self._ready = False

    # --- look up ---

    def path(self, digest: str) -> Path:
        """Where the content is, or would be. Raises StoreError unless ``digest`` is a sha256 in
        hex."""
        return Path(self._path(digest))

    def has(self, digest: str) -> bool:
        """True when the content is stored."""
        return os.path.exists(self._path(digest))

    def open(self, digest: str) -> BinaryIO:
        """The content, to read. Raises StoreError when it is not there."""
        try:
            return open(self._path(digest), "rb")
        except FileNotFoundError:
            raise self._missing(digest) from None

    def read_bytes(self, digest: str) -> bytes:
        """The whole content, verified. Raises StoreError when it is missing or damaged."""
        with self.open(digest) as file:
            data = file.read()
        if hashlib.sha256(data).hexdigest() != digest:
            raise self._damaged(digest)
        return data

    def copy_to(self, digest: str, target: Path) -> None:
        """Write the content to the new file ``target``, verified. Raises StoreError;
        FileExistsError."""
        with open(target, "x+b") as file:
            self.copy_fd(digest, file.fileno())

    def copy_fd(self, digest: str, target: int) -> None:
        """:meth:`copy_to` the empty open file ``target``."""
        with self.open(digest) as source:
            copy_content(source.fileno(), target)
        if hash_fd(target) != digest:
            raise self._damaged(digest)

    def used(self) -> int:
        """Bytes that have been stored, by all processes."""
        try:
            with open(os.path.join(self._root, ".used"), "rb") as file:
                return int.from_bytes(file.read(8), "little")
        except FileNotFoundError:
            return 0

    # --- add ---

    def put_bytes(self, data: bytes, *, unless: Collection[str] = ()) -> Stored:
        """Store ``data``, but not when its digest is among ``unless``."""
        digest = hashlib.sha256(data).hexdigest()
        target = self._path(digest)
        if digest in unless or os.path.exists(target):
            return Stored(digest, len(data), False)
        fd, name = self._temporary()
        with self._cleaned(fd, name):
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            self._publish(fd, name, target)
        self._count(len(data))
        return Stored(digest, len(data), True)

    def put_file(self, path: str | os.PathLike[str]) -> Stored:
        """Store the content of a regular file, without following a symbolic link.

        The content is what the store's own copy holds, also when the file changes meanwhile. Raises
        OSError when the file cannot be read, StoreError when it is not a regular file."""
        source = open_regular(path)
        try:
            return self.put_fd(source)
        finally:
            os.close(source)

    def put_fd(self, source: int, *, unless: Collection[str] = ()) -> Stored:
        """:meth:`put_file` of an open file, from its beginning; not when its digest is among
        ``unless``."""
        # A small file, which most are, is read once. A large one is hashed, and when it is new
        # copied by the kernel and hashed again in the store, since a program may be writing to it.
        if os.fstat(source).st_size <= BLOCK:
            data = read_whole(source)
            if len(data) <= BLOCK:
                return self.put_bytes(data, unless=unless)
        digest = hash_fd(source)
        if digest in unless or os.path.exists(self._path(digest)):
            return Stored(digest, os.fstat(source).st_size, False)
        fd, name = self._temporary()
        with self._cleaned(fd, name):
            copy_content(source, fd)
            digest, size = hash_fd(fd), os.fstat(fd).st_size
            self._publish(fd, name, self._path(digest))
        self._count(size)
        return Stored(digest, size, True)

    # --- inside ---

    def _path(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise StoreError(f"{digest!r:.80} is not a content digest (64 hexadecimal digits)")
        return f"{self._root}/{digest[:2]}/{digest[2:]}"

    def _temporary(self) -> tuple[int, str]:
        if not self._ready:
            os.makedirs(self._root, exist_ok=True)
            self._ready = True
        # Inside the store: a rename is atomic only within one file system.
        return tempfile.mkstemp(prefix=".part-", dir=self._root)

    @contextlib.contextmanager
    def _cleaned(self, fd: int, name: str) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
        finally:
            os.close(fd)

    def _publish(self, fd: int, name: str, target: str) -> None:
        os.fchmod(fd, 0o444)  # trials share it: nothing may edit it in place
        try:
            os.replace(name, target)
        # Only the first content of each of the 256 folders comes this way.
        except FileNotFoundError:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(name, target)

    def _count(self, size: int) -> None:
        # A number under a lock: to add up the store's files would walk over all of them each time.
        fd = os.open(
            os.path.join(self._root, ".used"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            total = int.from_bytes(os.pread(fd, 8, 0), "little") + size
            os.pwrite(fd, total.to_bytes(8, "little"), 0)
        finally:
            os.close(fd)

    def _missing(self, digest: str) -> StoreError:
        return StoreError(
            f"content {digest} is not in {self.root}: it was never stored (a file past the"
            " snapshot's size limit), or the run directory is incomplete; copy it whole from where"
            " it ran"
        )

    def _damaged(self, digest: str) -> StoreError:
        return StoreError(
            f"content {digest} in {self.root} is damaged: its bytes have another digest; "
            "restore the run directory from a copy or run the trial again"
        )


def open_regular(path: str | os.PathLike[str]) -> int:
    """A descriptor of a regular file, never of what a symbolic link points at, and never waiting on
    a fifo.

    Raises OSError; StoreError when it is not a regular file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StoreError(f"{os.fspath(path)} is not a regular file")
    return fd


def read_whole(fd: int) -> bytes:
    """The content of a small file, from its beginning to where it ends now (at most one block past
    one block)."""
    data = os.pread(fd, BLOCK + 1, 0)
    if len(data) > BLOCK:
        return data
    while more := os.pread(fd, BLOCK + 1 - len(data), len(data)):
        data += more
    return data


def hash_fd(fd: int) -> str:
    """sha256 of an open file's whole content, read by position in blocks."""
    digest, at = hashlib.sha256(), 0
    while block := os.pread(fd, BLOCK, at):
        digest.update(block)
        at += len(block)
    return digest.hexdigest()


def copy_content(source: int, target: int) -> None:
    """Copy an open file's whole content to an empty open file: shared blocks where the file system
    can, else by the kernel, else through memory in blocks. Holes stay holes: a file of 1 GB that
    needs no disk needs none here."""
    try:
        fcntl.ioctl(target, 0x40049409, source)  # FICLONE
        return
    except OSError:
        pass
    size = os.fstat(source).st_size
    parts = list(_data(source, size))
    try:
        for start, end in parts:
            _copy_by_kernel(source, target, start, end)
    except OSError:
        # From the first part again: what the kernel has copied is written once more.
        for start, end in parts:
            _copy_by_memory(source, target, start, end)
    os.ftruncate(target, size)


def _data(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of an open file that are not holes; the whole file where the file system does not
    report holes."""
    at = 0
    while at < size:
        try:
            start = os.lseek(fd, at, os.SEEK_DATA)
            at = os.lseek(fd, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:  # which means: nothing but a hole from there on
                yield at, size
            return
        yield start, at


def _copy_by_kernel(source: int, target: int, start: int, end: int) -> None:
    # 0 is the end of the source: a program made it shorter meanwhile.
    while start < end and (
        done := os.copy_file_range(source, target, min(end - start, 1 << 30), start, start)
    ):
        start += done


def _copy_by_memory(source: int, target: int, start: int, end: int) -> None:
    while start < end and (block := os.pread(source, min(BLOCK, end - start), start)):
        view = memoryview(block)
        while view:
            written = os.pwrite(target, view, start)
            view, start = view[written:], start + written
