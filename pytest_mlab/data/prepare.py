"""Prepare a variant of a task's data: once for all processes of a machine, whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_mlab.core.task import Task
from pytest_mlab.core.task_commands import command
from pytest_mlab.data import prepared as manifest
from pytest_mlab.data.cache import Slot, data_key
from pytest_mlab.data.prepared import Manifest
from pytest_mlab.data.run_data_py import run_data_py
from pytest_mlab.data.sources import kind_of
from pytest_mlab.data.sources.base import Options, announce, size_text
from pytest_mlab.errors import ConfigError, DataUnavailable, SuiteError
from pytest_mlab.lib.suggest import nearest_first


@dataclass(frozen=True)
class Prepared:
    """Data that are ready: ``public`` is what the agent sees, ``answers`` what only the evaluator
    gets.

    ``digest`` is one sha256 over all of both; ``files`` maps the public files' relative paths to
    their sha256."""

    public: Path
    answers: Path
    digest: str
    files: Mapping[str, str]
    variant: str


def is_prepared(task: Task, variant: str, cache: Path, *, verify: bool = False) -> Prepared | None:
    """The prepared data, or None. Compares sizes and times of files; ``verify`` compares their
    contents too.

    Raises ConfigError when the task has no such variant.
    """
    slot = _slot(task, variant, cache)
    facts = manifest.read(slot.manifest)
    if facts is None or not manifest.holds(facts, slot.folder, content=verify):
        return None
    return _prepared(slot, facts)


def refused_rules(
    task: Task, variant: str, cache: Path, consent: Collection[str]
) -> DataUnavailable | None:
    """What :func:`prepare` would raise for rules that the user has not accepted; None when all are
    accepted or the data are ready.

    Raises ConfigError when the task has no such variant.
    """
    if is_prepared(task, variant, cache):
        return None
    options = Options(cache, variant, consent)
    try:
        for source in task.variants[variant].sources:
            kind_of(source.kind).require_consent(source, task, options)
    except DataUnavailable as refusal:
        return refusal
    return None


def downloads(task: Task, variant: str, cache: Path) -> tuple[str, ...]:
    """What :func:`prepare` would fetch from elsewhere, as far as no cache has it, each with size
    and licence; nothing when the data are ready. Raises ConfigError when the task has no such
    variant."""
    if is_prepared(task, variant, cache):
        return ()
    return tuple(
        f"{source.ref} ({size_text(source)})"
        for source in task.variants[variant].sources
        if kind_of(source.kind).downloads
    )


def prepare(
    task: Task,
    variant: str,
    cache: Path,
    *,
    consent: Collection[str] = (),
    progress: bool = False,
    force: bool = False,
) -> Prepared:
    """Fetch, check and convert the data unless they are ready; one process does it, others wait.

    ``consent`` names the rules that the user has accepted; ``progress`` reports to stderr;
    ``force`` prepares again. A process that is killed on the way leaves no data and does not block
    the next one. Raises DataUnavailable when something cannot be fetched, SuiteError when the task
    is wrong, ConfigError when it has no such variant."""
    if not force and (ready := is_prepared(task, variant, cache)):
        return ready
    slot = _slot(task, variant, cache)
    options = Options(cache, variant, consent, progress)

    from filelock import FileLock

    try:
        slot.home.mkdir(parents=True, exist_ok=True)
        # The kernel releases the lock of a process that dies, so a kill blocks no other process.
        with FileLock(slot.lock):
            if not force and (ready := is_prepared(task, variant, cache)):
                return ready
            # Under the lock no other process can be at work, so every scratch folder here is a
            # leftover.
            _sweep(slot)
            return _prepare(task, slot, options)
    except OSError as error:
        raise DataUnavailable(
            f"the data of {task.name} ({variant}) cannot be prepared: {error}",
            # In another folder, which the run has to be told as well.
            fix=(
                f"{command('prepare', task, '--cache-dir', 'DIR', variant=variant)}, then pytest"
                " --mlab-cache-dir=DIR, where DIR is a folder that can be written to"
            ),
        ) from None


def _prepare(task: Task, slot: Slot, options: Options) -> Prepared:
    # In the folder of the result, so that the rename at the end stays within one file system.
    scratch = Path(tempfile.mkdtemp(prefix=slot.scratch_prefix, dir=slot.home))
    try:
        made = scratch / "made"
        for folder in (scratch / "raw", made / "public", made / "answers"):
            folder.mkdir(parents=True)
        for source in task.variants[slot.variant].sources:
            kind_of(source.kind).fetch(source, task, scratch / "raw", options)
        announce(f"preparing {task.name} ({slot.variant})", options)
        run_data_py(task, slot.variant, scratch)
        facts = manifest.take(made)
        _refuse_faults(task, slot.variant, facts)
        manifest.write(facts, made / "manifest.json")
        # A folder that is not empty cannot be renamed over. A kill between the two renames leaves
        # no data, which the next call prepares again, never a mixture of old and new files.
        if slot.folder.exists():
            slot.folder.replace(scratch / "old")
        made.replace(slot.folder)
        return _prepared(slot, facts)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _refuse_faults(task: Task, variant: str, facts: Manifest) -> None:
    """Raise SuiteError for data that give answers away or stand in the place of starter files."""
    where = f"{task.folder / 'data.py'} ({variant})"
    # Empty files are all the same file, and give nothing away.
    hidden = {fact.sha256: name for name, fact in facts.answers.items() if fact.size}
    for name, fact in sorted(facts.public.items()):
        if fact.sha256 in hidden and not any(
            fnmatchcase(hidden[fact.sha256], pattern) for pattern in task.shared
        ):
            raise SuiteError(
                f"{where} gives answers away: public/{name} is the same file as"
                f" answers/{hidden[fact.sha256]}"
            )
        if (task.folder / "env" / name).exists():
            raise SuiteError(
                f"{where} wrote public/{name}, but env/{name} exists too; only one can be in the"
                " workspace"
            )


def _sweep(slot: Slot) -> None:
    """Remove what killed processes left. The lock is held, so that no other process works here."""
    for left in slot.home.glob(f"{slot.scratch_prefix}*"):
        shutil.rmtree(left, ignore_errors=True)


def _slot(task: Task, variant: str, cache: Path) -> Slot:
    if variant not in task.variants:
        have = ", ".join(nearest_first(variant, task.variants))
        raise ConfigError(f"task {task.name} has no data variant {variant!r}; it has: {have}")
    return Slot(cache, task.name, variant, data_key(task, variant))


def _prepared(slot: Slot, facts: Manifest) -> Prepared:
    files = {name: fact.sha256 for name, fact in facts.public.items()}
    return Prepared(
        slot.folder / "public", slot.folder / "answers", facts.digest, files, slot.variant
    )
