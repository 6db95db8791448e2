"""A trial's steps as they are recorded: in its trace, each with a snapshot of the workspace, and in
the agent's history."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_mlab.core.actions import Action, Observation, Step
from pytest_mlab.store.events import Note, ProgramEnded, StepDone, WorkspaceRestored
from pytest_mlab.store.journal import Journal
from pytest_mlab.store.snapshots import Change, Snapshots
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.actions.base import ActionAnswer
from pytest_mlab.trial.program import ProgramRun, shortened_words

_NOTE_LIMIT = 200_000
_NAME_LIMIT = 200
_ARGUMENTS_LIMIT = 2000


class StepRecorder:
    """Writes what happens in a trial to its ``journal``. ``begin`` of the methods is when it began,
    by ``time.monotonic()``; ``now`` gives Unix seconds."""

    def __init__(
        self,
        journal: Journal,
        snapshots: Snapshots,
        account: Account,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._snapshots = snapshots
        self._account = account
        self._now = now
        self.history: list[Step] = []

    def step(self, index: int, action: Action, answer: ActionAnswer, begin: float) -> Observation:
        """Record a step that has been done, with what it changed in the workspace."""
        text = _text(answer.text)
        change = self._snapshots.take()
        # The snapshot is a part of the step's time.
        seconds = time.monotonic() - begin
        self._journal.write(
            StepDone(
                t=self._now(),
                index=index,
                # A name that a model wrote may have any type and any length.
                action=_text(str(action.name)[:_NAME_LIMIT]),
                args=_plain(action.args),
                observation=text,
                ok=answer.ok,
                exit_status=answer.exit_status,
                output_file=answer.output_file,
                output_bytes=answer.output_bytes,
                killed_for=answer.killed_for,
                seconds=seconds,
                snapshot=change.id,
                set=change.set,
                deleted=change.deleted,
                ledger=self._account.ledger,
            )
        )
        self._snapshot_notes(change)
        observation = Observation(
            text, answer.ok, answer.exit_status, answer.output_file, answer.done
        )
        self.history.append(Step(index, action, observation, seconds))
        return observation

    def restored(self, step: int, missing: Sequence[str], begin: float) -> None:
        """Record that the workspace is what it was after ``step``, but for ``missing`` files."""
        change = self._snapshots.take()
        self._journal.write(
            WorkspaceRestored(
                t=self._now(),
                step=step,
                snapshot=change.id,
                set=change.set,
                deleted=change.deleted,
                missing=[_text(path) for path in missing],
                seconds=time.monotonic() - begin,
                ledger=self._account.ledger,
            )
        )
        self._snapshot_notes(change)

    def program(self, argv: Sequence[str], ran: ProgramRun, begin: float) -> None:
        """Record the end of a program whose model calls were the steps."""
        self._journal.write(
            ProgramEnded(
                t=self._now(),
                argv=shortened_words(argv),
                exit_status=ran.done.exit_status,
                killed_for=ran.done.killed_for,
                output=ran.text,
                output_file=ran.output_file,
                output_bytes=ran.done.output_bytes,
                seconds=time.monotonic() - begin,
            )
        )

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        """Record an agent's own event. Values that are not JSON become text, long data are cut."""
        text = json.dumps(dict(data), default=repr, skipkeys=True)
        plain = {"cut": text[:_NOTE_LIMIT]} if len(text) > _NOTE_LIMIT else json.loads(text)
        self._journal.write(Note(t=self._now(), kind=str(kind), data=plain))

    def _snapshot_notes(self, change: Change) -> None:
        for text in change.notes:
            self._journal.write(Note(t=self._now(), kind="snapshot", data={"text": text}))


def _text(text: str) -> str:
    """``text`` without lone surrogates, which stand for bytes of file names that are not UTF-8:
    neither the trace nor a model takes them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _plain(args: Any) -> dict[str, Any]:
    """An action's arguments for the trace; what is not JSON as text."""
    # Most arguments are plain, and the way through JSON below would cost every step. Exact types,
    # because subclasses may be written in another way.
    if isinstance(args, dict) and all(
        type(k) is str and type(v) in (str, int, float, bool) for k, v in args.items()
    ):
        return args
    try:
        return dict(json.loads(json.dumps(dict(args), default=repr, skipkeys=True)))
    except (TypeError, ValueError):
        return {"unusable": repr(args)[:_ARGUMENTS_LIMIT]}
