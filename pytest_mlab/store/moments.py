"""The workspaces that a trial had, put together again from its trace and the run's store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pytest_mlab.errors import StoreError
from pytest_mlab.store import manifest
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.events import AgentEnded, StepDone, TrialStarted, WorkspaceRestored
from pytest_mlab.store.trialdir import TrialDir


class Moment(NamedTuple):
    """A workspace of the past: after ``step`` (0 is the fresh one, None the final one), as an
    encoded tree."""

    step: int | None
    id: str
    tree: dict[str, str]


def moments(trial: TrialDir, store: ContentStore) -> Iterator[Moment]:
    """The workspaces of a trial in order: fresh, after each step, final. Read lazily from the
    trace.

    Raises StoreError when a snapshot cannot be put together again.
    """
    tree: dict[str, str] = {}
    last = ""
    for event in trial.events():
        if isinstance(event, TrialStarted):
            step: int | None = 0
            snapshot = event.starter
            tree = manifest.load(store, snapshot)
        elif isinstance(event, (StepDone, WorkspaceRestored)):
            snapshot = event.snapshot
            if event.set or event.deleted:
                gone = set(event.deleted)
                tree = {p: e for p, e in tree.items() if p not in gone} | event.set
            # Too many changes for the event (INLINE_ENTRIES): the whole manifest is in the store.
            elif snapshot != last:
                tree = manifest.load(store, snapshot)
            # Later steps build on it, but it is no step and has no moment of its own.
            if isinstance(event, WorkspaceRestored):
                last = snapshot
                continue
            step = event.index
        elif isinstance(event, AgentEnded) and event.snapshot:
            step, snapshot = None, event.snapshot
            tree = manifest.load(store, snapshot)
        else:
            continue
        last = snapshot
        yield Moment(step, snapshot, tree)


def moment(trial: TrialDir, store: ContentStore, step: int | None) -> Moment:
    """The workspace after ``step`` (0 is the fresh one, None the final one).

    Raises StoreError when the trace has no such step, or its recorded changes do not add up to its
    snapshot id."""
    known: list[str] = []
    for found in moments(trial, store):
        if found.step == step:
            if manifest.snapshot_id(found.tree) != found.id:
                raise StoreError(
                    f"{trial.path}: the changes up to step {step} do not add up to snapshot"
                    f" {found.id}"
                )
            return found
        known.append("final" if found.step is None else str(found.step))
    wanted = "final workspace" if step is None else f"step {step}"
    raise StoreError(
        f"{trial.path} has no snapshot of the {wanted}; it has: {', '.join(known) or 'none'}"
    )
