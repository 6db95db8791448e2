from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from pytest_mlab.lib import processes
from tests.support.child_process import running


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with running({processes.MARK: "mine"}) as process:
        yield process


def test_start_time_tells_a_process_from_its_remains(child: subprocess.Popen[bytes]) -> None:
    assert int(processes.start_time(child.pid)) > 0
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes.start_time(child.pid) == ""
    child.wait()
    assert processes.start_time(child.pid) == ""


def test_descendants(child: subprocess.Popen[bytes]) -> None:
    assert child.pid in processes.descendants(os.getpid())
    assert processes.descendants(child.pid) == []


def test_marks_are_new_each_time() -> None:
    assert processes.new_mark() != processes.new_mark()


def test_kill_marked_leaves_others(child: subprocess.Popen[bytes]) -> None:
    with running({processes.MARK: "mine-too"}) as other:
        assert processes.kill_marked("mine") == 1
        assert child.wait() == -9
        assert other.poll() is None


def namespace() -> str:
    return os.readlink("/proc/self/ns/pid")


@pytest.mark.parametrize(
    ("mark", "orphan"),
    [
        ("{namespace}:{me}:{started}:x", False),  # the owner lives
        ("{namespace}:{me}:1:x", True),  # its number was given to another
        ("{namespace}:4194305:1:x", True),  # beyond the largest number: it is no more
        ("pid:[1]:4194305:1:x", False),  # numbers of another namespace say nothing
        ("nonsense", False),
        ("{namespace}:x:1:x", False),
    ],
)
def test_orphans(mark: str, orphan: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # A namespace of the test's own: a trial of another test would sweep what is an orphan in the
    # real one.
    monkeypatch.setattr(processes, "_namespace", lambda: "pid:[test]")
    me = os.getpid()
    mark = mark.format(namespace="pid:[test]", me=me, started=processes.start_time(me))
    with running({processes.MARK: mark}) as process:
        found = process.pid in processes.orphans()
    assert found is orphan
