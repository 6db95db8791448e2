from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_mlab.core.sandbox_api import Connection, Execution, Sandbox, SandboxOptions, SandboxSpec
from pytest_mlab.data.prepare import Prepared, prepare
from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes import make
from pytest_mlab.suites.loader import load_task
from pytest_mlab.trial import evaluate as subject
from pytest_mlab.trial.evaluate import Evaluated, evaluate
from tests.support.docker_engine import docker_image
from tests.support.toy_suite import BASELINE, EVALUATOR, write_toy_task


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    root = tmp_path_factory.mktemp("toy")
    return prepare(load_task(write_toy_task(root / "guess"), "toy"), "mini", root / "cache")


@pytest.fixture(params=["local", "bubblewrap", "docker"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with contextlib.ExitStack() as stack:
        image = stack.enter_context(docker_image()) if request.param == "docker" else ""
        sandbox = make(SandboxOptions(request.param, image))
        if reason := sandbox.check():
            pytest.skip(reason)
        yield sandbox


@pytest.fixture
def local() -> Sandbox:
    return make("local")


@pytest.fixture
def submission(tmp_path: Path, prepared: Prepared) -> Path:
    """The starter's submission, as the workspace holds it."""
    folder = tmp_path / "submission"
    folder.mkdir()
    rows = (prepared.public / "test.csv").read_text().splitlines()[1:]
    (folder / "submission.csv").write_text(
        "id,label\n" + "".join(f"{row.split(',')[0]},no\n" for row in rows)
    )
    return folder


Score = Callable[..., Evaluated]


@pytest.fixture
def score(tmp_path: Path, prepared: Prepared, submission: Path) -> Iterator[Score]:
    """Evaluate the submission by an evaluator with the given text, and check that nothing is left
    over."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def run(
        sandbox: Sandbox, evaluator: str = EVALUATOR, *, timed: bool = False, **settings: Any
    ) -> Evaluated:
        task = load_task(
            write_toy_task(tmp_path / "task" / "guess", evaluator=evaluator, timed=timed), "toy"
        )
        return evaluate(
            task,
            sandbox,
            submission=submission,
            answers=prepared.answers,
            label="test-evaluate",
            scratch=scratch,
            **settings,
        )

    yield run
    assert list(scratch.iterdir()) == []


# --- on every backend ---


def test_scored(sandbox: Sandbox, score: Score) -> None:
    verdict = score(sandbox)
    assert (verdict.word, verdict.score, verdict.reason) == ("scored", BASELINE, "")
    assert verdict.seconds > 0


def test_nothing_handed_in(sandbox: Sandbox, score: Score, submission: Path) -> None:
    (submission / "submission.csv").unlink()
    verdict = score(sandbox)
    assert (verdict.word, verdict.score, verdict.reason) == (
        "no_submission",
        None,
        "submission.csv is missing",
    )


def test_refused(sandbox: Sandbox, score: Score, submission: Path) -> None:
    (submission / "submission.csv").write_text("id,label\nb0,no\n")
    verdict = score(sandbox)
    assert (verdict.word, verdict.reason) == (
        "invalid_submission",
        "submission.csv: 99 ids are missing or unknown",
    )


def test_evaluator_that_raises_is_the_tasks_fault(sandbox: Sandbox, score: Score) -> None:
    verdict = score(sandbox, "def evaluate(submission, answers):\n    return 1 / 0\n")
    assert verdict.word == "task_error"
    assert verdict.reason == "task guess: evaluator.py:2: ZeroDivisionError: division by zero"


def test_evaluator_that_hangs(sandbox: Sandbox, score: Score) -> None:
    text = (
        "import time\nprint('thinking', flush=True)\ndef evaluate(submission, answers):\n   "
        " time.sleep(3600)\n"
    )
    verdict = score(sandbox, text, timeout=0.5)
    assert verdict.word == "task_error"
    assert verdict.reason == "task guess: the evaluator did not end within 0.5 s (thinking)"
    assert verdict.details == {"output": "thinking"}


def test_evaluator_that_is_killed(sandbox: Sandbox, score: Score) -> None:
    text = (
        "import os, signal\ndef evaluate(submission, answers):\n    os.kill(os.getpid(),"
        " signal.SIGKILL)\n"
    )
    verdict = score(sandbox, text)
    assert (verdict.word, verdict.reason) == (
        "task_error",
        "task guess: the evaluator died of signal 9",
    )


def test_evaluator_that_leaves_without_a_verdict(sandbox: Sandbox, score: Score) -> None:
    verdict = score(sandbox, "import os\ndef evaluate(submission, answers):\n    os._exit(3)\n")
    assert verdict.word == "task_error"
    assert verdict.reason == "task guess: the evaluator ended with status 3 and without a result"


def test_modules_of_the_submission_are_never_imported(
    sandbox: Sandbox, score: Score, submission: Path
) -> None:
    for name in ("csv", "json", "pytest_mlab", "sitecustomize"):
        (submission / f"{name}.py").write_text("raise SystemExit('imported from the submission')\n")
    assert score(sandbox).word == "scored"


def test_starter_files_are_beside_the_evaluator(sandbox: Sandbox, score: Score) -> None:
    text = (
        "import pathlib\ndef evaluate(s, a):\n    return len(list((pathlib.Path(__file__).parent /"
        " 'env').iterdir()))\n"
    )
    assert score(sandbox, text).score == 1.0


# --- isolated backends ---

PROBE = """
import os, pathlib, socket

def evaluate(submission, answers):
    faults = []
    for place in (submission, answers, pathlib.Path(__file__).parent, pathlib.Path("/mlab/lib")):
        try:
            (place / "new.txt").write_text("x")
            faults.append(f"{place} can be written to")
        except OSError:
            pass
    if os.path.exists(HOST):
        faults.append("the host's files can be seen")
    faults += [name for name in os.environ if name.endswith("_KEY")]
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=0.2)
        faults.append("network")
    except TimeoutError:
        faults.append("network, slow")
    except OSError:
        pass
    if sorted(os.listdir("/mlab/lib/pytest_mlab")) != ["__init__.py", "evaluation"]:
        faults.append("more of the harness than the evaluation library")
    if os.listdir("."):
        faults.append("the workspace is not empty")
    if faults:
        raise RuntimeError("; ".join(faults))
    return 1.0
"""


def test_what_the_evaluator_sees(
    sandbox: Sandbox, score: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not sandbox.isolated:
        pytest.skip("local shows everything, and says so")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    verdict = score(sandbox, f"HOST = {str(tmp_path)!r}\n{PROBE}")
    assert (verdict.word, verdict.reason) == ("scored", "")


# --- large and odd submissions ---


def test_huge_submission_is_neither_read_nor_copied(
    local: Sandbox, score: Score, submission: Path, tmp_path: Path
) -> None:
    with open(submission / "submission.csv", "wb") as file:
        file.truncate(1 << 40)  # a terabyte, sparse: whoever copied or read it would not come back
    text = EVALUATOR.replace(
        "    truth =",
        "    if path.stat().st_size > 1_000_000:\n        raise InvalidSubmission('big')\n   "
        " truth =",
    )
    assert score(local, text).reason == "big"


# --- verdicts are untrusted ---


def writes(result: str) -> str:
    """An evaluator that writes its own verdict file and leaves."""
    return f"""
import os
def evaluate(submission, answers):
    {result}
    os._exit(0)
"""


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("open('verdict.json', 'w').write('{')", "Expecting property name"),
        ("open('verdict.json', 'w').write('[1]')", "it is a list, expected an object"),
        ("open('verdict.json', 'w').write('[' * 100_000)", "it is nested too deeply"),
        ("open('verdict.json', 'wb').write(b'\\xff\\xfe\\x00')", "codec can't decode"),
        (
            "open('verdict.json', 'w').write(' ' * (300 << 10))",
            "it has 307200 bytes, at most 262144 are read",
        ),
        ("os.symlink('/etc/passwd', 'verdict.json')", "Too many levels of symbolic links"),
        ("os.mkfifo('verdict.json')", "regular file"),
        ("os.mkdir('verdict.json')", "regular file"),
    ],
)
def test_verdict_file_of_a_wrong_kind(
    local: Sandbox, score: Score, result: str, reason: str
) -> None:
    verdict = score(local, writes(result))
    assert verdict.word == "task_error"
    assert verdict.reason.startswith("task guess: the evaluator's result cannot be read: ")
    assert reason in verdict.reason


def test_a_verdict_counts_only_when_the_evaluator_ended_well(local: Sandbox, score: Score) -> None:
    forged = json.dumps({"verdict": "scored", "score": 1.0, "reason": "", "details": {}})
    verdict = score(
        local,
        writes(f"open('verdict.json', 'w').write({forged!r})").replace("_exit(0)", "_exit(3)"),
    )
    assert verdict.word == "task_error"
    assert verdict.reason == "task guess: the evaluator ended with status 3 and without a result"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            {"verdict": "success", "score": 1.0, "reason": "", "details": {}},
            "its verdict is 'success'",
        ),
        (
            {"verdict": "infra_error", "score": None, "reason": "x", "details": {}},
            "its verdict is 'infra_error'",
        ),
        (
            {"verdict": ["scored"], "score": 1.0, "reason": "", "details": {}},
            "its verdict is ['scored']",
        ),
        (
            {"verdict": "scored", "score": "1", "reason": "", "details": {}},
            "its score is '1', expected a finite number",
        ),
        ({"verdict": "scored", "score": True, "reason": "", "details": {}}, "its score is True"),
        ({"verdict": "scored", "score": None, "reason": "", "details": {}}, "its score is None"),
        (
            {"verdict": "scored", "score": float("nan"), "reason": "", "details": {}},
            "its score is nan",
        ),
        ({"verdict": "scored", "score": 10**400, "reason": "", "details": {}}, "int too large"),
        ({"verdict": "scored", "score": 1.0, "reason": 3, "details": {}}, "its reason is not text"),
        (
            {"verdict": "scored", "score": 1.0, "reason": "", "details": []},
            "details are not an object",
        ),
        ({}, "its verdict is None"),
    ],
)
def test_verdict_of_a_wrong_shape(
    local: Sandbox, score: Score, content: dict[str, Any], reason: str
) -> None:
    verdict = score(local, writes(f"open('verdict.json', 'w').write({json.dumps(content)!r})"))
    assert verdict.word == "task_error"
    assert reason in verdict.reason


def test_long_reason_is_cut(local: Sandbox, score: Score) -> None:
    text = (
        "from pytest_mlab.evaluation import *\ndef evaluate(s, a):\n    raise InvalidSubmission('x'"
        " * 9999)\n"
    )
    assert score(local, text).reason == "x" * subject.MAX_REASON


# --- the sandbox's own failures ---


@dataclass
class Broken:
    """A sandbox whose only command ends as it is told to."""

    ending: Execution | SandboxError
    name: str = "broken"
    isolated: bool = True
    mounts: bool = True
    python: str = "python3"
    opened: list[SandboxSpec] = field(default_factory=list)
    closed: int = 0

    def open(self, spec: SandboxSpec) -> Connection:
        if isinstance(self.ending, SandboxError):
            raise self.ending
        self.opened.append(spec)
        return cast(Connection, self)

    def locate(self, target: str) -> str:
        return target

    def execute(self, argv: list[str], **_: Any) -> Execution:
        assert argv[:3] == ["python3", "-I", "-B"]
        assert isinstance(self.ending, Execution)
        return self.ending

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("killed_for", "word", "reason"),
    [
        ("lost", "infra_error", "the evaluation sandbox was lost: its supervisor was killed"),
        (
            "memory",
            "task_error",
            "task guess: the evaluator used more than its memory of 1024 MiB (last words)",
        ),
        (
            "pids",
            "task_error",
            "task guess: the evaluator had more than its 64 processes (last words)",
        ),
        ("disk", "task_error", "task guess: the evaluator wrote more than its 64 MiB (last words)"),
    ],
)
def test_killed_by_a_limit(score: Score, killed_for: Any, word: str, reason: str) -> None:
    broken = Broken(Execution(None, b"first\nlast words\n", 17, 0.1, killed_for))
    verdict = score(cast(Sandbox, broken))
    assert (verdict.word, verdict.reason) == (word, reason)
    assert broken.closed == 1
    assert broken.opened[0].network is False


def test_sandbox_that_does_not_start(score: Score) -> None:
    verdict = score(cast(Sandbox, Broken(SandboxError("no namespaces here"))))
    assert (verdict.word, verdict.reason) == (
        "infra_error",
        "the evaluation sandbox failed: no namespaces here",
    )


# --- timed tasks ---


def test_timed_evaluations_wait_for_each_other(
    score: Score, local: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait for the machine is not part of the evaluation's seconds, and only timed tasks
    wait."""
    order: list[str] = []

    class Lock:
        def __init__(self, path: str) -> None:
            order.append(Path(path).name)

        def __enter__(self) -> None:
            order.append("locked")

        def __exit__(self, *_: object) -> None:
            order.append("released")

    monkeypatch.setattr("filelock.FileLock", Lock)
    broken = cast(Sandbox, Broken(SandboxError("not needed here")))

    def clock() -> float:
        order.append("clock")
        return float(len(order))

    score(broken, clock=clock)
    assert order == ["clock", "clock"]
    order.clear()
    score(broken, timed=True, clock=clock)
    assert order == [f"mlab-timed-{os.getuid()}.lock", "locked", "clock", "clock", "released"]
