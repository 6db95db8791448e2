"""Unpacking archives that come from elsewhere: regular files and folders only, nothing outside the
target."""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import IO

from pytest_mlab.data.sources.base import refuse_second

SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip")


class UnsafeArchive(ValueError):
    """An archive holds something that must not be unpacked, or is damaged."""


def is_archive(name: str) -> bool:
    """True for names of archives that :func:`unpack` understands."""
    return name.lower().endswith(SUFFIXES)


def unpack(archive: Path, into: Path) -> None:
    """Unpack ``archive`` below ``into``. Raises UnsafeArchive that names archive and member.

    Links, devices, absolute paths and paths with '..' are refused before anything is written.
    """
    try:
        if archive.name.lower().endswith(".zip"):
            with zipfile.ZipFile(archive) as file:
                _unpack_zip(file, into)
        else:
            with tarfile.open(archive) as file:
                _unpack_tar(file, into)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise UnsafeArchive(f"{archive.name} is damaged: {error}") from None
    except UnsafeArchive as error:
        raise UnsafeArchive(f"{archive.name}: {error}") from None


def _unpack_tar(file: tarfile.TarFile, into: Path) -> None:
    members = file.getmembers()
    # All names are checked before the first write: a bad archive leaves nothing behind.
    # extractall() with a filter is no substitute: it stops at the bad member, after the others.
    targets = [_target(member.name, into) for member in members]
    for member in members:
        if not (member.isfile() or member.isdir()):
            raise UnsafeArchive(f"member {member.name!r} is a link or a device")
    for member, target in zip(members, targets, strict=True):
        stream = file.extractfile(member) if member.isfile() else None
        if stream is None:
            target.mkdir(parents=True, exist_ok=True)
            continue
        with stream:
            _write(stream, target)


def _unpack_zip(file: zipfile.ZipFile, into: Path) -> None:
    members = file.infolist()
    targets = [_target(member.filename, into) for member in members]
    for member in members:
        # The upper half holds Unix's st_mode. It is 0 in an archive from a system without one.
        mode = member.external_attr >> 16
        if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_IFMT(mode) == 0):
            raise UnsafeArchive(f"member {member.filename!r} is a link or a device")
    for member, target in zip(members, targets, strict=True):
        if member.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        with file.open(member) as stream:
            _write(stream, target)


def _target(name: str, into: Path) -> Path:
    path = PurePosixPath(name)
    # The archive is untrusted: its member names decide where files would be written.
    if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
        raise UnsafeArchive(f"member {name!r} would be written outside the target folder")
    return into.joinpath(*path.parts)


def _write(stream: IO[bytes], target: Path) -> None:
    # A member of the same name as another, or as a file of another source, would replace it.
    refuse_second(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as out:
        shutil.copyfileobj(stream, out, 1 << 20)
