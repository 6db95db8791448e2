"""Which suites and tasks there are, from where an invocation stands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_mlab import locate
from pytest_mlab.core.names import unknown
from pytest_mlab.core.task import Task
from pytest_mlab.errors import ConfigError, SuiteError
from pytest_mlab.suites.foreign import is_foreign, load_foreign, name_of
from pytest_mlab.suites.loader import TASK_FILE, load_task


class Catalog:
    """Suites by name: of ``rootdir``'s own ``task_suites/`` first, then the built-in ones, then those of installed
    packages. A suite is taken whole from the first place that has its name. In place of a name, a suite may be said by
    the path of its folder, relative to the working directory or to ``rootdir``. Tasks in MLAgentBench's format are read
    by way of ``cache`` (default: the user's cache)."""

    def __init__(self, rootdir: Path, cache: Path | None = None) -> None:
        self._rootdir = rootdir
        self._cache = cache
        self._folders: dict[str, Path] | None = None

    def suites(self) -> tuple[str, ...]:
        """Names of all suites, sorted."""
        return tuple(sorted(self._known()))

    def folder(self, suite: str) -> Path:
        """Where a suite lives. Raises ConfigError for an unknown one."""
        if locate.is_path(suite):
            return self._at_path(suite)
        known = self._known()
        if suite not in known:
            places = ", ".join(str(place) for place in locate.search_path(self._rootdir, "task_suites"))
            raise ConfigError(f"{unknown('suite', suite, known)} (looked in {places})")
        return known[suite]

    def task_names(self, suite: str) -> tuple[str, ...]:
        """Names of a suite's tasks, sorted; broken tasks included. Raises ConfigError for an unknown suite."""
        return tuple(_members(self.folder(suite)))

    def tasks(self, suite: str) -> tuple[Task, ...]:
        """All tasks of a suite, sorted by name. Raises SuiteError that says what is wrong with every broken one."""
        loaded: list[Task | SuiteError] = []
        for folder in _members(self.folder(suite)).values():
            try:
                loaded.append(self._load(folder, suite))
            except SuiteError as error:  # noqa: PERF203 - all that is broken is told at once
                loaded.append(error)
        if broken := [str(task) for task in loaded if isinstance(task, SuiteError)]:
            raise SuiteError("\n".join(broken))
        return tuple(task for task in loaded if isinstance(task, Task))

    def task(self, name: str, suite: str) -> Task:
        """One task. Raises ConfigError for an unknown name, SuiteError when the task is broken."""
        members = _members(self.folder(suite))
        if name not in members:
            raise ConfigError(f"{unknown('task', name, members)} (suite {suite})")
        return self._load(members[name], suite)

    def _load(self, folder: Path, suite: str) -> Task:
        name = locate.suite_name(suite)
        if (folder / TASK_FILE).is_file():
            return load_task(folder, name)
        return load_foreign(folder, name, self._cache or locate.default_cache_dir())

    def _at_path(self, suite: str) -> Path:
        asked = Path(suite).expanduser()
        folder = next((p for p in (asked, self._rootdir / asked) if p.is_dir()), None)
        if folder is None:
            raise ConfigError(f"--mlab-suite={suite}: there is no such folder")
        if is_foreign(folder) or (folder / TASK_FILE).is_file():
            raise ConfigError(
                f"{suite} is one task; name the folder of tasks that it lies in, and the task by --mlab-task or -k"
            )
        if not _members(folder):
            raise ConfigError(
                f"{suite} holds no task: a task is a folder with task.toml, or in MLAgentBench's format with env/, "
                "scripts/research_problem.txt and scripts/eval.py"
            )
        return folder.resolve()

    def _known(self) -> Mapping[str, Path]:
        if self._folders is None:
            found: dict[str, Path] = {}
            for place in locate.search_path(self._rootdir, "task_suites"):
                for folder in sorted(place.iterdir()):
                    if _members(folder):
                        found.setdefault(folder.name, folder)
            for name, folder in locate.entry_point_suites().items():
                found.setdefault(name, folder)
            self._folders = found
        return self._folders


def _members(folder: Path) -> Mapping[str, Path]:
    """The folders of tasks in ``folder`` by the tasks' names, sorted: with a task.toml, or in MLAgentBench's format."""
    if folder.name.startswith((".", "_")) or not folder.is_dir():
        return {}
    found: dict[str, Path] = {}
    for child in sorted(folder.iterdir()):
        if child.name.startswith((".", "_")):
            continue
        if (child / TASK_FILE).is_file():
            found[child.name] = child
        elif is_foreign(child):
            found.setdefault(name_of(child), child)
    return dict(sorted(found.items()))
