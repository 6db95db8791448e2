"""Data that data.py makes by itself, or by the generator of a package that must be installed:
nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.sources.base import Options, SourceKind, prepare_command, size_text
from pytest_mlab.errors import DataUnavailable

_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!]*")


class Generator(SourceKind):
    """``ref``: empty, or ``<package>==<version>`` of the package that data.py calls."""

    name = "generator"
    downloads = False

    def problems(self, source: Source, folder: Path) -> Iterator[tuple[str, str]]:
        # What data.py makes by itself has no other owner, so it needs no licence.
        if source.ref:
            yield from super().problems(source, folder)
        if source.ref and not _REF.fullmatch(source.ref):
            yield (
                "ref",
                f'"{source.ref}" found, must be empty (data.py is the generator) or'
                ' "<package>==<version>"',
            )

    def fetch(self, source: Source, task: Task, into: Path, options: Options) -> None:
        """Leave ``into`` as it is. Raises DataUnavailable when the package is not installed in
        this version: another version may make other data."""
        if not source.ref:
            return
        self.require_consent(source, task, options)
        name, _, version = source.ref.partition("==")
        try:
            # The metadata tell the version without an import of the package, which data.py alone
            # needs.
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = ""
        if found != version:
            have = f"version {found} is installed" if found else "it is not installed"
            raise DataUnavailable(
                f"the data of {task.name} are made by the package {source.ref}"
                f" ({size_text(source)}),"
                f" and {have}",
                fix=f"pip install {source.ref} && {prepare_command(task, options)}",
            )
