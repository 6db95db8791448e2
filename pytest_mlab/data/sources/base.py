"""What all kinds of data sources share: the base class, consent, announcements, placing files."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from pytest_mlab.core.task import Source, Task
from pytest_mlab.core.task_commands import command
from pytest_mlab.errors import ConfigError, DataUnavailable, SuiteError
from pytest_mlab.lib.locate import default_cache_dir

FULL_EXTRA = 'pip install "pytest-mlab[full]"'

_log = logging.getLogger("pytest_mlab.data")


@dataclass(frozen=True)
class Options:
    """How to fetch: ``consent`` names the rules that the user has accepted, ``progress`` writes to
    stderr what goes on, ``cache`` keeps whole and partial downloads, ``variant`` is what the files
    are for."""

    cache: Path
    variant: str
    consent: Collection[str] = ()
    progress: bool = False

    @property
    def downloads(self) -> Path:
        """Where downloads are kept, those of all tasks together."""
        return self.cache / "downloads"


class SourceKind(ABC):
    """A kind of ``[[data.<variant>.source]]``: subclass it in a module of its own.

    A kind is registered by an entry in ``BUILT_IN`` of :mod:`pytest_mlab.data.sources`, or by an
    entry point of the group ``pytest_mlab.data_sources`` that names the subclass."""

    name: str
    """What ``kind = "…"`` says in task.toml."""

    downloads = True
    """False for files that this machine has already; others must declare their size."""

    host = ""
    """The server that files come from; ``''`` when ``ref`` is an address that names it."""

    def problems(self, source: Source, folder: Path) -> Iterator[tuple[str, str]]:
        """(key, message) for every value that a source of this kind must not have; ``folder`` is
        the task's."""
        if not source.licence.strip():
            yield "licence", f"a source of kind {self.name} needs a licence"
        if self.downloads and source.size_mb <= 0:
            yield "size_mb", f"{source.size_mb} found: a source of kind {self.name} needs its size"

    def content_digest(self, source: Source, folder: Path) -> str:
        """sha256 of the files of the task's ``folder`` that the data are made of; '' for none."""
        return ""

    def rules_word(self, source: Source, task: Task) -> str:
        """What ``--accept-rules`` calls the source's rules."""
        return task.name

    @abstractmethod
    def fetch(self, source: Source, task: Task, into: Path, options: Options) -> None:
        """Put the raw files into the folder ``into``. Raises DataUnavailable, or SuiteError where
        the task is wrong."""

    def require_consent(self, source: Source, task: Task, options: Options) -> None:
        """Raise DataUnavailable when the source has rules that the user has not accepted."""
        word = self.rules_word(source, task)
        if source.consent and word not in options.consent:
            raise DataUnavailable(
                f"the data of {task.name} ({self.description(source)}) come under rules that you"
                f" must accept: read them at {source.consent}, then say so",
                fix=prepare_command(task, options, accept=word),
            )

    def description(self, source: Source) -> str:
        """What the user is asked to accept rules for."""
        return f"{source.ref}, {size_text(source)}"


def unavailable(message: str, task: Task, options: Options) -> DataUnavailable:
    """What to raise for data that cannot be had now: the same command may help later."""
    return DataUnavailable(f"data of {task.name}: {message}", fix=prepare_command(task, options))


def require_packages(task: Task, options: Options, *names: str) -> None:
    """Raise DataUnavailable for the first package that cannot be imported."""
    try:
        for name in names:
            # Imported, not only found: a package may lack one of its own, and error.name then says
            # which.
            import_module(name)
    except ImportError as error:
        raise DataUnavailable(
            f"fetching the data of {task.name} needs the package {error.name}",
            fix=f"{FULL_EXTRA} && {prepare_command(task, options)}",
        ) from None


def prepare_command(task: Task, options: Options, *, accept: str = "") -> str:
    """The command that prepares the data in the same cache."""
    words = []
    if options.cache != _default_cache():
        words += ["--cache-dir", str(options.cache)]
    if accept:
        words += ["--accept-rules", accept]
    return command("prepare", task, *words, variant=options.variant)


def _default_cache() -> Path | None:
    try:
        return default_cache_dir()
    except ConfigError:
        return None  # no home folder: every cache has to be named


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
    # exists() is False for a dangling link.
    if target.exists() or target.is_symlink():
        raise SuiteError(
            f"two sources of the task bring the same path {target.name!r}; give each another name"
        )
