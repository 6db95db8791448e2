"""Data that data.py makes by itself, or by the generator of a package that must be installed:
nothing is fetched."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.sources.base import Options, prepare_command, require_consent, size_text
from pytest_mlab.errors import DataUnavailable


def fetch(source: Source, task: Task, into: Path, options: Options) -> None:
    """Leave ``into`` as it is. Raises DataUnavailable when the package of ``source.ref``
    (``<name>==<version>``) is not installed in this version: another one may make other data."""
    if not source.ref:
        return
    require_consent(source, task, options)
    name, _, version = source.ref.partition("==")
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        found = ""
    if found != version:
        have = f"version {found} is installed" if found else "it is not installed"
        raise DataUnavailable(
            f"the data of {task.name} are made by the package {source.ref} ({size_text(source)}),"
            f" and {have}",
            fix=f"pip install {source.ref} && {prepare_command(task, options)}",
        )
