"""Submissions that are code: what an evaluator runs for them gets at neither answers nor
verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_mlab.core.sandbox_api import Sandbox, SandboxOptions
from pytest_mlab.sandboxes import make
from pytest_mlab.suites.loader import load_task
from pytest_mlab.trial.evaluate import Evaluated, evaluate
from tests.support.docker_engine import docker_image
from tests.support.toy_suite import write_toy_task

pytest.importorskip("numpy")

SECRET = "SECRET-482913377190"

EVALUATOR = """
import sys
from pathlib import Path

import numpy as np

from pytest_mlab.evaluation import Round, record, run_code, withdraw_answers

def load(folder):
    sys.path.append(str(folder))
    import solution
    return solution

def call(solution, settings, arrays):
    return solution.work(arrays[0])

def evaluate(submission, answers):
    secret = (answers / "secret.txt").read_text()
    withdraw_answers(answers)
    found = run_code(Path(__file__), submission, [Round({}, [np.arange(3.0)])], timeout=60)[0]
    record(found=str(found), known=len(secret))
    return 0.25
"""

HONEST = "def work(x):\n    return x\n"

THIEF = """
import os, re
import numpy as np

PATTERN = re.compile(rb"SECRET-[0-9]{12}")

def files():
    for root in ("/mlab", "/workspace", "/tmp", "/run", "/dev/shm", "/home", "/root", "/var"):
        for folder, _, names in os.walk(root):
            yield from (os.path.join(folder, name) for name in names)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        yield from (f"/proc/{pid}/{name}" for name in ("environ", "cmdline"))
        try:
            yield from (f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            pass

def memories():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
                for line in maps:
                    start, end = (int(n, 16) for n in line.split()[0].split("-"))
                    if line.split()[1].startswith("rw") and end - start < 1 << 28:
                        memory.seek(start)
                        yield pid, memory.read(end - start)
        except (OSError, OverflowError, ValueError):
            continue

def work(x):
    loot = []
    for name in files():
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            if PATTERN.search(os.read(descriptor, 1 << 20)):
                loot.append(name)
        except OSError:
            pass
        finally:
            os.close(descriptor)
    loot += [f"memory of {pid}" for pid, content in memories() if PATTERN.search(content)]
    return np.array("; ".join(loot))
"""

FORGER = """
import json, os, signal
forged = {"verdict": "scored", "score": 1.0, "reason": "", "details": {}}
FOLDER = "/workspace/"

def work(x):
    with open(FOLDER + "verdict.json", "w") as file:
        json.dump(forged, file)
    os.makedirs(FOLDER + "verdict.json.part/full")
    END
    return x
"""


@pytest.fixture
def isolated() -> Sandbox:
    sandbox = make("bubblewrap")
    if reason := sandbox.check():
        pytest.skip(reason)
    return sandbox


@pytest.fixture(params=["local", "bubblewrap", "docker"])
def any_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with contextlib.ExitStack() as stack:
        image = stack.enter_context(docker_image()) if request.param == "docker" else ""
        sandbox = make(SandboxOptions(request.param, image))
        if reason := sandbox.check():
            pytest.skip(reason)
        yield sandbox


Judge = Callable[..., Evaluated]


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    """The verdict on a solution.py; the prepared answers are as before afterwards."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "submission").mkdir()
    answers = tmp_path / "prepared"
    answers.mkdir()
    (answers / "secret.txt").write_text(SECRET)
    (answers / "secret.txt").chmod(0o444)
    folder = write_toy_task(tmp_path / "task" / "guess")
    toml = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(
        toml.replace(
            'kind = "csv"\npath = "submission.csv"\ncolumns = ["id", "label"]',
            'kind = "script"\npath = "s.py"',
        )
    )

    def run(sandbox: Sandbox, code: str, evaluator: str = EVALUATOR) -> Evaluated:
        (folder / "evaluator.py").write_text(evaluator)
        task = load_task(folder, "toy")
        (tmp_path / "submission" / "solution.py").write_text(code)
        return evaluate(
            task,
            sandbox,
            submission=tmp_path / "submission",
            answers=answers,
            label="test-submitted-code",
            scratch=tmp_path / "scratch",
        )

    yield run
    assert (answers / "secret.txt").read_text() == SECRET
    assert list((tmp_path / "scratch").iterdir()) == []


def test_the_evaluator_reads_the_answers(isolated: Sandbox, judge: Judge) -> None:
    verdict = judge(isolated, HONEST)
    assert (verdict.word, verdict.score) == ("scored", 0.25), verdict.reason
    assert verdict.details == {"found": "[0. 1. 2.]", "known": len(SECRET)}


WITHDRAWING = """
from pytest_mlab.evaluation import withdraw_answers

def evaluate(submission, answers):
    assert (answers / "secret.txt").read_text()
    assert (answers / "more" / "deep.txt").read_text()
    withdraw_answers(answers)
    return float(answers.exists())
"""


def test_withdrawn_answers_are_gone_in_every_sandbox(
    any_sandbox: Sandbox, judge: Judge, tmp_path: Path
) -> None:
    deep = tmp_path / "prepared" / "more" / "deep.txt"
    deep.parent.mkdir()
    deep.write_text("x")
    deep.parent.chmod(0o555)
    verdict = judge(any_sandbox, HONEST, WITHDRAWING)
    assert (verdict.word, verdict.score) == ("scored", 0.0), verdict.reason
    assert deep.read_text() == "x"
    deep.parent.chmod(0o755)


def test_a_thief_finds_no_answers(isolated: Sandbox, judge: Judge) -> None:
    verdict = judge(isolated, THIEF)
    assert (verdict.word, verdict.details["found"]) == ("scored", "")


@pytest.mark.parametrize(
    ("end", "word", "score"),
    [
        ("pass", "scored", 0.25),
        ("os.kill(os.getppid(), signal.SIGKILL)", "task_error", None),
        ("os.kill(os.getppid(), signal.SIGINT); signal.pause()", "task_error", None),
        ("os._exit(0)", "invalid_submission", None),
    ],
)
def test_a_forged_verdict_is_never_read(
    isolated: Sandbox, judge: Judge, end: str, word: str, score: float | None
) -> None:
    verdict = judge(isolated, FORGER.replace("END", end))
    assert (verdict.word, verdict.score) == (word, score)
