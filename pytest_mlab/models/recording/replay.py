"""A model client that answers from a recording: no network, no key, the same replies, faults, usage
and times."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NoReturn

from pytest_mlab import errors
from pytest_mlab.core.model_api import ModelFacts, ModelReply, ModelRequest
from pytest_mlab.errors import ModelError, ReplayError
from pytest_mlab.models.recording.format import RecordedCall, RecordedError, Recording
from pytest_mlab.models.recording.matching import Part, comparable, difference
from pytest_mlab.models.recording.recorder import WORKSPACE

Mode = Literal["strict", "lenient"]


class ReplayClient:
    """Implements :class:`pytest_mlab.core.model_api.ModelClient`.

    A request gets the first unused reply that was recorded for an equal request, so that calls of
    several threads match. Without one, ``strict`` raises ReplayError, and raises it again for
    every later call; ``lenient`` gives the first unused reply of the same model. ``name`` is the
    recording's file for people; ``clean`` is what was applied to the recorded texts; ``workspace``
    is put where they name one; ``pass_time`` gets the seconds that a call took when it was
    recorded; ``since`` says what has changed since then, for errors, ``notes`` what matters of it
    in any case."""

    def __init__(
        self,
        recording: Recording,
        *,
        name: str,
        mode: Mode,
        clean: Callable[[str], str],
        workspace: str,
        pass_time: Callable[[float], None] = lambda seconds: None,
        since: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        self._recording = recording
        self._unused = list(recording.calls)
        self._parts = {call.number: comparable(call.request, clean) for call in recording.calls}
        self._name = name
        self._mode = mode
        self._clean = clean
        self._workspace = workspace
        self._pass_time = pass_time
        self._since = since
        self._lock = threading.Lock()
        self.notes = tuple(notes)
        """What a reader of the result should know."""
        self.asked = 0
        """Calls so far."""
        self.fault = ""
        """Why the recording does not fit; '' while it does."""

    @property
    def left_over(self) -> str:
        """A sentence on recorded calls that were not asked for; '' when there are none."""
        recorded, left = len(self._recording.calls), len(self._unused)
        return f"{left} of the {recorded} calls of {self._name} were not asked for" if left else ""

    def complete(self, request: ModelRequest) -> ModelReply:
        """The recorded answer. Raises the recorded error of a call that failed; ReplayError."""
        with self._lock:
            call = self._take(request)
            self._pass_time(call.seconds)
        if isinstance(call.outcome, RecordedError):
            raise _as_error(call.outcome, call.seconds)
        return self._here(call.outcome)

    def facts(self, model: str) -> ModelFacts:
        """What was known of ``model`` when it was recorded. Raises ReplayError for another one."""
        known = self._recording.header.facts
        if model not in known:
            self._refuse(
                f"{self._name} knows nothing of the model {model}, only of {', '.join(known)}"
            )
        return known[model]

    # --- finding a call ---

    def _take(self, request: ModelRequest) -> RecordedCall:
        if self.fault:
            raise ReplayError(self.fault)
        self.asked += 1
        now = comparable(request, self._clean)
        found = next((call for call in self._unused if self._parts[call.number] == now), None)
        if found is None:
            found = self._next(request)
            if self._mode == "strict":
                self._refuse(self._mismatch(found, now))
        self._unused.remove(found)
        return found

    def _next(self, request: ModelRequest) -> RecordedCall:
        """The first unused call, of the same model where there is one."""
        same = [
            call for call in self._unused if call.request.model == request.model
        ] or self._unused
        if not same:
            self._refuse(self._too_many())
        return same[0]

    def _mismatch(self, call: RecordedCall, now: tuple[Part, ...]) -> str:
        lines = difference(self._parts[call.number], now)
        lines += [f"since the recording: {self._since}"] if self._since else []
        lines += [
            "record again (--mlab-record), or let calls match by position"
            " (--mlab-replay-mode=lenient)"
        ]
        problem = f"call {self.asked} asks something else than call {call.number} of {self._name}"
        return "\n  ".join([f"the replay does not fit its recording: {problem}", *lines])

    def _too_many(self) -> str:
        recorded = len(self._recording.calls)
        why = " and no end: its trial was killed, or the file was cut"
        if self._recording.whole:
            why = ""
        return (
            f"the replay does not fit its recording: this is call {self.asked}, and {self._name}"
            f" has {recorded}{why}; record the trial again"
        )

    def _refuse(self, why: str) -> NoReturn:
        self.fault = why
        raise ReplayError(why)

    def _here(self, reply: ModelReply) -> ModelReply:
        """``reply`` with this trial's folder in place of the recorded trial's."""
        calls = tuple(
            replace(call, arguments=call.arguments.replace(WORKSPACE, self._workspace))
            for call in reply.tool_calls
        )
        # As JSON, because blocks may hold texts at any depth.
        thought = json.dumps([dict(block) for block in reply.reasoning])
        inside = json.dumps(self._workspace)[1:-1]
        return replace(
            reply,
            text=reply.text.replace(WORKSPACE, self._workspace),
            tool_calls=calls,
            reasoning=tuple(json.loads(thought.replace(WORKSPACE, inside))),
        )


def _as_error(recorded: RecordedError, seconds: float) -> ModelError:
    # The name comes from a file, perhaps of another version: only classes of ModelError are raised.
    kind = getattr(errors, recorded.type, ModelError)
    error: ModelError = (kind if issubclass(kind, ModelError) else ModelError)(recorded.message)
    error.retries, error.waited, error.seconds = recorded.retries, recorded.waited, seconds
    return error
