"""What a piece of another process's work would take on one core of an idle machine. Linux only.

Wall time alone says little on a busy machine: with eight processes on two cores most of it is
waiting for a turn. So the kernel's record of that waiting is taken off. What is left is still time
that passed, so that work done elsewhere (by another process, on a device) counts; and it is never
less than the processor time used, so that several cores at once gain nothing."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)
"""Variables that make numeric libraries use one thread. Threads that wait for each other actively,
as OpenMP's do, make a call thirty times slower where there are fewer idle cores than threads."""


@dataclass(frozen=True)
class Reading:
    """Seconds so far: of the clock, of processor time that the process used, and in the queue for a
    processor."""

    wall: float
    used: float
    queued: float


def read_clock(pid: int) -> Reading:
    """The state of the process ``pid``, which waits for this one just now; ``queued`` includes this
    process's own."""
    queued = _queued(pid) + _queued(os.getpid())
    return Reading(time.perf_counter(), _used(pid), queued)


def seconds_between(start: Reading, end: Reading) -> float:
    """Seconds of work between two readings of the same process."""
    return max(end.wall - start.wall - (end.queued - start.queued), end.used - start.used)


def _used(pid: int) -> float:
    """Processor seconds of all threads, ended ones too, and of child processes that were waited
    for."""
    own = 0.0
    # CPUCLOCK_SCHED of the whole process, in nanoseconds; /proc/<pid>/stat counts in 10 ms. Where a
    # kernel refuses other processes' clocks, wall time alone decides.
    with contextlib.suppress(OSError):
        own = time.clock_gettime((~pid << 3) | 2)
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        children = file.read().rpartition(b")")[2].split()[13:15]
        return own + sum(map(int, children)) / os.sysconf("SC_CLK_TCK")
    return own


def _queued(pid: int) -> float:
    """Seconds that the process's main thread was ready to run and another one ran; 0 where the
    kernel does not say."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/schedstat", "rb") as file:
        return int(file.read().split()[1]) / 1e9
    return 0.0
