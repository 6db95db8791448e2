"""Files that lie in the task's folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.sources.base import Options, SourceKind, refuse_second
from pytest_mlab.errors import SuiteError
from pytest_mlab.lib.digests import folder_digest, sha256_of


class Embedded(SourceKind):
    """``ref``: the path of a file or folder, relative to the task's folder."""

    name = "embedded"
    downloads = False

    def problems(self, source: Source, folder: Path) -> Iterator[tuple[str, str]]:
        yield from super().problems(source, folder)
        # Resolved, since a symbolic link may lead out of the task's folder.
        place = (folder / source.ref).resolve()
        if not source.ref or not place.exists():
            yield (
                "ref",
                f'"{source.ref}" found, but there is no such file or folder in the task folder',
            )
        elif not place.is_relative_to(folder.resolve()) or place == folder.resolve():
            yield "ref", f'"{source.ref}" found, must lie inside the task folder'
        elif source.sha256 and not place.is_file():
            yield "sha256", "a folder has no sha256; name a file or leave it empty"

    def content_digest(self, source: Source, folder: Path) -> str:
        place = folder / source.ref
        return sha256_of(place) if place.is_file() else folder_digest(place)

    def fetch(self, source: Source, task: Task, into: Path, options: Options) -> None:
        """Copy the file or folder; data.py may change the copy. Raises SuiteError when its sha256
        is not the one in task.toml."""
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
