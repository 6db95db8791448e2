"""Sessions that are killed: what is finished is reported, nothing stays alive, the rest can be
resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.project import RUN, Project

# The first two trials end at once; the others wait until a file appears.
HOLDER = """
import time
from pathlib import Path


class Holder:
    needs_model = False

    def run(self, env):
        if int(env.log_dir.parent.name) > 2:
            env.note("holding", {})
            while not Path(GO).exists():
                time.sleep(0.02)
"""

PATIENCE = 60.0


def wait_for(what: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    """Until ``what`` is true; fails when the process ends or patience does."""
    until = time.monotonic() + PATIENCE
    while not what():
        assert process.poll() is None, "pytest ended early"
        assert time.monotonic() < until, "it never came"
        time.sleep(0.02)


def start(project: Project, *args: str) -> subprocess.Popen[bytes]:
    """pytest with four trials, of which two hold; returns when both do."""
    project.agent("holder", HOLDER.replace("GO", repr(str(project.path / "go"))))
    with open(project.path / "out.txt", "wb") as out:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pytest",
                *project.arguments("--mlab-agent=holder", "--mlab-repeats=4", *args),
            ],
            cwd=project.path,
            stdout=out,
            stderr=subprocess.STDOUT,
        )


def holding(project: Project, workers: int) -> Callable[[], bool]:
    """True when as many trials hold as can at once, and the two quick ones have ended."""

    def look() -> bool:
        traces = [project.trial(f"guess/holder/{k}") / "trace.jsonl" for k in (3, 4)[:workers]]
        held = all(trace.exists() and "holding" in trace.read_text() for trace in traces)
        return held and all(
            (project.trial(f"guess/holder/{k}") / "result.json").exists() for k in (1, 2)
        )

    return look


def descendants(pid: int) -> list[psutil.Process]:
    """All that a process has started, fork servers included."""
    found: list[psutil.Process] = psutil.Process(pid).children(recursive=True)
    return found


def gone(processes: list[psutil.Process]) -> bool:
    """True when all have ended, within a patient while."""
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
    return not [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def output(project: Project) -> Callable[[], str]:
    return lambda: (project.path / "out.txt").read_text()


def test_sigterm_reports_what_is_finished_and_leaves_no_orphan(
    project: Project, output: Callable[[], str], shared_cache: Path
) -> None:
    """With workers it is that of tests/faults/test_kills.py, as is Ctrl-C."""
    process = start(project)
    wait_for(holding(project, 1), process)
    children = descendants(process.pid)
    assert children
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == pytest.ExitCode.INTERRUPTED, output()
    assert gone(children)
    assert "MISSING: 2 of 4 planned trials did not run" in output()
    assert f"pytest --mlab-resume={RUN}" in output()
    assert project.summary()["planned"] == 4
    assert len(project.summary()["missing"]) == 2
    assert (project.run_dir / "junit.xml").is_file()

    (project.path / "go").touch()
    project.run(f"--mlab-resume={RUN}", run_dir=False)
    left = [path for path in (shared_cache / "workspaces").rglob("guess-holder-*") if path.is_dir()]
    assert left == [], "workspaces of killed trials do not grow in number"


def test_kill_of_the_controller_then_resume(project: Project, output: Callable[[], str]) -> None:
    process = start(project, "-n", "2")
    wait_for(holding(project, 2), process)
    children = descendants(process.pid)
    process.kill()
    process.wait()
    assert gone(children)

    finished = [
        project.trial(f"guess/holder/{k}") / name
        for k in (1, 2)
        for name in ("trace.jsonl", "result.json")
    ]
    marks = [(os.stat(file).st_ino, os.stat(file).st_mtime_ns) for file in finished]
    (project.path / "go").touch()
    result = project.run(f"--mlab-resume={RUN}", "-n", "2", "--mlab-gate=aggregate", run_dir=False)
    assert [(os.stat(file).st_ino, os.stat(file).st_mtime_ns) for file in finished] == marks
    assert project.summary()["missing"] == []

    undisturbed = "undisturbed"
    args = ("--mlab-agent=holder", "--mlab-repeats=4", "-n", "2", "--mlab-gate=aggregate")
    again = project.run(*args, f"--mlab-run-dir={undisturbed}")
    assert result.ret == again.ret
    here = Project(project.pytester, undisturbed)
    assert [s["success"] for s in project.summary()["subjects"]] == [
        s["success"] for s in here.summary()["subjects"]
    ]
    assert set(project.junit()) == set(here.junit())
