"""Which suites there are, as seen from a project's folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_mlab.errors import ConfigError
from pytest_mlab.lib import locate
from pytest_mlab.lib.suggest import unknown
from pytest_mlab.suites.foreign.reader import is_foreign
from pytest_mlab.suites.loader import TASK_FILE
from pytest_mlab.suites.suite import Suite


class Catalog:
    """Suites by name: of ``rootdir``'s own ``task_suites/`` first, then the built-in ones, then
    those of installed packages. A suite is taken whole from the first place that has its name. In
    place of a name, the path of a suite's folder may be given, relative to the working directory or
    to ``rootdir``. ``cache`` is for tasks in MLAgentBench's format (default: the user's cache)."""

    def __init__(self, rootdir: Path, cache: Path | None = None) -> None:
        self._rootdir = rootdir
        self._cache = cache

    def suites(self) -> tuple[str, ...]:
        """Names of all suites, sorted."""
        folders = (
            folder
            for place in locate.search_path(self._rootdir, "task_suites")
            for folder in place.iterdir()
        )
        own = {folder.name for folder in folders if Suite.scan(folder).folders}
        return tuple(sorted(own | locate.entry_point_suites().keys()))

    def suite(self, name: str) -> Suite:
        """The suite called ``name``, or in the folder ``name``. Raises ConfigError for an unknown
        one."""
        if locate.is_path(name):
            return self._at_path(name)
        for folder in self._folders(name):
            # A folder of that name without a task does not hide a suite in a later place.
            if (found := Suite.scan(folder, name, self._cache)).folders:
                return found
        places = ", ".join(map(str, locate.search_path(self._rootdir, "task_suites")))
        raise ConfigError(f"{unknown('suite', name, self.suites())} (looked in {places})")

    def _folders(self, name: str) -> Iterator[Path]:
        """Where a suite of this name may be, the first place first."""
        for place in locate.search_path(self._rootdir, "task_suites"):
            yield place / name
        if folder := locate.entry_point_suites().get(name):
            yield folder

    def _at_path(self, suite: str) -> Suite:
        asked = locate.expand(Path(suite))
        folder = next((p for p in (asked, self._rootdir / asked) if p.is_dir()), None)
        if folder is None:
            raise ConfigError(f"--mlab-suite={suite}: there is no such folder")
        if is_foreign(folder) or (folder / TASK_FILE).is_file():
            raise ConfigError(
                f"{suite} is one task; name the folder of tasks that it lies in, and the task by"
                " --mlab-task or -k"
            )
        # Unless it is resolved, `.` has no name to call the suite by and `..` counts as hidden.
        found = Suite.scan(folder.resolve(), cache=self._cache)
        if not found.folders:
            others = "".join(f"; {name} has {why}" for name, why in found.left_out.items())
            raise ConfigError(
                f"{suite} holds no task: a task is a folder with task.toml, or in MLAgentBench's"
                f" format with env/, scripts/research_problem.txt and scripts/eval.py{others}"
            )
        return found
