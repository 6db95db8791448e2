"""Processes left behind: found wherever they went, and ended; those that were there before are left
alone."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

import pytest

from pytest_mlab.evaluation.leftovers import descendants, watching

DETACHING = """
import os, signal
if os.fork():
    os._exit(0)
os.setsid()
print(os.getpid(), flush=True)
signal.pause()
"""


def subreaper() -> int:
    value = ctypes.c_int(-1)
    ctypes.CDLL(None).prctl(37, ctypes.byref(value), 0, 0, 0)
    return value.value


def detach() -> int:
    """Start a process whose parent has ended and whose session is its own; its id."""
    with subprocess.Popen([sys.executable, "-c", DETACHING], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        return int(process.stdout.readline())


def test_a_detached_process_is_found_and_ended() -> None:
    before = subreaper()
    with watching() as leftovers:
        assert leftovers.find() == set()
        pid = detach()
        assert leftovers.find() == {pid}
        leftovers.known.add(pid)
        assert leftovers.find() == set()
        leftovers.known.discard(pid)
    assert pid not in descendants(os.getpid())
    assert subreaper() == before


def test_older_children_are_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as older:
        assert older.pid in descendants(os.getpid())
        with watching() as leftovers:
            assert leftovers.find() == set()
        assert older.poll() is None
        older.send_signal(signal.SIGKILL)


def test_everything_ends_also_after_an_error() -> None:
    started = []

    def fail() -> None:
        with watching():
            started.append(detach())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert started[0] not in descendants(os.getpid())
    with pytest.raises(ProcessLookupError):  # not even a zombie
        os.kill(started[0], 0)
