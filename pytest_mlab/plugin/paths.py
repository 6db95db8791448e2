"""What the paths of the command line mean for a run: the suite, some of its tasks, single trials,
or test files of the project."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_mlab.lib import locate


@dataclass(frozen=True)
class Paths:
    """``args`` are what pytest collects by itself. ``suite_file`` is a built-in test file that is
    collected beside them ("" for none), under the node id ``suite_id``.

    ``only_suite``: no path names anything but the suite, so ordinary tests are left out. Of the
    suite's own items, those of ``tasks`` and those with one of ``ids`` are selected; both empty:
    all."""

    args: tuple[str, ...]
    suite_id: str
    suite_file: str = ""
    only_suite: bool = True
    tasks: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    def leaves_out(self, nodeid: str, task: str) -> bool:
        """True for an item of the suite's test file that no path names."""
        if not (self.tasks or self.ids) or nodeid.partition("::")[0] != self.suite_id:
            return False
        named = any(nodeid == one or nodeid.startswith((f"{one}::", f"{one}[")) for one in self.ids)
        return not named and task not in self.tasks


def understand(config: pytest.Config, suite: str) -> Paths:
    """The meaning of the command line's paths; none means the suite.

    The suite is also meant by a folder that contains it, by the root folder and by what contains
    that: pytest itself would collect the whole project there, and a suite without a test file of
    its own not at all. A folder inside a task means the task."""
    name = locate.suite_name(suite)
    place = _Place(config.rootpath, suite, name)
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        # Without paths pytest has put testpaths or the root folder here.
        return place.paths(rest=[])
    rest, tasks, ids = [], set[str](), set[str]()
    own: dict[str, str] = {}
    whole = False
    for arg in config.args:
        file, colons, inner = arg.partition("::")
        path = (config.invocation_params.dir / file).resolve()
        if path == place.test_file and colons:
            own[arg] = f"{place.suite_id}::{inner}"
        elif path == place.test_file and not path.exists():
            whole = True  # the built-in test file, by the name that reports show
        elif not colons and place.is_inside(path):
            whole = True
        elif not colons and (task := place.task(path)):
            tasks.add(task)
        else:
            rest.append(arg)
    if place.test_file.exists() and not (whole or tasks):
        rest += own  # pytest knows such ids itself
    else:
        ids = set(own.values())
    if not (whole or tasks or ids):
        return Paths(tuple(rest), place.suite_id, only_suite=False)
    if whole:
        tasks, ids = set(), set()
    return place.paths(rest, tuple(sorted(tasks)), tuple(sorted(ids)))


class _Place:
    """Where the suite is, seen from the project."""

    def __init__(self, root: Path, suite: str, name: str) -> None:
        self._root = root.resolve()
        folder = self._root / "task_suites" / name
        if locate.is_path(suite):
            folder = locate.expand(Path(suite)).resolve()
        self._folder = folder
        self.test_file = self._root / "task_suites" / f"test_{name}.py"
        self.suite_id = f"task_suites/test_{name}.py"
        builtin = locate.builtin("task_suites") / f"test_{name}.py"
        self._builtin = builtin
        if not builtin.is_file():
            self._builtin = Path(__file__).parent / "test_any_suite.py"

    def is_inside(self, path: Path) -> bool:
        """True when the suite or the project is in the folder ``path``, or is it."""
        return any(
            inner == path or path in inner.parents for inner in (self._root, self._folder)
        ) and (path.is_dir())

    def task(self, path: Path) -> str:
        """The task in whose folder ``path`` is; "" for none."""
        folder = self._folder.resolve()
        if folder not in path.parents or not path.exists():
            return ""
        first = path.relative_to(folder).parts[0]
        return first if (folder / first).is_dir() else ""

    def paths(
        self, rest: list[str], tasks: tuple[str, ...] = (), ids: tuple[str, ...] = ()
    ) -> Paths:
        """Paths that take in the suite, beside ``rest``."""
        args, built_in = list(rest), ""
        if self.test_file.is_file():
            args.append(str(self.test_file))
        else:
            # A built-in file is outside the project, where node ids would depend on the
            # installation: it is collected under a stable one.
            built_in = str(self._builtin)
        return Paths(tuple(args), self.suite_id, built_in, not rest, tasks, ids)
