"""Files of root for a container's user without rights: handed over, handed back, or copied where
they must stay."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

from pytest_mlab.core.sandbox_api import SandboxSpec
from pytest_mlab.errors import SandboxError


def readable_mounts(spec: SandboxSpec, resources: contextlib.ExitStack) -> SandboxSpec:
    """``spec`` with copies, removed with ``resources``, in place of mounts that a user without
    rights could not read: root's own files need not be readable for others. Raises SandboxError."""
    mounts = []
    for mount in spec.mounts:
        try:
            if not _readable_by_all(mount.source):
                folder = resources.enter_context(tempfile.TemporaryDirectory(prefix="mlab-mount-"))
                mount = replace(mount, source=_readable_copy(mount.source, Path(folder, "copy")))
        except OSError as error:
            raise SandboxError(f"{mount.source} cannot be mounted: {error}") from error
        mounts.append(mount)
    return replace(spec, mounts=tuple(mounts))


def _readable_by_all(source: Path) -> bool:
    if not source.is_dir():
        return _usable_by_all(source.stat().st_mode)
    for _, _, files, fd in os.fwalk(source, follow_symlinks=False):
        if os.fstat(fd).st_mode & 0o005 != 0o005:
            return False
        for name in files:
            mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode) and not _usable_by_all(mode):
                return False
    return True


def _usable_by_all(mode: int) -> bool:
    """Whether others may read a file, and execute it where its owner may."""
    return _for_all(mode) & ~mode & 0o005 == 0


def _for_all(mode: int) -> int:
    return 0o755 if mode & 0o100 else 0o644


def _readable_copy(source: Path, target: Path) -> Path:
    """A copy of files, folders and symbolic links (as links); what else may be in a folder is left
    out."""
    if not source.is_dir():
        _copy_for_all(source, target)
        return target
    shutil.copytree(
        source, target, symlinks=True, ignore=_neither_file_nor_folder, copy_function=_copy_for_all
    )
    for folder, _, _ in os.walk(target):
        os.chmod(folder, 0o755)
    return target


def _copy_for_all(source: str | Path, target: str | Path) -> None:
    shutil.copyfile(source, target)
    os.chmod(target, _for_all(os.stat(source).st_mode))


def _neither_file_nor_folder(folder: str, names: list[str]) -> list[str]:
    modes = {name: os.lstat(os.path.join(folder, name)).st_mode for name in names}
    return [
        name
        for name, mode in modes.items()
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
    ]


def hand_over(folder: Path, uid: int, gid: int) -> None:
    """Give everything in a folder to a user, as root. The folder's programs may be running: no
    symbolic link is followed, at any depth."""
    for _, folders, files, fd in os.fwalk(folder, follow_symlinks=False):
        _own(".", fd, uid, gid)
        for name in (*folders, *files):
            _own(name, fd, uid, gid)


def _own(name: str, fd: int, uid: int, gid: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        # Only where needed: chown stamps a new ctime, and the next snapshot reads such a file
        # again.
        if os.stat(name, dir_fd=fd, follow_symlinks=False).st_uid != uid:
            os.chown(name, uid, gid, dir_fd=fd, follow_symlinks=False)
