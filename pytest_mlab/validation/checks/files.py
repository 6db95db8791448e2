"""Check: what the task declares is there: data, read-only files, scripts, columns, packages."""

from __future__ import annotations

import csv
import fnmatch
from collections.abc import Iterator
from pathlib import Path

from pytest_mlab.core.task import Task
from pytest_mlab.lib.digests import walk
from pytest_mlab.suites.folder import files_of
from pytest_mlab.suites.scripts import scripted_actions
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.finding import Finding, fail, ok


class Files:
    """Prepares the data as well."""

    name = "files"
    about = "all files that the task declares exist, data included"

    def run(self, bench: Bench) -> Finding:
        """Compare what is declared with what there is."""
        task, prepared = bench.task, bench.prepared
        starters = files_of(task.folder / "env")
        faults = [
            *_read_only(task, [*starters, *prepared.files]),
            *_scripts(task, {*starters, *prepared.files}),
        ]
        answers = [name for name, _ in walk(prepared.answers)]
        if not answers:
            faults.append("data.py wrote no answers")
        faults += [
            f"shared: {one} matches no file of the answers"
            for one in task.shared
            if not fnmatch.filter(answers, one)
        ]
        for sample in (
            task.folder / "env" / task.submission.path,
            prepared.public / task.submission.path,
        ):
            faults += _sample(sample, task)
        if faults:
            return fail("; ".join(faults))
        size = sum(entry.stat().st_size for _, entry in walk(prepared.public)) / 1e6
        return ok(
            f"{len(starters)} starter and {len(prepared.files)} data files ({size:.1f} MB)",
            public_mb=round(size, 3),
        )


def _read_only(task: Task, names: list[str]) -> Iterator[str]:
    """A pattern that protects nothing is a misspelt one."""
    for pattern in task.read_only:
        if not any(fnmatch.fnmatchcase(name, pattern.removeprefix("./")) for name in names):
            yield f"read_only: {pattern} matches no file of the workspace"


def _scripts(task: Task, there: set[str]) -> Iterator[str]:
    """Scripts that baseline and reference execute, at the time they do."""
    for what in ("baseline", "reference"):
        known = set(there)
        for action in scripted_actions(task, what):
            if action.name == "Write File":
                known.add(str(action.args["file_name"]))
            elif action.name == "Execute Script" and action.args["script_name"] not in known:
                yield f"{what}: there is no file {action.args['script_name']} to execute"


def _sample(path: Path, task: Task) -> Iterator[str]:
    """A sample that lies where the submission is expected has the columns that are declared."""
    if task.submission.kind != "csv" or not task.submission.columns or not path.is_file():
        return
    with path.open(encoding="utf-8", newline="") as file:
        header = next(csv.reader(file), [])
    if header != list(task.submission.columns):
        yield (
            f"{path.name} has the columns {', '.join(header)}; declared are"
            f" {', '.join(task.submission.columns)}"
        )
