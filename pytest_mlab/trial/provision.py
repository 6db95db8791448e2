"""Making a trial's fresh workspace: starter files are copied, public data copied or mounted."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from pytest_mlab.core.sandbox_api import Mount
from pytest_mlab.core.task import Task
from pytest_mlab.errors import StoreError, SuiteError
from pytest_mlab.store.content import copy_content, open_regular
from pytest_mlab.trial.workspace import Workspace

# Bytecode that a run in the suite's own folder left behind is no part of the task.
_SKIPPED = frozenset({"__pycache__"})


def provision(
    task: Task, prepared_public: Path, files: Mapping[str, str], root: Path, *, mounts: bool
) -> Workspace:
    """Make the fresh workspace ``root``: the task's ``env/`` copied, the public data copied or,
    with ``mounts``, planned as read-only mounts over empty placeholders.

    ``files`` are the public files' sha256 by relative path below ``prepared_public``. Raises
    SuiteError when a data file has the name of a starter file, StoreError when ``root`` holds
    something, OSError."""
    root.mkdir(parents=True, exist_ok=True)
    if any(root.iterdir()):
        raise StoreError(
            f"the workspace {root} is not empty; another trial may use it: remove it and try again"
        )
    starter = task.folder / "env"
    if starter.is_dir():
        _copy_tree(starter, root)
    planned: list[Mount] = []
    if mounts:
        planned = [
            Mount(prepared_public / target, target) for target in _targets(files, root, task)
        ]
        for mount in planned:
            place = root / mount.target
            place.parent.mkdir(parents=True, exist_ok=True)
            # A mount needs a place of the same kind to be put over.
            if mount.source.is_dir():
                place.mkdir()
            else:
                place.touch()
    else:
        for path in files:
            _clash(task, root, path)
            _copy_file(prepared_public / path, root / path)
    workspace = Workspace(root, mounts=tuple(planned), public=dict(files), read_only=task.read_only)
    workspace.protect()
    return workspace


def _targets(files: Mapping[str, str], root: Path, task: Task) -> list[str]:
    """The fewest paths that cover all public files and no starter file."""
    found: set[str] = set()
    for path in files:
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            target = "/".join(parts[:count])
            if target in found:
                break
            # A mount over a folder of starter files would hide them, so the paths below it are
            # mounted one by one.
            if (root / target).is_dir() and count < len(parts):
                continue
            _clash(task, root, target)
            found.add(target)
            break
    return sorted(found)


def _clash(task: Task, root: Path, path: str) -> None:
    *parents, _ = (root / path, *(root / p for p in Path(path).parents))
    if os.path.lexists(root / path) or any(p.is_symlink() or p.is_file() for p in parents[1:]):
        raise SuiteError(
            f"task {task.name}: {path} is both a starter file (env/) and a prepared data file;"
            " rename one of them"
        )


def _copy_tree(source: Path, target: Path) -> None:
    with os.scandir(source) as entries:
        for item in entries:
            if item.name in _SKIPPED:
                continue
            place = target / item.name
            if item.is_symlink():
                place.symlink_to(os.readlink(item.path))
            elif item.is_dir():
                place.mkdir()
                _copy_tree(Path(item.path), place)
            else:
                _copy_file(Path(item.path), place)


def _copy_file(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    fd = open_regular(source)
    try:
        # Not the source's own mode: an agent must be able to change starter files, whatever the
        # suite's folder allows.
        mode = 0o755 if os.fstat(fd).st_mode & stat.S_IXUSR else 0o644
        target = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            copy_content(fd, target)
        finally:
            os.close(target)
    finally:
        os.close(fd)
