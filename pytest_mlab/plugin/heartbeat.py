"""Periodic lines on running trials: trials of hours would otherwise look like a hung session.

A thread of the controller reads nothing but the ends of the traces in the run directory, so that it
works the same with and without xdist and cannot delay a trial."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

import pytest

from pytest_mlab.core.trial import Outcome, TrialId
from pytest_mlab.errors import StoreError
from pytest_mlab.lib.durations import format_duration
from pytest_mlab.store import underway
from pytest_mlab.store.events import (
    AgentEnded,
    Evaluation,
    Event,
    ModelCall,
    Note,
    ProgramEnded,
    StepDone,
    TrialFinished,
    TrialStarted,
)
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.store.underway import UnderWay

WIDTH = 80
IN_AGENT = "in the agent's own code"
_SHOWN = 8
SILENT_SECONDS = 180.0
"""A program that has not asked its model for so long is reported: those that were tried ask within
20 s, and one that ignores the endpoint's address waits for the whole budget."""


@dataclass
class Progress:
    """How far the trials are, read again by each call of :meth:`lines`; results are read once."""

    run: RunDir
    # Wall time, not monotonic: events carry the Unix time of the process that wrote them.
    clock: Callable[[], float] = time.time
    _done: dict[TrialId, Outcome] = field(default_factory=dict)

    def lines(self, elapsed: float) -> list[str]:
        """One line for the run, then one for each running trial, two where its name is long; each
        at most 80 characters."""
        trials = self.run.plan.trials
        looks = {trial: self._look(trial) for trial in trials if trial not in self._done}
        running = [f"  {trial.name}: {text}" for trial, text in looks.items() if text]
        counts = Counter(outcome.value for outcome in self._done.values())
        outcomes = ", ".join(f"{n} {name}" for name, n in counts.most_common())
        done = f"{len(self._done)}/{len(trials)} done"
        head = f"mlab {format_duration(max(1, round(elapsed)))}: {done}"
        head += f" ({outcomes})" if outcomes else ""
        head += f", {len(running)} running"
        more = [f"  and {len(running) - _SHOWN} more"] if len(running) > _SHOWN else []
        shown = (head, *running[:_SHOWN], *more)
        return [part for line in shown for part in _parts(line)]

    def _look(self, trial: TrialId) -> str:
        """The state of a trial in words, '' when it has not begun or is done."""
        folder = self.run.trial(trial)
        try:
            result = folder.result()
            event = None if result is not None else folder.last_event()
        except StoreError as error:
            # A damaged trace costs its own line and does not end the thread.
            return f"unreadable ({error})"
        if result is not None:
            self._done[trial] = result.outcome
            return ""
        now = underway.read(folder.path)
        limit = self.run.plan.settings.budget.max_steps
        over = isinstance(event, (AgentEnded, Evaluation, TrialFinished))
        if not over and (text := self._under_way(now, event, limit)):
            return text
        if event is None:
            return ""
        ago = self._since(event.t)
        if isinstance(event, TrialStarted):
            return f"step 0/{limit}, started {ago} ago"
        if isinstance(event, (StepDone, ModelCall)):
            did = event.action if isinstance(event, StepDone) else f"asked {event.model}"
            money = f", ${event.ledger.cost:.2f}" if event.ledger.model_calls else ""
            return f"step {event.ledger.steps}/{limit}{money}, {did} {ago} ago"
        if isinstance(event, AgentEnded):
            return f"being evaluated after {event.ledger.steps} steps, {ago}"
        if isinstance(event, Evaluation):
            return "evaluated" if event.score is None else f"evaluated, score {event.score:.6g}"
        if isinstance(event, TrialFinished):
            return f"ending as {event.outcome.value}"
        if isinstance(event, ProgramEnded):
            return f"program ended {ago} ago"
        if isinstance(event, Note):
            return f"{IN_AGENT}, {ago}"
        return f"at work, went back to step {event.step} {ago} ago"

    def _under_way(self, now: UnderWay | None, event: Event | None, limit: int) -> str:
        """What a trial does at this moment; '' where that is not known."""
        if now is None:
            return ""
        what = f"{now.what or IN_AGENT}, {self._since(now.since)}{self._silence(now, event)}"
        if now.step is None:
            return what
        ledger = getattr(event, "ledger", None)
        money = f", ${ledger.cost:.2f}" if ledger is not None and ledger.model_calls else ""
        return f"step {now.step}/{limit}{money}, {what}"

    def _silence(self, now: UnderWay, event: Event | None) -> str:
        """What to say of a program that has not asked its model for minutes."""
        ledger = getattr(event, "ledger", None)
        asked = ledger is not None and ledger.model_calls
        waits = now.what.startswith(underway.PROGRAM) and self.clock() - now.since > SILENT_SECONDS
        return ", no model call yet" if waits and not asked else ""

    def _since(self, moment: float) -> str:
        return format_duration(max(1, round(self.clock() - moment)))


def _parts(line: str) -> list[str]:
    """``line``; where it is too long for a terminal, what a trial does is on a line of its own."""
    name, colon, text = line.partition(": ")
    parts = [line] if len(line) <= WIDTH else [f"{name}{colon}".rstrip(), f"    {text}"]
    return [part if len(part) <= WIDTH else part[: WIDTH - 3] + "..." for part in parts]


class Heartbeat:
    """Writes the progress of a run through ``write`` every ``interval`` seconds, from a thread of
    its own."""

    def __init__(self, interval: float, write: Callable[[list[str]], None]) -> None:
        self._interval = interval
        self._write = write
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, run: RunDir) -> None:
        """Begin; the first lines come after one interval."""
        # A daemon: a session that breaks before its last hook must not hang on this thread.
        self._thread = threading.Thread(
            target=self._beat, args=(Progress(run),), name="mlab-heartbeat", daemon=True
        )
        self._thread.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """End, and wait for the thread: nothing may be written between pytest's last lines."""
        self._stop.set()
        if self._thread is not None:
            # Without the wait, a line that is being written could land in pytest's summary.
            self._thread.join()

    def _beat(self, progress: Progress) -> None:
        begin = time.monotonic()
        while not self._stop.wait(self._interval):
            self._write(progress.lines(time.monotonic() - begin))


def terminal_writer(reporter: Any, *, shared: bool) -> Callable[[list[str]], None]:
    """A function that writes lines to the terminal; ``shared``: tests run in this process and
    capture its output."""
    stream: IO[str] | None = None
    if shared:
        try:
            # before a test redirects file descriptor 1
            stream = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            stream = None  # not a real file: pytest inside a test

    def write(lines: list[str]) -> None:
        if stream is not None:
            # pytest may be in the middle of a line of dots, and its reporter does not know of this
            # stream.
            stream.write("\n" + "\n".join(lines) + "\n")
            stream.flush()
            return
        reporter.ensure_newline()
        for line in lines:
            reporter.write_line(line)

    return write
