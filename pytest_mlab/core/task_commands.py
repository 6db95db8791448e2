"""Commands about one task that messages print: they find the task from the current folder."""

from __future__ import annotations

import shlex
from pathlib import Path

from pytest_mlab.core.task import FOREIGN, Task
from pytest_mlab.lib.locate import DEFAULT_SUITE, entry_point_suites, search_path


def command(name: str, task: Task, *words: str, variant: str = "") -> str:
    """``mlab NAME TASK`` with the data ``variant`` ('' for the command's own), the suite unless it
    is the default one, and ``words``."""
    suite = suite_of(task)
    data = ["--data", variant] if variant else []
    named = [] if suite == DEFAULT_SUITE else ["--suite", suite]
    return shlex.join(["mlab", name, task.name, *data, *named, *words])


def measure_command(task: Task, variant: str, *, what: str = "") -> str:
    """The command that measures ``what`` (the baseline unless given) and writes it down."""
    only = ["--what", what] if what else []
    return command("measure", task, *only, "--write", variant=variant)


def suite_of(task: Task) -> str:
    """What ``--suite`` has to say for a task: its suite's name where that is found by name from the
    current folder, else the suite's folder."""
    sources = [source for variant in task.variants.values() for source in variant.sources]
    for source in sources:
        if source.kind == FOREIGN:
            return str(Path(source.ref).parent)
    home = task.folder.resolve().parent
    # A suite that was named by its path has its folder's name; one of a package may have another.
    if home.name != task.suite or task.suite in entry_point_suites():
        return task.suite
    named = [(folder / task.suite).resolve() for folder in search_path(Path.cwd(), "task_suites")]
    return task.suite if home in named else str(home)
