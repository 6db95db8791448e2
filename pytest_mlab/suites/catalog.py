"""Which suites and tasks there are, from where an invocation stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from pytest_mlab.core.task import Task
from pytest_mlab.errors import ConfigError, SuiteError
from pytest_mlab.lib import locate
from pytest_mlab.lib.suggest import unknown
from pytest_mlab.suites.foreign.reader import is_foreign, load_for_plan, load_task_of
from pytest_mlab.suites.loader import TASK_FILE
from pytest_mlab.suites.members import left_out, members


class Catalog:
    """Suites by name: of ``rootdir``'s own ``task_suites/`` first, then the built-in ones, then
    those of installed packages. A suite is taken whole from the first place that has its name. In
    place of a name, a suite may be said by the path of its folder, relative to the working
    directory or to ``rootdir``. Tasks in MLAgentBench's format are read by way of ``cache``
    (default: the user's cache)."""

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
            places = ", ".join(
                str(place) for place in locate.search_path(self._rootdir, "task_suites")
            )
            raise ConfigError(f"{unknown('suite', suite, known)} (looked in {places})")
        return known[suite]

    def task_names(self, suite: str) -> tuple[str, ...]:
        """Names of a suite's tasks, sorted; broken tasks included. Raises ConfigError for an
        unknown suite."""
        return tuple(members(self.folder(suite)))

    def left_out(self, suite: str) -> Mapping[str, str]:
        """Folders of a suite that look like tasks and are none: why, by their names."""
        return left_out(self.folder(suite))

    def tasks(self, suite: str, names: Collection[str] | None = None) -> tuple[Task, ...]:
        """A suite's tasks, or those of ``names``, sorted by name; folders in MLAgentBench's format
        that cannot be read have a ``fault``. Raises SuiteError that says what is wrong with every
        task that has a broken task.toml."""
        loaded: list[Task] = []
        broken: list[str] = []
        for name, folder in members(self.folder(suite)).items():
            if names is not None and name not in names:
                continue
            try:
                loaded.append(load_for_plan(folder, locate.suite_name(suite), self._cache_dir))
            except SuiteError as error:  # all that is broken is told at once
                broken.append(str(error))
        if broken:
            raise SuiteError("\n".join(broken))
        return tuple(loaded)

    def task(self, name: str, suite: str) -> Task:
        """One task. Raises ConfigError for an unknown name, SuiteError when the task is broken."""
        found = members(self.folder(suite))
        if name not in found:
            raise ConfigError(f"{unknown('task', name, found)} (suite {suite})")
        return load_task_of(found[name], locate.suite_name(suite), self._cache_dir)

    @property
    def _cache_dir(self) -> Path:
        return self._cache or locate.default_cache_dir()

    def _at_path(self, suite: str) -> Path:
        asked = Path(suite).expanduser()
        folder = next((p for p in (asked, self._rootdir / asked) if p.is_dir()), None)
        if folder is None:
            raise ConfigError(f"--mlab-suite={suite}: there is no such folder")
        if is_foreign(folder) or (folder / TASK_FILE).is_file():
            raise ConfigError(
                f"{suite} is one task; name the folder of tasks that it lies in, and the task by"
                " --mlab-task or -k"
            )
        if not members(folder):
            others = "".join(f"; {name} has {why}" for name, why in left_out(folder).items())
            raise ConfigError(
                f"{suite} holds no task: a task is a folder with task.toml, or in MLAgentBench's"
                f" format with env/, scripts/research_problem.txt and scripts/eval.py{others}"
            )
        return folder.resolve()

    def _known(self) -> Mapping[str, Path]:
        if self._folders is None:
            found: dict[str, Path] = {}
            for place in locate.search_path(self._rootdir, "task_suites"):
                for folder in sorted(place.iterdir()):
                    if members(folder):
                        found.setdefault(folder.name, folder)
            for name, folder in locate.entry_point_suites().items():
                found.setdefault(name, folder)
            self._folders = found
        return self._folders
