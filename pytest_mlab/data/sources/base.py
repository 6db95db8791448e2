"""What all kinds of sources share: the options of a fetch, consent, announcements, putting files in place."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_mlab.core.task import Source, Task
from pytest_mlab.errors import DataUnavailable, SuiteError

FULL_EXTRA = 'pip install "pytest-mlab[full]"'

_log = logging.getLogger("pytest_mlab.data")


@dataclass(frozen=True)
class Options:
    """How to fetch: ``consent`` names the rules that the user has accepted, ``downloads`` is where whole and partial
    downloads are kept, ``progress`` writes to stderr what goes on, ``variant`` is what the files are for."""

    downloads: Path
    variant: str
    consent: Collection[str] = ()
    progress: bool = False


class Fetch(Protocol):
    """Puts the raw files of ``source`` into ``into``. Raises DataUnavailable, or SuiteError where the task is wrong."""

    def __call__(self, source: Source, task: Task, into: Path, options: Options) -> None: ...


def prepare_command(task: Task, options: Options, *, accept: str = "") -> str:
    """The command that prepares the data."""
    return f"mlab prepare {task.name} --data {options.variant}" + (f" --accept-rules {accept}" if accept else "")


def require_consent(source: Source, slug: str, task: Task, options: Options) -> None:
    """Raise DataUnavailable when the source has rules and the user did not say that they were accepted."""
    if source.consent and slug not in options.consent:
        raise DataUnavailable(
            f"the data of {task.name} ({source.ref}, {size_text(source)}) come under rules that you must accept: "
            f"read them at {source.consent}, then say so",
            mend=prepare_command(task, options, accept=slug),
        )


def size_text(source: Source) -> str:
    """``170 MB, licence: …``"""
    return f"{source.size_mb:g} MB, licence: {source.licence}"


def announce(text: str, options: Options) -> None:
    """Say what is going to happen: to the log, and to stderr when progress is asked for."""
    _log.info(text)
    if options.progress:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def place_file(file: Path, target: Path) -> None:
    """Make ``file`` appear at ``target`` without copying where the file system allows it.

    Raises SuiteError when another source has brought a file of this name.
    """
    refuse_second(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)


def refuse_second(target: Path) -> None:
    """Raise SuiteError when ``target`` is there already."""
    if target.exists() or target.is_symlink():
        raise SuiteError(f"two sources of the task bring the same path {target.name!r}; give each another name")
