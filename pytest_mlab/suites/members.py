"""The folders of a suite: which of them are tasks, and what the others lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_mlab.suites.foreign.reader import is_foreign, lacks, name_of
from pytest_mlab.suites.loader import TASK_FILE


def members(suite: Path) -> Mapping[str, Path]:
    """The folders of tasks in ``suite`` by the tasks' names, sorted: with a task.toml, or in
    MLAgentBench's format."""
    found: dict[str, Path] = {}
    for folder in _folders(suite):
        if (folder / TASK_FILE).is_file():
            found[folder.name] = folder
        elif is_foreign(folder):
            found.setdefault(name_of(folder), folder)
    return dict(sorted(found.items()))


def left_out(suite: Path) -> Mapping[str, str]:
    """What folders with an env/ or a scripts/ lack to be tasks of ``suite``, by their names."""
    taken = members(suite)
    found = {}
    for folder in _folders(suite):
        why = lacking(folder)
        if (
            not why
            and is_foreign(folder)
            and folder not in taken.values()
            and not (folder / TASK_FILE).is_file()
        ):
            why = f"{taken[name_of(folder)].name} has the same name, {name_of(folder)}"
        if why:
            found[folder.name] = why
    return found


def lacking(folder: Path) -> str:
    """What ``folder`` lacks to be a task; '' for a task, and for a folder with neither an env/ nor
    a scripts/."""
    if (folder / TASK_FILE).is_file() or not any(
        (folder / part).is_dir() for part in ("env", "scripts")
    ):
        return ""
    missing = lacks(folder) if (folder / "scripts").is_dir() else (TASK_FILE,)
    return f"no {' and no '.join(missing)}" if missing else ""


def _folders(suite: Path) -> Iterator[Path]:
    if suite.name.startswith((".", "_")) or not suite.is_dir():
        return
    for folder in sorted(suite.iterdir()):
        if folder.is_dir() and not folder.name.startswith((".", "_")):
            yield folder
