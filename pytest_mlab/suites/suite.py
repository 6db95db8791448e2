"""A suite: the folders of its tasks, found in one scan, and the tasks read from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_mlab.core.task import Task
from pytest_mlab.errors import ConfigError, SuiteError
from pytest_mlab.lib.suggest import unknown
from pytest_mlab.suites.foreign.reader import (
    is_foreign,
    lacks,
    load_for_plan,
    load_task_of,
    name_of,
)
from pytest_mlab.suites.loader import TASK_FILE


@dataclass(frozen=True)
class Suite:
    """``folders`` are those of the tasks by the tasks' names, sorted, broken tasks included;
    ``left_out`` says why folders that look like a task are not one, by the folder's name. Tasks in
    MLAgentBench's format are kept below ``cache`` (None: the default one) in our layout."""

    name: str
    folders: Mapping[str, Path]
    left_out: Mapping[str, str]
    cache: Path | None

    @classmethod
    def scan(cls, folder: Path, name: str = "", cache: Path | None = None) -> Suite:
        """The suite in ``folder``: its folders with a task.toml or in MLAgentBench's format. Of two
        with one name the one with task.toml counts, else the first."""
        places = _places(folder)
        found: dict[str, Path] = {}
        for place in places:
            # A folder with both is a task in our format: its task.toml says more.
            if (place / TASK_FILE).is_file():
                found[place.name] = place
            elif is_foreign(place):
                found.setdefault(name_of(place), place)
        left_out = {place.name: why for place in places if (why := _why_left_out(place, found))}
        return cls(name or folder.name, dict(sorted(found.items())), left_out, cache)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tasks, sorted."""
        return tuple(self.folders)

    def tasks(self, names: Collection[str] | None = None) -> tuple[Task, ...]:
        """All tasks, or those of ``names``, sorted by name. A folder in MLAgentBench's format that
        cannot be read becomes a task with a ``fault``. Raises SuiteError that lists every broken
        task.toml."""
        loaded: list[Task] = []
        broken: list[str] = []
        for name, folder in self.folders.items():
            if names is not None and name not in names:
                continue
            try:
                loaded.append(load_for_plan(folder, self.name, self.cache))
            except SuiteError as error:
                # One error lists all broken tasks: otherwise each fault would cost a run to see.
                broken.append(str(error))
        if broken:
            raise SuiteError("\n".join(broken))
        return tuple(loaded)

    def task(self, name: str) -> Task:
        """One task. Raises ConfigError for an unknown name, SuiteError when the task is broken."""
        if name not in self.folders:
            raise ConfigError(f"{unknown('task', name, self.folders)} (suite {self.name})")
        return load_task_of(self.folders[name], self.name, self.cache)


def lacking(folder: Path) -> str:
    """What ``folder`` lacks to be a task; '' for a task, and for a folder with neither an env/ nor
    a scripts/, which does not look like one."""
    parts = ("env", "scripts")
    if (folder / TASK_FILE).is_file() or not any((folder / part).is_dir() for part in parts):
        return ""
    missing = lacks(folder) if (folder / "scripts").is_dir() else (TASK_FILE,)
    return f"no {' and no '.join(missing)}" if missing else ""


def _places(suite: Path) -> list[Path]:
    if suite.name.startswith((".", "_")) or not suite.is_dir():
        return []
    return [
        folder
        for folder in sorted(suite.iterdir())
        if folder.is_dir() and not folder.name.startswith((".", "_"))
    ]


def _why_left_out(place: Path, tasks: Mapping[str, Path]) -> str:
    why = lacking(place)
    if why or place in tasks.values() or not is_foreign(place):
        return why
    name = name_of(place)
    return f"{tasks[name].name} has the same name, {name}"
