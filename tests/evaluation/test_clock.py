"""The clock of speed tasks: waiting for a processor is taken off, work done elsewhere is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from pytest_mlab.evaluation.clock import Reading, read_clock, seconds_between


@pytest.mark.parametrize(
    ("end", "seconds"),
    [
        pytest.param(Reading(wall=4.0, used=4.0, queued=0.0), 4.0, id="it ran all the time"),
        pytest.param(
            Reading(wall=4.0, used=1.0, queued=3.0), 1.0, id="it mostly waited for its turn"
        ),
        pytest.param(
            Reading(wall=4.0, used=0.5, queued=1.0), 3.0, id="it slept, or others worked for it"
        ),
        pytest.param(Reading(wall=4.0, used=7.0, queued=1.0), 7.0, id="it worked on two cores"),
    ],
)
def test_seconds_of_work(end: Reading, seconds: float) -> None:
    assert seconds_between(Reading(0.0, 0.0, 0.0), end) == seconds
    later = Reading(end.wall + 9, end.used + 9, end.queued + 9)
    assert seconds_between(Reading(9.0, 9.0, 9.0), later) == seconds


ANSWERING = """
import sys, time, os
for line in sys.stdin:
    exec(line)
    print(time.process_time(), flush=True)
"""


@contextmanager
def answering(code: str = ANSWERING) -> Iterator[subprocess.Popen[str]]:
    """A process that executes each line sent and answers with its own processor time so far."""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            ask(process, "pass")
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[str], line: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def test_its_processor_time_is_read_from_outside() -> None:
    with answering() as process:
        start = read_clock(process.pid)
        before = ask(process, "pass")
        after = ask(process, "sum(range(3_000_000))")
        end = read_clock(process.pid)
    assert end.used - start.used >= after - before > 0
    assert seconds_between(start, end) >= after - before


def test_the_time_of_children_that_it_waits_for_is_its_own() -> None:
    line = "os.fork() and os.wait() or (sum(range(9_000_000)), os._exit(0))"
    with answering() as process:
        start = read_clock(process.pid)
        own = -ask(process, "pass") + ask(process, line)
        end = read_clock(process.pid)
    assert end.used - start.used > 2 * own  # the child did the work


def test_sleeping_is_no_waiting_for_a_processor() -> None:
    with answering() as process:
        start = read_clock(process.pid)
        ask(process, "time.sleep(0.3)")
        end = read_clock(process.pid)
    assert end.wall - start.wall >= 0.3
    assert end.queued - start.queued < end.wall - start.wall
    assert seconds_between(start, end) > end.used - start.used


def test_waiting_for_others_on_the_same_processor_is_taken_off() -> None:
    core = min(os.sched_getaffinity(0))
    spinning = ANSWERING.replace(
        "print(time.process_time(), flush=True)", "print(0, flush=True)\n    while True: pass"
    )
    with ExitStack() as stack:
        others = [stack.enter_context(answering(spinning)) for _ in range(3)]
        process = stack.enter_context(answering())
        for each in (*others, process):
            os.sched_setaffinity(each.pid, {core})
        start = read_clock(process.pid)
        used = -ask(process, "pass") + ask(process, "sum(range(5_000_000))")
        end = read_clock(process.pid)
    wall = end.wall - start.wall
    assert end.queued > start.queued, "this kernel keeps no record of waiting"
    assert used <= seconds_between(start, end) < wall


def test_a_process_that_is_gone_leaves_the_wall_time() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    start, end = read_clock(process.pid), read_clock(process.pid)
    assert start.used == end.used == 0.0
    assert seconds_between(start, end) >= 0.0
