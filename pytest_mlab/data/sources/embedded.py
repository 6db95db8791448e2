"""Files that lie in the task's folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.sources.base import Options, refuse_second
from pytest_mlab.errors import SuiteError
from pytest_mlab.lib.digests import sha256_of


def fetch(source: Source, task: Task, into: Path, options: Options) -> None:
    """Copy the file or folder ``source.ref``; the copy may be changed. Raises SuiteError when it is
    not what it was."""
    place = task.folder / source.ref
    target = into / place.name
    refuse_second(target)
    if place.is_dir():
        shutil.copytree(place, target)
        return
    shutil.copyfile(place, target)
    if source.sha256 and (found := sha256_of(target)) != source.sha256:
        raise SuiteError(
            f"{place}: sha256 is {found}, {task.folder / 'task.toml'} says {source.sha256}; "
            "restore the file or, when the change is meant, write the new sha256"
        )
