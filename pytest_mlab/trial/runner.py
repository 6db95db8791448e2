"""The worker's side of a trial: two processes, one after the other, watched; then the result, read
from disk."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from pytest_mlab.core.agent_api import Terminal
from pytest_mlab.core.plan import drift
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.data.prepare import prepare
from pytest_mlab.errors import StoreError, SuiteError
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.sandboxes import make
from pytest_mlab.store.events import Event
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.store.trialdir import AGENT_LOG, TRACE
from pytest_mlab.store.underway import Activity
from pytest_mlab.trial.follow import Follower, LogFollower
from pytest_mlab.trial.here import run_here
from pytest_mlab.trial.job import Job, scratch_of
from pytest_mlab.trial.outcome import TraceFacts, facts
from pytest_mlab.trial.process.child_env import trial_environment
from pytest_mlab.trial.process.watch import Ending, ServerLost, Watch
from pytest_mlab.trial.time_limits import (
    AROUND_AGENT,
    agent_phase_seconds,
    finish_phase_seconds,
    grace_of,
)

AGENT = "agent_phase:run_agent_phase"
FINISH = "finish_phase:run_finish_phase"
FINISH_LOG = "finish.log"

_LOG_HALF = 1 << 20
_LOG_END = 32 << 10
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (\w+|<\w+>)$', re.M)


class TrialRunner:
    """Runs trials of the run in ``run_dir``, one at a time. A context manager.

    ``grace`` is how many seconds an agent may go on past its budget (default: :func:`grace_of`);
    then an alarm ends its process. When the process has not ended ``around`` seconds after that, it
    is killed from here. ``terminal`` is where a person can be asked. ``clock`` gives monotonic
    seconds.

    ``on_output`` is called in this process with what the agent prints, in whole lines and without
    secrets, within about 0.1 s of its being printed.

    ``here`` runs agents in this process, without a time limit, for a debugger; it names the
    exceptions of an agent that end the session and not only the trial.

    ``on_event`` is called in this process with every event of a trial's trace, in order, within
    about 0.1 s of its being written and before :meth:`run` returns. What it raises ends the trial's
    processes and passes."""

    def __init__(
        self,
        run_dir: Path,
        *,
        grace: float | None = None,
        around: float = AROUND_AGENT,
        terminal: Terminal | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_output: Callable[[str], None] | None = None,
        here: tuple[type[BaseException], ...] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = RunDir.open(run_dir.absolute())
        self._grace = grace
        self._around = around
        self._terminal = terminal
        self._on_event = on_event
        self._on_output = on_output
        self._here = here
        self._clock = clock
        self._watches: dict[bool, Watch] = {}

    def __enter__(self) -> TrialRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def run(self, trial: TrialId) -> TrialResult:
        """Run ``trial``, or return its stored result. Files of an earlier attempt without a result
        are put aside.

        Raises DataUnavailable when the task's data cannot be prepared, StoreError when the run
        directory fails. Any other exception (KeyboardInterrupt, a time limit's) passes after the
        trial's processes have been killed; the trial then has no result and can be resumed."""
        job = Job(self._run, trial)
        with _alone(job):
            # Only under the lock: a second worker that waited for it finds the result here.
            stored = job.dir.result()
            if stored is not None:
                return stored
            job.dir.restart()
            return self._fresh(job)

    def close(self) -> None:
        """Kill the trial's processes and end the servers. May be called again; the next ``run``
        starts new ones."""
        for watch in self._watches.values():
            watch.close()
        self._watches.clear()
        with contextlib.suppress(OSError):  # never made, or another worker's trial is in it
            scratch_of(self._run).rmdir()

    # --- one trial ---

    def _fresh(self, job: Job) -> TrialResult:
        started = time.time()
        job.dir.path.mkdir(parents=True, exist_ok=True)
        # Before the data, because preparing them may take an hour and would be for another task
        # than the planned one.
        if drifted := _drift(job):
            return self._give_up(job, drifted, started)
        try:
            with Activity(job.dir.path).doing("preparing the data"):
                prepare(job.task, job.settings.data, job.cache, consent=job.settings.consent)
        except SuiteError as error:
            return self._give_up(job, f"task {job.task.name}: {error}", started, Outcome.TASK_ERROR)
        remove_workspace(job.workspace)
        try:
            ending = self._run_phases(job, started)
        # Raised only when no server can be started. One that dies while a phase runs is an Ending.
        except ServerLost as error:
            return self._give_up(job, str(error), started)
        finally:
            remove_workspace(job.workspace)
            job.socket.unlink(missing_ok=True)  # of a process that was killed
        result = job.dir.result()
        if result is not None:
            return result
        reason = f"the process that scores the trial {ending}"
        if words := last_words(job.dir.path / FINISH_LOG):
            reason += f" ({words})"
        return self._give_up(job, reason, started)

    def _run_phases(self, job: Job, started: float) -> Ending:
        """Run both; how the second one ended."""
        events: list[Follower | LogFollower] = []
        if self._on_event is not None:
            events.append(Follower(job.dir.path / TRACE, self._on_event))
        ending = self._run_agent(job, events)
        payload = {
            "ending": asdict(ending),
            "last_words": last_words(job.dir.path / AGENT_LOG),
            "started_at": started,
        }
        seconds = finish_phase_seconds(timed=job.task.timed)
        with Activity(job.dir.path).doing("being evaluated"):
            return self._phase(job, FINISH, FINISH_LOG, payload, seconds, events)

    def _run_agent(self, job: Job, events: Sequence[Follower | LogFollower]) -> Ending:
        terminal = self._terminal and asdict(self._terminal)
        if self._here is not None:
            ending = run_here({**job.payload, "terminal": terminal}, self._here)
            for follower in events:
                follower.catch_up(ended=True)
            return ending
        follow = [*events]
        if self._on_output is not None:
            follow.append(LogFollower(job.dir.path / AGENT_LOG, self._on_output))
        grace = grace_of(job.budget) if self._grace is None else self._grace
        seconds = agent_phase_seconds(job.budget, grace, self._around)
        payload = {"grace": grace, "terminal": terminal}
        return self._phase(job, AGENT, AGENT_LOG, payload, seconds, follow)

    def _phase(
        self,
        job: Job,
        target: str,
        log: str,
        payload: dict[str, Any],
        seconds: float,
        follow: Sequence[Follower | LogFollower],
    ) -> Ending:
        def catch_up() -> None:
            for follower in follow:
                follower.catch_up()

        # A replay answers from files, so it gets no keys and does not wait for litellm.
        watch = self._watch(job.planned_agent.needs_model and not job.settings.replay)
        path = job.dir.path / log
        ending = watch.run(
            f"pytest_mlab.trial.{target}",
            {**job.payload, **payload},
            log=path,
            seconds=seconds,
            on_wait=catch_up if follow else None,
        )
        # The process may write its last events between the last look and its end.
        for follower in follow:
            follower.catch_up(ended=True)
        _tidy_log(path)
        return ending

    def _watch(self, needs_model: bool) -> Watch:
        """The fork server for agents that call models, or the one for those that do not: without
        keys, and without importing litellm, which takes most of a server's 3.4 s
        (docs/benchmarks.md, "first trial of a worker")."""
        if needs_model not in self._watches:
            environ = trial_environment(os.environ, needs_model=needs_model)
            # OpenBLAS starts its threads when numpy is imported, as preloaded packages may do. They
            # would not exist in the forked processes, and the harness does no linear algebra.
            environ.setdefault("OPENBLAS_NUM_THREADS", "1")
            preload = ["pytest_mlab.trial.agent_phase", "pytest_mlab.trial.finish_phase"]
            if needs_model:
                preload.append("litellm")
            preload += make(self._run.plan.settings.sandbox_options).preload
            self._watches[needs_model] = Watch(environ=environ, preload=preload, clock=self._clock)
        return self._watches[needs_model]

    def _give_up(
        self, job: Job, reason: str, started: float, outcome: Outcome = Outcome.INFRA_ERROR
    ) -> TrialResult:
        """A result from the trace so far, written by the worker itself."""
        found = _facts(job)
        result = TrialResult(
            id=job.trial,
            outcome=outcome,
            reason=Redactor(os.environ)(reason),
            ended_by=found.ended.ended_by if found.ended else EndedBy.KILLED,
            ledger=found.ledger,
            started_at=found.started.t if found.started else started,
            finished_at=time.time(),
            sandbox=job.settings.sandbox,
            data=job.settings.data,
            data_digest=found.started.data_digest if found.started else "",
            task_digest=job.planned_task.digest,
            snapshot=found.ended.snapshot if found.ended else "",
        )
        job.dir.write_result(result)
        return result


def _drift(job: Job) -> str:
    """How the task differs from the planned one; '' when it does not. (The agent's files are
    compared in the process that runs them.)"""
    planned = job.planned_task
    try:
        found = job.task.digest
    except SuiteError as error:
        return (
            f"the task {planned.name} has changed since the plan was made, and is broken now:"
            f" {error}"
        )
    return drift(planned, found)


def _facts(job: Job) -> TraceFacts:
    try:
        return facts(job.dir.events())
    except StoreError:
        return TraceFacts()


@contextlib.contextmanager
def _alone(job: Job) -> Iterator[None]:
    """Only one process runs a trial at a time; a second one waits, and then finds the result."""
    folder = job.run.path / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{job.trial.name}.trial", "w") as file:
        # The kernel releases the lock when its process dies. The file is never removed: another
        # process could then lock a new file of the same name.
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# --- small things ---


def last_words(path: Path) -> str:
    """The last line of a process's log, cut to 200 characters; for a crash, its place in code that
    is not the harness's own. '' for an empty log."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_END))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return _where_crashed(text) or next(
        (line.strip()[:200] for line in reversed(text.split("\n")) if line.strip()), ""
    )


def _where_crashed(text: str) -> str:
    """The frame before those of the harness, in the fault handler's dump of the thread that crashed
    (most recent call first)."""
    _, fatal, dump = text.rpartition("Fatal Python error: ")
    frames = _FRAME.findall(dump) if fatal else []
    own = list(
        itertools.takewhile(lambda frame: f"{os.sep}pytest_mlab{os.sep}" not in frame[0], frames)
    )
    return "{}:{} in {}".format(os.path.basename(own[-1][0]), *own[-1][1:]) if own else ""


def _tidy_log(path: Path) -> None:
    """Take secrets out of a log; shorten a very long one, remove an empty one."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    if size == 0:
        path.unlink()
        return
    with open(path, "rb") as file:
        # An agent may print gigabytes: only the two ends are read into memory.
        kept = file.read(_LOG_HALF)
        if size > 2 * _LOG_HALF:
            file.seek(-_LOG_HALF, os.SEEK_END)
            kept += b"\n[... %d bytes left out ...]\n" % (size - 2 * _LOG_HALF)
        kept += file.read()
    text = kept.decode("utf-8", "replace")
    # The process writes its log without a filter, so secrets can be taken out only after its end.
    clean = Redactor(os.environ)(text)
    if clean != text or size > 2 * _LOG_HALF:
        path.write_text(clean, encoding="utf-8")


def remove_workspace(path: Path) -> None:
    """Remove an agent's workspace, whatever the agent did to its permissions. It may be absent."""
    if not path.is_symlink() and not path.exists():
        return
    # An agent may have taken rights away from folders. os.walk() enters a folder after its names
    # were yielded with those of its parent, so each has its rights back before it is entered.
    path.chmod(0o700)
    for folder, names, _ in os.walk(path):
        for name in names:
            place = os.path.join(folder, name)
            mode = os.lstat(place).st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(place, 0o700)
    shutil.rmtree(path)
