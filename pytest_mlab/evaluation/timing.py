"""Run a submission's code in a process of its own: for its answers, or to time it against the
starter's.

Every such process is one of :mod:`pytest_mlab.evaluation.code_process`. To compare speeds there is
one for each of the two; a round sends both the same fresh inputs, one after the other; the clock is
this process's and the kernel's (:mod:`pytest_mlab.evaluation.clock`) and covers the way there, the
work and the way back. The submission's own output and clock are never used: it could fake both."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_mlab.evaluation.clock import ONE_THREAD, read_clock, seconds_between
from pytest_mlab.evaluation.leftovers import watching
from pytest_mlab.evaluation.refusals import InvalidSubmission

Arrays = Sequence[Any]
START_TIMEOUT = 120.0
_CHUNK = 1 << 20
_WORDS = 400
"""Characters of an error message that are kept."""


class WorkerError(Exception):
    """The code in a worker died, hung, raised or answered nonsense; the message is a clause that
    says so."""


class Worker:
    """A process that runs the code in ``folder`` through ``driver``, a Python file with two
    functions::

        load(folder: Path) -> object                  # import what is to be timed
        call(loaded, settings: dict, arrays: list) -> array     # one piece of work

    ``environ`` is added to this process's variables. Raises WorkerError when loading fails or takes
    more than ``START_TIMEOUT`` seconds. Use as a context manager."""

    def __init__(
        self,
        driver: Path,
        folder: Path,
        *,
        max_output_mb: int = 256,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._max_output = max_output_mb * 1_000_000
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        program = Path(__file__).with_name("code_process.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", str(program), str(driver), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=folder,
            env={**os.environ, **(environ or {})},
            # A process group of its own, which paused() stops and close() kills as a whole.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        try:
            self._exchange(b"", START_TIMEOUT)
        except WorkerError:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(
        self, settings: Mapping[str, Any], arrays: Arrays, *, timeout: float
    ) -> tuple[Any, float]:
        """One piece of work: its output array and the seconds it took on one core. Raises
        WorkerError."""
        import numpy as np

        request = io.BytesIO()
        header = json.dumps({"settings": dict(settings), "arrays": len(arrays)}).encode()
        request.write(len(header).to_bytes(8, "big") + header)
        for array in arrays:
            np.save(request, array, allow_pickle=False)
        payload = request.getvalue()
        started = read_clock(self.pid)
        reply = self._exchange(payload, timeout)
        seconds = seconds_between(started, read_clock(self.pid))
        try:
            # A pickle from the submission would run its code in this process, which knows the
            # answers.
            return np.load(io.BytesIO(reply), allow_pickle=False), seconds
        except (ValueError, EOFError, OSError) as error:
            raise WorkerError(f"answered with no array: {error}") from None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the worker's process group meanwhile, so that threads which it left behind do not
        slow down the other worker."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill the process group and release the pipes."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), True)
            pipe.close()
        self._errors.close()

    def _signal(self, number: signal.Signals) -> None:
        # Once it was waited for, its id may belong to another group.
        if self._process.returncode is None:
            os.killpg(self._process.pid, number)

    def _exchange(self, payload: bytes, timeout: float) -> bytes:
        """Send one frame and read one: 8 bytes of length, then the content. Raises WorkerError."""
        deadline = time.monotonic() + timeout
        out = memoryview(len(payload).to_bytes(8, "big") + payload)
        received = bytearray()
        wanted = 8
        while len(received) < wanted:
            left = deadline - time.monotonic()
            readable, writable, _ = select.select(
                [self._from], [self._to] if out else [], [], max(left, 0)
            )
            if not readable and not writable:
                raise WorkerError(f"gave no answer within {timeout:.0f} s")
            if writable:
                out = out[self._write(out) :]
            if readable:
                received += self._read()
            if wanted == 8 and len(received) >= 8:
                wanted = self._checked_length(int.from_bytes(received[:8], "big")) + 8
        if len(received) > wanted or out:
            raise WorkerError("wrote more than one answer")
        if received[8:9] != b"+":
            message = received[9 : 9 + _WORDS].decode("utf-8", "replace")
            # ASCII alone: the text is the submission's and goes into messages and reports.
            raise WorkerError(ascii(message)[1:-1][:_WORDS])
        return bytes(memoryview(received)[9:])

    def _checked_length(self, length: int) -> int:
        if not 1 <= length <= self._max_output:
            raise WorkerError("wrote something other than an answer into the pipe of its answers")
        return length

    def _write(self, out: memoryview) -> int:
        try:
            return os.write(self._to, out[:_CHUNK])
        except BrokenPipeError:
            raise WorkerError(self._obituary()) from None

    def _read(self) -> bytes:
        content = os.read(self._from, _CHUNK)
        if not content:
            raise WorkerError(self._obituary())
        return content

    def _obituary(self) -> str:
        """How the process ended, with the last line that it wrote to stderr."""
        try:
            status = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "closed the pipe of its answers"
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 4000))
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        last = f": {ascii(lines[-1])[1:-1][:_WORDS]}" if lines else ""
        if status < 0:
            return f"died of signal {-status}{last}"
        return f"ended with exit status {status}{last}"


@dataclass(frozen=True)
class Comparison:
    """Seconds of starter and submission, round by round, and what they say: ``ratio`` is the median
    of submission time over starter time (below 1: the submission is faster)."""

    starter: tuple[float, ...]
    submission: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Submission time over starter time of each round."""
        return tuple(b / a for a, b in zip(self.starter, self.submission, strict=True))

    @property
    def ratio(self) -> float:
        """The median round's."""
        return statistics.median(self.ratios)


@dataclass(frozen=True)
class Round:
    """One piece of work: what the driver's ``call`` gets."""

    settings: Mapping[str, Any]
    arrays: Arrays


def compare_speed(
    driver: Path,
    *,
    starter: Path,
    submission: Path,
    checks: Sequence[Round],
    rounds: Sequence[Round],
    same: Callable[[Any, Any], str],
    timeout: float = 60.0,
) -> Comparison:
    """Check and time the code in the folder ``submission`` against that in the folder ``starter``.

    ``checks`` are compared and not timed (they also warm both up), ``rounds`` are both compared and
    timed, starter and submission in turn. ``same(expected, found)`` is '' when the outputs agree,
    else a clause that says how they differ. ``timeout`` bounds one call. Processes that the
    submission leaves running would slow the starter down: they make it invalid and are killed.
    Raises InvalidSubmission for all that the submission does wrong, WorkerError when the starter
    itself fails."""
    times: tuple[list[float], list[float]] = ([], [])
    # watching() is the outermost: it kills what is left after both workers have been closed.
    with (
        watching() as leftovers,
        _open_submission(driver, submission, ONE_THREAD) as second,
        Worker(driver, starter, environ=ONE_THREAD) as first,
    ):
        leftovers.known |= {first.pid, second.pid}
        for number, work in enumerate([*checks, *rounds]):
            # Each comes first in every other round: the second finds the processor warmed up.
            if submission_first := number % 2 == 1:
                found, seconds = _ask(second, work, timeout)
            with second.paused():
                if leftovers.find():
                    raise InvalidSubmission(
                        "the submitted code leaves processes running between calls"
                    )
                expected, starter_seconds = first.call(work.settings, work.arrays, timeout=timeout)
            if not submission_first:
                found, seconds = _ask(second, work, timeout)
            if difference := same(expected, found):
                raise InvalidSubmission(f"wrong output with {_words(work)}: {difference}")
            if number >= len(checks):
                times[0].append(starter_seconds)
                times[1].append(seconds)
    return Comparison(tuple(times[0]), tuple(times[1]))


def run_code(
    driver: Path, folder: Path, work: Sequence[Round], *, timeout: float = 60.0
) -> list[Any]:
    """What the code in the folder ``folder`` answers to each piece of work, without a look at the
    time it takes.

    The code sees what ``driver`` hands it and what lies in the sandbox: call ``withdraw_answers``
    before. Nothing that it starts is left when this returns. Raises InvalidSubmission for all that
    it does wrong."""
    with watching(), _open_submission(driver, folder) as worker:
        return [_ask(worker, one, timeout)[0] for one in work]


def _ask(worker: Worker, work: Round, timeout: float) -> tuple[Any, float]:
    """The submission's answer and its time; what goes wrong is the submission's fault."""
    try:
        return worker.call(work.settings, work.arrays, timeout=timeout)
    except WorkerError as error:
        raise InvalidSubmission(f"the submitted code {error} (with {_words(work)})") from None


def _open_submission(
    driver: Path, folder: Path, environ: Mapping[str, str] | None = None
) -> Worker:
    try:
        return Worker(driver, folder, environ=environ)
    except WorkerError as error:
        raise InvalidSubmission(f"the submitted code cannot be loaded: it {error}") from None


def _words(work: Round) -> str:
    settings = [f"{name} {value}" for name, value in work.settings.items()]
    return ", ".join([*settings, *(f"input of shape {tuple(a.shape)}" for a in work.arrays[:1])])
