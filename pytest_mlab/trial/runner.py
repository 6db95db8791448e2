"""The worker's side of a trial: two processes, one after the other, watched; then its result, read
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
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from pytest_mlab.core.agent_api import Terminal
from pytest_mlab.core.plan import drift
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.data.prepare import prepare
from pytest_mlab.errors import StoreError, SuiteError
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.trial import evaluate
from pytest_mlab.trial.job import Job, scratch_of
from pytest_mlab.trial.outcome import Facts, facts
from pytest_mlab.trial.process.child_env import Redactor, trial_environment
from pytest_mlab.trial.process.watch import Ending, ServerLost, Watch

AGENT = "agent_phase:run_agent_phase"
FINISH = "finish_phase:run_finish_phase"
AGENT_LOG = "agent.log"
FINISH_LOG = "finish.log"

GRACE = (5.0, 60.0)
"""Least and most seconds that an agent may go on past its budget before its process is killed."""
_GRACE_SHARE = 0.1

AROUND = 300.0
"""Seconds that its process has besides: to make the workspace, to open the sandbox, to freeze the
workspace."""

_LOG_HALF = 1 << 20
_LOG_END = 32 << 10
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (\w+|<\w+>)$', re.M)
_FINISH_GRACE = 600.0
_TIMED_IN_LINE = 32
"""How many timed evaluations may be ahead in the line for the machine."""


class TrialRunner:
    """Runs trials of the run in ``run_dir``, one at a time. A context manager.

    ``grace`` is how long an agent may go on past its budget (default: :func:`grace_of` it): then an
    alarm ends its process. When the process has not ended ``around`` seconds after that, it is
    killed from here. ``terminal`` is where its person sits. ``clock`` gives monotonic seconds."""

    def __init__(
        self,
        run_dir: Path,
        *,
        grace: float | None = None,
        around: float = AROUND,
        terminal: Terminal | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = RunDir.open(run_dir.absolute())
        self._grace = grace
        self._around = around
        self._terminal = terminal
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
        directory fails. Whatever else comes (KeyboardInterrupt, a time limit's exception) passes
        after the trial's processes have been killed; the trial has no result then and can be
        resumed."""
        job = Job(self._run, trial)
        with _alone(job):
            stored = job.dir.result()
            if stored is not None:
                return stored
            job.dir.restart()
            return self._fresh(job)

    def close(self) -> None:
        """Kill what runs and end the servers. May be called again; the next ``run`` starts new
        ones."""
        for watch in self._watches.values():
            watch.close()
        self._watches.clear()
        with contextlib.suppress(OSError):  # never made, or another worker's trial is in it
            scratch_of(self._run).rmdir()

    # --- one trial -----------------------------------------------------------------------------------------------

    def _fresh(self, job: Job) -> TrialResult:
        started = time.time()
        job.dir.path.mkdir(parents=True, exist_ok=True)
        if drifted := _drift(job):
            return self._give_up(job, drifted, started)
        try:
            prepare(job.task, job.settings.data, job.cache, consent=job.settings.consent)
        except SuiteError as error:
            return self._give_up(job, f"task {job.task.name}: {error}", started, Outcome.TASK_ERROR)
        remove_workspace(job.workspace)
        try:
            grace = grace_of(job.budget.max_seconds) if self._grace is None else self._grace
            seconds = job.budget.max_seconds + job.budget.free_wait + grace + self._around
            said: dict[str, Any] = {
                "grace": grace,
                "terminal": self._terminal and asdict(self._terminal),
            }
            ending = self._phase(job, AGENT, AGENT_LOG, said, seconds)
            words = last_words(job.dir.path / AGENT_LOG)
            said = {"ending": asdict(ending), "last_words": words, "started_at": started}
            ending = self._phase(job, FINISH, FINISH_LOG, said, _finish_seconds(job))
        except ServerLost as error:
            return self._give_up(job, str(error), started)
        finally:
            remove_workspace(job.workspace)
            job.socket.unlink(missing_ok=True)  # of a process that was killed
        result = job.dir.result()
        if result is None:
            said_last = last_words(job.dir.path / FINISH_LOG)
            reason = f"the process that scores the trial {ending}" + (
                f" ({said_last})" if said_last else ""
            )
            result = self._give_up(job, reason, started)
        return result

    def _phase(
        self, job: Job, target: str, log: str, said: dict[str, Any], seconds: float
    ) -> Ending:
        watch = self._watch(job.planned_agent.needs_model and not job.settings.replay)
        path = job.dir.path / log
        ending = watch.run(
            f"pytest_mlab.trial.{target}", {**job.payload, **said}, log=path, seconds=seconds
        )
        _tidy_log(path)
        return ending

    def _watch(self, needs_model: bool) -> Watch:
        """The fork server for agents that call models, or for those that do not: without keys, and
        without the seconds that importing the model library takes."""
        if needs_model not in self._watches:
            environ = trial_environment(os.environ, needs_model=needs_model)
            # A pool of threads would be gone in the forked processes, and the harness does no
            # linear algebra.
            environ.setdefault("OPENBLAS_NUM_THREADS", "1")
            preload = [
                "pytest_mlab.trial.agent_phase",
                "pytest_mlab.trial.finish_phase",
                "scipy.special",
            ]
            if needs_model:
                preload.append("litellm")
            if self._run.plan.settings.sandbox == "docker":
                preload.append("docker")
            self._watches[needs_model] = Watch(environ=environ, preload=preload, clock=self._clock)
        return self._watches[needs_model]

    def _give_up(
        self, job: Job, reason: str, started: float, outcome: Outcome = Outcome.INFRA_ERROR
    ) -> TrialResult:
        """A result from what is known, written by the worker itself."""
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


def grace_of(max_seconds: float) -> float:
    """Seconds past a budget of ``max_seconds``: a tenth of it, within :data:`GRACE`."""
    least, most = GRACE
    return min(most, max(least, _GRACE_SHARE * max_seconds))


def _finish_seconds(job: Job) -> float:
    return (evaluate.TIMEOUT + _FINISH_GRACE) * (_TIMED_IN_LINE if job.task.timed else 1)


def _drift(job: Job) -> str:
    """Why the task is no longer what was planned; '' when it is. (The agent's files are looked at
    where they run.)"""
    planned = job.planned_task
    try:
        found = job.task.digest
    except SuiteError as error:
        return (
            f"the task {planned.name} has changed since the plan was made, and is broken now:"
            f" {error}"
        )
    return drift(planned, found)


def _facts(job: Job) -> Facts:
    try:
        return facts(job.dir.events())
    except StoreError:
        return Facts()


@contextlib.contextmanager
def _alone(job: Job) -> Iterator[None]:
    """Only one process runs a trial at a time: who comes second finds the result."""
    folder = job.run.path / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{job.trial.name}.trial", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# --- small things ------------------------------------------------------------------------------------------------


def last_words(path: Path) -> str:
    """The last line that a process wrote to its log, cut to 200 characters; of one that crashed,
    where it was when it did, in code that is not the harness's own. '' when there is nothing."""
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
    """What Python's fault handler wrote of the thread that crashed, most recent call first: its
    last frame before those of the harness."""
    _, fatal, dump = text.rpartition("Fatal Python error: ")
    frames = _FRAME.findall(dump) if fatal else []
    own = list(
        itertools.takewhile(lambda frame: f"{os.sep}pytest_mlab{os.sep}" not in frame[0], frames)
    )
    return "{}:{} in {}".format(os.path.basename(own[-1][0]), *own[-1][1:]) if own else ""


def _tidy_log(path: Path) -> None:
    """Take secrets out of a log, cut one that has run away, remove an empty one."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    if size == 0:
        path.unlink()
        return
    with open(path, "rb") as file:
        kept = file.read(_LOG_HALF)
        if size > 2 * _LOG_HALF:
            file.seek(-_LOG_HALF, os.SEEK_END)
            kept += b"\n[... %d bytes left out ...]\n" % (size - 2 * _LOG_HALF)
        kept += file.read()
    text = kept.decode("utf-8", "replace")
    clean = Redactor(os.environ)(text)
    if clean != text or size > 2 * _LOG_HALF:
        path.write_text(clean, encoding="utf-8")


def remove_workspace(path: Path) -> None:
    """Remove a folder that an agent has worked in, whatever it did to its permissions; nothing when
    there is none."""
    if not path.is_symlink() and not path.exists():
        return
    path.chmod(0o700)
    for folder, names, _ in os.walk(path):
        for name in names:
            place = os.path.join(folder, name)
            mode = os.lstat(place).st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(place, 0o700)
    shutil.rmtree(path)
