"""Sessions with work inside real sandboxes that are killed: what is finished is kept, nothing stays
alive.

Sessions without a sandbox's isolation, and the resumption of killed ones, are in
tests/xdist/test_signals.py."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.faults.session import PATIENCE, Session, marked, wait_for

# The first two trials end at once; in the others a script with children of its own sleeps inside
# the sandbox, and the agent has a detached process outside of it.
AGENT = """\
import subprocess, sys

from pytest_mlab import Action

SCRIPT = '''
import subprocess, sys, time
for _ in range(3):
    words = [sys.executable, "-c", "import time; time.sleep(999)", "MARKER-inside"]
    subprocess.Popen(words, start_new_session=True)
open("begun", "w").close()
time.sleep(999)
'''


class Sleeper:
    needs_model = False

    def run(self, env):
        for action in env.script("reference"):
            if action.name == "Final Answer":
                break
            env.execute(action)
        if int(env.log_dir.parent.name) <= 2:
            return
        sleep = "import time; time.sleep(999)"
        subprocess.Popen([sys.executable, "-c", sleep, "MARKER-outside"], start_new_session=True)
        env.execute(Action("Write File", {"file_name": "sleep.py", "content": SCRIPT}))
        env.execute(Action("Execute Script", {"script_name": "sleep.py"}))
"""

TRIALS = 5


class Killed:
    """A session in whose sandboxes processes sleep."""

    def __init__(self, root: Path, workers: int) -> None:
        self.marker = f"mlab-marked-{os.getpid()}-{root.name}"
        self.session = Session(root)
        self.session.agent("sleeper", AGENT.replace("MARKER", self.marker))
        args = ("--mlab-agent=sleeper", f"--mlab-repeats={TRIALS}", "-n", str(workers))
        self.process = self.session.background(*args)
        wait_for(
            lambda: self.asleep() >= max(1, workers) and self.finished() == [1, 2], self.process
        )
        self.children: list[psutil.Process] = psutil.Process(self.process.pid).children(
            recursive=True
        )
        assert marked(f"{self.marker}-outside")

    def asleep(self) -> int:
        """In how many trials the script has begun."""
        places = (self.session.path / "cache" / "workspaces").glob("*/*/begun")
        return len(list(places))

    def begun(self) -> list[int]:
        """The repeats in which the script has been asked to run."""
        traces = self.session.run_dir.glob("trials/guess/sleeper/*/trace.jsonl")
        return sorted(
            int(path.parent.name) for path in traces if '"step"' in path.read_text(errors="replace")
        )

    def finished(self) -> list[int]:
        """The repeats with a result."""
        found = self.session.run_dir.glob("trials/guess/sleeper/*/result.json")
        return sorted(int(path.parent.name) for path in found)

    def end(self) -> int:
        """Wait for the session's end; the exit status."""
        return self.process.wait(PATIENCE)

    @property
    def said(self) -> str:
        """What the terminal shows."""
        return (self.session.path / "out.txt").read_text(errors="replace")

    def assert_nothing_lives(self) -> None:
        """No process of the session, of its agents or of its scripts."""
        _, alive = psutil.wait_procs(self.children, timeout=PATIENCE)
        assert [
            one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE
        ] == []
        wait_for(lambda: not marked(self.marker))

    def assert_reported(self, missing: int) -> None:
        """Terminal, summary.json and JUnit know what is finished and what is not."""
        assert f"MISSING: {missing} of {TRIALS} planned trials did not run" in self.said
        assert "run what is missing: pytest --mlab-resume=run" in self.said
        summary = self.session.summary()
        assert [entry["trial"] for entry in summary["missing"]][-1] == f"guess-sleeper-{TRIALS}"
        assert len(summary["missing"]) == missing
        listed = self.said.partition("MISSING: ")[2].partition("run what is missing")[0]
        assert all(
            f"guess-sleeper-{repeat}" in listed
            for repeat in range(TRIALS - missing + 1, TRIALS + 1)
        )
        assert summary["subjects"][0]["success"]["successes"] == 2
        assert self.session.case("guess-sleeper-1").properties["mlab.outcome"] == "success"
        assert "Traceback" not in self.said
        assert "INTERNALERROR" not in self.said

    def clean(self) -> None:
        """Kill what a failed test left."""
        for process in [*marked(self.marker), *self.children]:
            if process.is_running():
                process.kill()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def killed(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[int], Killed]:
    def start(workers: int) -> Killed:
        found = Killed(tmp_path, workers)
        request.addfinalizer(found.clean)
        return found

    return start


@pytest.mark.parametrize("workers", [0, 2])
def test_ctrl_c_reaches_the_whole_process_group(
    killed: Callable[[int], Killed], workers: int
) -> None:
    found = killed(workers)
    os.killpg(found.process.pid, signal.SIGINT)
    assert found.end() == pytest.ExitCode.INTERRUPTED, found.said
    found.assert_nothing_lives()
    assert found.finished() == [1, 2]
    found.assert_reported(missing=3)


def test_sigterm(killed: Callable[[int], Killed]) -> None:
    found = killed(2)
    found.process.send_signal(signal.SIGTERM)
    assert found.end() == pytest.ExitCode.INTERRUPTED, found.said
    found.assert_nothing_lives()
    found.assert_reported(missing=3)


def test_sigkill_of_the_controller(killed: Callable[[int], Killed]) -> None:
    found = killed(2)
    found.process.kill()
    assert found.end() == -signal.SIGKILL
    found.assert_nothing_lives()
    assert found.finished() == [1, 2]
    report = found.session.mlab("report", found.session.name)
    assert f"MISSING: 3 of {TRIALS} planned trials did not run" in report.out
    assert all(f"guess-sleeper-{repeat}" in report.out for repeat in (3, 4, 5))


def test_sigkill_of_a_worker(killed: Callable[[int], Killed]) -> None:
    found = killed(2)
    psutil.Process(found.process.pid).children()[0].kill()
    wait_for(
        lambda: found.begun() == [1, 2, 3, 4, 5], found.process
    )  # its trial is lost, a new worker takes the next
    os.killpg(found.process.pid, signal.SIGINT)
    assert found.end() == pytest.ExitCode.INTERRUPTED, found.said
    found.assert_nothing_lives()
    assert found.finished() == [1, 2]
    assert "the worker that ran it died after 3 steps" in " ".join(found.said.split())
    found.assert_reported(missing=3)
