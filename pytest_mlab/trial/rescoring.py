"""Score a trial's workspace as it was after any of its steps, again or for the first time."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_mlab.core.scoring import judge
from pytest_mlab.core.trial import Outcome
from pytest_mlab.errors import EvaluatorError, ScoringError, StoreError
from pytest_mlab.store.events import Evaluation
from pytest_mlab.store.manifest import Public, restore
from pytest_mlab.store.moments import Moment, moment, moments
from pytest_mlab.trial.evaluate import Evaluated, evaluate
from pytest_mlab.trial.finish_phase import changed_read_only
from pytest_mlab.trial.job import Job
from pytest_mlab.trial.outcome import tampering
from pytest_mlab.trial.workspace import Workspace


@dataclass(frozen=True)
class Rescored:
    """An earlier workspace, judged. ``step`` None is the final one, 0 the fresh one."""

    step: int | None
    outcome: Outcome
    reason: str
    score: float | None = None
    improvement: float | None = None


def rescore(job: Job, step: int | None, *, all_steps: bool = False) -> Iterator[Rescored]:
    """Evaluate the workspace after ``step`` (None: the final one), or with ``all_steps`` after
    every step, and add an evaluation to the trace for each. Equal workspaces are evaluated once.
    ``result.json`` stays as it is.

    Raises StoreError when there is no such snapshot, DataUnavailable, SuiteError.
    """
    chosen = _moments(job) if all_steps else iter([moment(job.dir, job.run.store, step)])
    known: dict[str, Evaluated] = {}
    for found in chosen:
        if found.id not in known:
            known[found.id] = _evaluate(job, found)
        evaluated = known[found.id]
        with job.dir.journal() as journal:
            journal.write(
                Evaluation(
                    t=time.time(),
                    step=found.step,
                    snapshot=found.id,
                    verdict=evaluated.word,
                    score=evaluated.score,
                    reason=evaluated.reason,
                    details=evaluated.details,
                    seconds=evaluated.seconds,
                )
            )
        yield _judged(job, found.step, evaluated)


def _moments(job: Job) -> Iterator[Moment]:
    found = False
    for one in list(moments(job.dir, job.run.store)):  # read before the first evaluation is added
        found = True
        yield one
    if not found:
        raise StoreError(f"{job.dir.path} has no snapshots: the trial never began")


def _evaluate(job: Job, found: Moment) -> Evaluated:
    prepared = job.prepared
    guard = Workspace(job.workspace, mounts=(), public=prepared.files, read_only=job.task.read_only)
    if refused := tampering(changed_read_only(_fresh(job), found.tree, guard)):
        return Evaluated("invalid_submission", reason=refused)
    job.scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="rescore-", dir=job.scratch))
    try:
        missing = restore(
            job.run.store, found.tree, folder / "workspace", Public(prepared.public, prepared.files)
        )
        evaluated = evaluate(
            job.task,
            job.sandbox(),
            submission=folder / "workspace",
            answers=prepared.answers,
            label=f"{job.label}-rescore",
            scratch=folder,
        )
    finally:
        shutil.rmtree(folder)
    # A submission that was scored did not need the files that were not kept.
    if not missing or evaluated.word == "scored":
        return evaluated
    named = ", ".join(missing[:5])
    return Evaluated(
        evaluated.word,
        reason=(
            f"{evaluated.reason}; not kept in the step's snapshot (see --mlab-snapshot-file-mb):"
            f" {named}"
        ),
        details=evaluated.details,
        seconds=evaluated.seconds,
    )


def _fresh(job: Job) -> dict[str, str]:
    return moment(job.dir, job.run.store, 0).tree


def _judged(job: Job, step: int | None, evaluated: Evaluated) -> Rescored:
    if evaluated.word != "scored":
        return Rescored(step, Outcome(evaluated.word), evaluated.reason)
    try:
        judged = judge(job.task, job.settings.data, evaluated.score, job.settings.threshold)
    except (EvaluatorError, ScoringError) as error:
        return Rescored(step, Outcome.TASK_ERROR, str(error), evaluated.score)
    return Rescored(step, judged.outcome, judged.reason, judged.score, judged.improvement)
