"""What all kinds of sources share: the options of a fetch, consent, announcements, putting files in
place."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
from collections.abc import Collection
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.cache import default_cache_dir
from pytest_mlab.errors import DataUnavailable, SuiteError
from pytest_mlab.lib.locate import DEFAULT_SUITE

DOWNLOADED = ("kaggle", "http", "huggingface", "coco-images", "gcs")
"""Kinds of sources that are fetched from elsewhere."""

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


class Fetch(Protocol):
    """Puts the raw files of ``source`` into ``into``. Raises DataUnavailable, or SuiteError where
    the task is wrong."""

    def __call__(self, source: Source, task: Task, into: Path, options: Options) -> None: ...


def unavailable(message: str, task: Task, options: Options) -> DataUnavailable:
    """What to raise for data that cannot be had now: the same command may help later."""
    return DataUnavailable(f"data of {task.name}: {message}", fix=prepare_command(task, options))


def require_packages(task: Task, options: Options, *names: str) -> None:
    """Raise DataUnavailable for the first package that cannot be imported."""
    try:
        for name in names:
            import_module(name)
    except ImportError as error:
        raise DataUnavailable(
            f"fetching the data of {task.name} needs the package {error.name}",
            fix=f"{FULL_EXTRA} && {prepare_command(task, options)}",
        ) from None


def prepare_command(task: Task, options: Options, *, accept: str = "") -> str:
    """The command that prepares the data in the same cache."""
    words = ["mlab", "prepare", task.name, "--data", options.variant]
    suite = suite_of(task)
    if suite != DEFAULT_SUITE:
        words += ["--suite", suite]
    if options.cache != default_cache_dir():
        words += ["--cache-dir", str(options.cache)]
    if accept:
        words += ["--accept-rules", accept]
    return shlex.join(words)


def suite_of(task: Task) -> str:
    """What ``--suite`` has to say for a task: its suite's name, or the folder of those in
    MLAgentBench's format."""
    sources = [source for variant in task.variants.values() for source in variant.sources]
    return next((str(Path(s.ref).parent) for s in sources if s.kind == "mlagentbench"), task.suite)


def rules_of(task: Task, variant: str) -> dict[str, str]:
    """Rules that a user must have accepted for a variant's data: their addresses by the word that
    accepts them."""
    return {
        rules_word(source, task): source.consent
        for source in task.variants[variant].sources
        if source.consent
    }


def rules_word(source: Source, task: Task) -> str:
    """What ``--accept-rules`` calls a source's rules: the slug at Kaggle, elsewhere the task's
    name."""
    if source.kind != "kaggle":
        return task.name
    return source.ref.split("/versions/")[0].split("/")[-1]


def require_consent(source: Source, task: Task, options: Options) -> None:
    """Raise DataUnavailable when the source has rules and the user did not say that they were
    accepted."""
    word = rules_word(source, task)
    if source.consent and word not in options.consent:
        what = f"{source.ref}, {size_text(source)}"
        if source.kind == "mlagentbench":
            what = (
                "its prepare.py asks you before it goes on:"
                f" {Path(source.ref) / 'scripts' / 'prepare.py'}"
            )
        raise DataUnavailable(
            f"the data of {task.name} ({what}) come under rules that you must accept: "
            f"read them at {source.consent}, then say so",
            fix=prepare_command(task, options, accept=word),
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
        raise SuiteError(
            f"two sources of the task bring the same path {target.name!r}; give each another name"
        )
