"""A task folder → :class:`~pytest_mlab.core.task.Task`, read and checked once a process as long as
no file changes."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from pytest_mlab.core.budget import BudgetOverride
from pytest_mlab.core.task import (
    Baseline,
    Direction,
    Metric,
    Resources,
    Source,
    Submission,
    Task,
    Threshold,
    Variant,
)
from pytest_mlab.errors import SuiteError
from pytest_mlab.lib.digests import digest_of_files
from pytest_mlab.suites.consistency import problems_of
from pytest_mlab.suites.folder import Signature, signature
from pytest_mlab.suites.problems import from_validation, render
from pytest_mlab.suites.schema import MeasuredTable, TaskFile, VariantTable
from pytest_mlab.suites.scripts import read_actions
from pytest_mlab.suites.toml import parse

TASK_FILE = "task.toml"

# Keyed by the suite as well, since a Task names its suite and one folder can be in two.
_loaded: dict[tuple[Path, str], tuple[Signature, Task]] = {}


def load_task(folder: Path, suite: str) -> Task:
    """The task in ``folder``, as a member of ``suite``.

    Raises SuiteError that lists everything wrong with it, a line each: file, line, key, value
    found, values allowed."""
    folder = folder.resolve()
    if not (folder / TASK_FILE).is_file():
        raise SuiteError(f"{folder / TASK_FILE}: there is no such file; a task folder needs one")
    # The signature is taken before the files are read: a file that changes meanwhile makes the next
    # call read again, never keep what was old.
    now = signature(folder)
    known = _loaded.get((folder, suite))
    if known is None or known[0] != now:
        names = [name for name, _, _, _ in now]
        known = _loaded[folder, suite] = (
            now,
            _task(_read(folder), folder, suite, digest_of_files(folder, names)),
        )
    return known[1]


def _read(folder: Path) -> TaskFile:
    """The checked content of task.toml. Raises SuiteError."""
    file = folder / TASK_FILE
    try:
        text = file.read_text(encoding="utf-8")
        document = parse(text)
    except UnicodeDecodeError as error:
        raise SuiteError(f"{file}: not UTF-8 text at byte {error.start}") from None
    except ValueError as error:
        raise SuiteError(f"{file}:{error}") from None
    try:
        content = TaskFile.model_validate(document)
    except ValidationError as error:
        raise SuiteError(render(from_validation(error), file, text)) from None
    if problems := list(problems_of(content, folder)):
        raise SuiteError(render(problems, file, text))
    # The actions are read only to be checked: a broken script shows at load, not after a run began.
    for scripted in ("reference", "baseline"):
        if (folder / scripted).is_dir():
            read_actions(folder / scripted)
    return content


def _task(content: TaskFile, folder: Path, suite: str, digest: str) -> Task:
    task, metric, submission, threshold = (
        content.task,
        content.metric,
        content.submission,
        content.threshold,
    )
    tables = {"mini": content.data.mini, "full": content.data.full}
    return Task(
        name=task.name,
        suite=suite,
        version=task.version,
        summary=task.summary,
        modality=task.modality,
        folder=folder,
        description=(folder / "description.md").read_text(encoding="utf-8"),
        metric=Metric(
            metric.name, Direction(metric.direction), metric.units, metric.low, metric.high
        ),
        submission=Submission(
            submission.kind,
            submission.path,
            tuple(submission.columns),
            submission.rows,
            submission.max_mb,
        ),
        variants={
            name: _variant(name, table) for name, table in tables.items() if table is not None
        },
        digest=digest,
        threshold=Threshold(
            Threshold().improvement if threshold.improvement is None else threshold.improvement,
            threshold.absolute,
        ),
        resources=Resources(**content.resources.model_dump()),
        read_only=tuple(content.read_only),
        shared=tuple(content.shared),
        requirements=tuple(content.requirements),
        budget=BudgetOverride(content.budget.max_steps, content.budget.max_time),
        timed=task.timed,
        slow=task.slow,
        starter_script=task.starter_script,
    )


def _variant(name: str, table: VariantTable) -> Variant:
    return Variant(
        name=name,
        sources=tuple(Source(**source.model_dump()) for source in table.source),
        baseline=_measured(table.baseline),
        reference=_measured(table.reference),
    )


def _measured(table: MeasuredTable | None) -> Baseline | None:
    if table is None:
        return None
    return Baseline(table.measured, tuple(table.scores), table.mean, table.std, table.machine)
