"""Phase 2 of a trial, in a process that has never run the agent's code: freeze the workspace if
phase 1 did not, evaluate, decide."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_mlab.errors import DataUnavailable, SandboxError
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.store import manifest
from pytest_mlab.store.content import open_regular
from pytest_mlab.store.events import (
    AgentEnded,
    Evaluation,
    Note,
    StepDone,
    TrialFinished,
    WorkspaceRestored,
    WorkspaceRestoring,
)
from pytest_mlab.store.journal import Journal
from pytest_mlab.store.moments import moment
from pytest_mlab.store.snapshots import Snapshots
from pytest_mlab.store.trialdir import TRACE
from pytest_mlab.trial.evaluate import Evaluated, evaluate
from pytest_mlab.trial.job import Job
from pytest_mlab.trial.outcome import (
    AgentPart,
    ResultContext,
    TraceFacts,
    agent_part,
    conclude,
    facts,
    last_ledger,
    silence,
)
from pytest_mlab.trial.process.watch import Ending
from pytest_mlab.trial.redacted import RedactedJournal
from pytest_mlab.trial.restoring import bring_back
from pytest_mlab.trial.workspace import Workspace


def run_finish_phase(payload: Mapping[str, Any]) -> None:
    """Finish the trial that ``payload`` names: ``ending`` is how the watcher saw phase 1 end,
    ``last_words`` the last line of its log, ``started_at`` when the worker began (Unix seconds).
    Ends with ``result.json``."""
    job = Job.from_payload(payload)
    redact = Redactor(os.environ)
    ending = Ending(**payload["ending"])
    # When the first process was killed, its sandbox may have outlived it and could still write to
    # the workspace.
    job.sandbox().sweep(job.label)
    with RedactedJournal(job.dir.path / TRACE, redact) as journal:
        found = facts(job.dir.events())
        part = agent_part(found, ending, payload["last_words"])
        if found.ended is None:
            ended = _freeze(job, journal, found, part, ending)
            journal.write(ended)
        else:
            ended = found.ended
        evaluated = None
        # An evaluation may take half an hour and would not change these outcomes.
        if part.outcome is None and not ended.tampered:
            evaluated = _evaluate(job)
            journal.write(_evaluation(evaluated, ended.snapshot))
        context = _context(job, found, payload["started_at"])
        result = conclude(
            context, part, ended.ledger, ended.snapshot, ended.tampered, evaluated, found.crash
        )
        # Reasons quote exceptions and outputs, and result.json does not pass the redacting journal.
        result = replace(
            result,
            reason=redact(result.reason),
            notes=tuple(map(redact, (*found.notes, *silence(found, context)))),
            tools_by_text=found.tools_by_text,
            answered=found.answered,
        )
        journal.write(TrialFinished(t=time.time(), outcome=result.outcome, reason=result.reason))
    # The last act: a trial with a result is never run again. A death before this line leaves an
    # unfinished trial.
    job.dir.write_result(result)


def _freeze(
    job: Job, journal: Journal, found: TraceFacts, part: AgentPart, ending: Ending
) -> AgentEnded:
    """The event that the killed process could not write. All its processes are dead, so the
    workspace no longer changes."""
    snapshot, tampered = "", list[str]()
    if found.started is not None:
        files = job.prepared.files
        # The process that planned the mounts is gone. The snapshot of the fresh workspace names
        # them.
        fresh = manifest.load(job.run.store, found.started.starter)
        shown = [
            manifest.decode(path) for path, entry in fresh.items() if entry.startswith("mounted:")
        ]
        # No disk budget is passed: it bounds the snapshots of steps, and a final one is always kept
        # whole.
        limit = job.settings.snapshot_file_mb << 20
        snapshots = Snapshots(
            job.run.store, job.workspace, public=files, mounted=shown, file_limit=limit
        )
        # This object only says which paths are read-only. It has not seen the fresh files, so trees
        # are compared below instead of calling tampered().
        guard = Workspace(job.workspace, mounts=(), public=files, read_only=job.task.read_only)
        keep = [*shown, *filter(guard.is_read_only, map(manifest.decode, fresh))]
        if _finish_restoring(job, snapshots, keep):
            text = (
                "the process died while the workspace was being restored; the restoring was"
                " completed"
            )
            journal.write(Note(t=time.time(), kind="snapshot", data={"text": text}))
        snapshot = snapshots.take(final=True).id
        tampered = changed_read_only(fresh, manifest.load(job.run.store, snapshot), guard)
    return AgentEnded(
        t=time.time(),
        ended_by=part.ended_by,
        outcome=part.outcome,
        reason=part.reason,
        snapshot=snapshot,
        tampered=tampered,
        ledger=last_ledger(found, ending, job.budget),
    )


def _finish_restoring(job: Job, snapshots: Snapshots, keep: list[str]) -> bool:
    """Complete the return to an earlier workspace in which the process died; False when it did not
    die in one."""
    begun = None
    for event in job.dir.events():
        if isinstance(event, WorkspaceRestoring):
            begun = event
        # A restoring that raised an error has no event for its end. A step after it shows that the
        # process lived on.
        elif isinstance(event, (WorkspaceRestored, StepDone)):
            begun = None
    if begun is None:
        return False
    public = {digest: job.prepared.public / path for path, digest in job.prepared.files.items()}

    def open_public(digest: str) -> int | None:
        return open_regular(public[digest]) if digest in public else None

    was = moment(job.dir, job.run.store, begun.step).tree
    bring_back(
        job.workspace,
        was,
        snapshots.tree(),
        store=job.run.store,
        keep=keep,
        open_public=open_public,
    )
    return True


def changed_read_only(
    fresh: Mapping[str, str], now: Mapping[str, str], guard: Workspace
) -> list[str]:
    """Read-only files of the tree ``fresh`` that are gone or have another content in the tree
    ``now``."""

    def content(entry: str | None) -> str:
        return "" if entry is None else manifest.digest_of(entry) or entry

    changed = [path for path, entry in fresh.items() if content(entry) != content(now.get(path))]
    return sorted(path for path in map(manifest.decode, changed) if guard.is_read_only(path))


def _evaluate(job: Job) -> Evaluated:
    try:
        answers = job.prepared.answers
        sandbox = job.sandbox()
    except (DataUnavailable, SandboxError) as error:
        return Evaluated("infra_error", reason=str(error))
    return evaluate(
        job.task,
        sandbox,
        submission=job.workspace,
        answers=answers,
        label=f"{job.label}-evaluation",
        scratch=job.scratch,
    )


def _evaluation(evaluated: Evaluated, snapshot: str) -> Evaluation:
    return Evaluation(
        t=time.time(),
        snapshot=snapshot,
        verdict=evaluated.word,
        score=evaluated.score,
        reason=evaluated.reason,
        details=evaluated.details,
        seconds=evaluated.seconds,
    )


def _context(job: Job, found: TraceFacts, started_at: float) -> ResultContext:
    return ResultContext(
        id=job.trial,
        task=job.task,
        data=job.settings.data,
        data_digest=found.started.data_digest if found.started else "",
        sandbox=job.settings.sandbox,
        threshold=job.settings.threshold,
        started_at=found.started.t if found.started else started_at,
        finished_at=time.time(),
    )
