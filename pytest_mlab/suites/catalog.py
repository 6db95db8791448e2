"""Which suites and tasks there are, from where an invocation stands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_mlab import locate
from pytest_mlab.core.names import unknown
from pytest_mlab.core.task import Task
from pytest_mlab.errors import ConfigError, SuiteError
from pytest_mlab.suites.loader import TASK_FILE, load_task


class Catalog:
    """Suites by name: of ``rootdir``'s own ``task_suites/`` first, then the built-in ones, then those of installed
    packages. A suite is taken whole from the first place that has its name."""

    def __init__(self, rootdir: Path) -> None:
        self._rootdir = rootdir
        self._folders: dict[str, Path] | None = None

    def suites(self) -> tuple[str, ...]:
        """Names of all suites, sorted."""
        return tuple(sorted(self._known()))

    def folder(self, suite: str) -> Path:
        """Where a suite lives. Raises ConfigError for an unknown one."""
        known = self._known()
        if suite not in known:
            places = ", ".join(str(place) for place in locate.search_path(self._rootdir, "task_suites"))
            raise ConfigError(f"{unknown('suite', suite, known)} (looked in {places})")
        return known[suite]

    def task_names(self, suite: str) -> tuple[str, ...]:
        """Names of a suite's tasks, sorted; broken tasks included. Raises ConfigError for an unknown suite."""
        return _task_names(self.folder(suite))

    def tasks(self, suite: str) -> tuple[Task, ...]:
        """All tasks of a suite, sorted by name. Raises SuiteError that says what is wrong with every broken one."""
        folder = self.folder(suite)
        loaded = [_load(folder / name, suite) for name in _task_names(folder)]
        if broken := [str(task) for task in loaded if isinstance(task, SuiteError)]:
            raise SuiteError("\n".join(broken))
        return tuple(task for task in loaded if isinstance(task, Task))

    def task(self, name: str, suite: str) -> Task:
        """One task. Raises ConfigError for an unknown name, SuiteError when the task is broken."""
        names = self.task_names(suite)
        if name not in names:
            raise ConfigError(f"{unknown('task', name, names)} (suite {suite})")
        return load_task(self.folder(suite) / name, suite)

    def _known(self) -> Mapping[str, Path]:
        if self._folders is None:
            found: dict[str, Path] = {}
            for place in locate.search_path(self._rootdir, "task_suites"):
                for folder in sorted(place.iterdir()):
                    if _task_names(folder):
                        found.setdefault(folder.name, folder)
            for name, folder in locate.entry_point_suites().items():
                found.setdefault(name, folder)
            self._folders = found
        return self._folders


def _load(folder: Path, suite: str) -> Task | SuiteError:
    try:
        return load_task(folder, suite)
    except SuiteError as error:
        return error


def _task_names(folder: Path) -> tuple[str, ...]:
    """Subfolders of ``folder`` that hold a task.toml."""
    if folder.name.startswith((".", "_")) or not folder.is_dir():
        return ()
    names = (child.parent.name for child in folder.glob(f"*/{TASK_FILE}"))
    return tuple(sorted(name for name in names if not name.startswith((".", "_"))))
