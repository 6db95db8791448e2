"""Tasks that are broken: the task and the line are named, and no agent is blamed for it."""

from __future__ import annotations

import pytest

from tests.faults.session import Said, Session, fits
from tests.support.toy_suite import DATA, write_toy_task

EVALUATE = "def evaluate(submission_dir, answers_dir):\n    "

BROKEN = {
    # task: its evaluator, parts of the reason
    "raising": (EVALUATE + "return {}['accuracy']\n", ["KeyError: 'accuracy'", "evaluator.py:2"]),
    "nan": (EVALUATE + "return float('nan')\n", ["nan"]),
    "infinite": (EVALUATE + "return float('inf')\n", ["inf"]),
    "nothing": (EVALUATE + "pass\n", ["None"]),
    "text": (EVALUATE + "return '0.9'\n", ["'0.9'"]),
    "beyond": (EVALUATE + "return 1.5\n", ["1.5", "1"]),
    "unparsed": (
        "def evaluate(submission_dir, answers_dir)\n    return 1\n",
        ["SyntaxError", "evaluator.py:1"],
    ),
    "unnamed": ("def score(a, b):\n    return 1\n", ["evaluate"]),
    "leaving": (EVALUATE + "import os\n    os._exit(7)\n", ["status 7", "without a result"]),
    "dying": (EVALUATE + "import os\n    os.kill(os.getpid(), 11)\n", ["signal 11"]),
    "hungry": (EVALUATE + "return len([bytearray(10**7) for _ in range(999)])\n", ["MemoryError"]),
    "lost-answers": (
        EVALUATE + "open(answers_dir / 'none.csv')\n",
        ["FileNotFoundError", "none.csv"],
    ),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    found = Session(tmp_path_factory.mktemp("project"))
    suite = found.path / "task_suites" / "toy"
    for task, (evaluator, _) in BROKEN.items():
        write_toy_task(suite / task, evaluator=evaluator)
    write_toy_task(suite / "unprepared")
    (suite / "unprepared" / "data.py").write_text(DATA + "\n\nprepare = 1 / 0\n")
    return found


@pytest.fixture(scope="module")
def said(session: Session) -> Said:
    return session.pytest("-n", "2", "--mlab-agent=reference", "--mlab-gate=aggregate")


@pytest.mark.parametrize("task", BROKEN)
def test_evaluator(session: Session, said: Said, task: str) -> None:
    result = session.result(f"{task}/reference/1")
    assert result["outcome"] == "task_error", result["reason"]
    for part in [f"task {task}: ", *BROKEN[task][1]]:
        assert part in result["reason"]
    assert_told(session, said, task, result["reason"])


def test_data(session: Session, said: Said) -> None:
    result = session.result("unprepared/reference/1")
    assert result["outcome"] == "task_error"
    for part in ("task unprepared: ", "data.py", "ZeroDivisionError"):
        assert part in result["reason"]
    assert_told(session, said, "unprepared", result["reason"])


def test_no_agent_is_blamed(session: Session, said: Said) -> None:
    """Also where agents' failures are no failures of tests, a broken task is one; the good task
    counts alone."""
    assert said.ret == pytest.ExitCode.TESTS_FAILED
    broken = len(BROKEN) + 1
    assert f"ERRORS: {broken} trials ended in an error that the agent did not make" in said.out
    (subject,) = session.summary()["subjects"]
    assert subject["success"]["rate_without_errors"] == 1.0
    assert subject["success"]["planned"] == broken + 1
    assert session.result("guess/reference/1")["outcome"] == "success"


def test_task_toml(session: Session) -> None:
    """Other mistakes in the file are those of tests/suites/test_loader.py."""
    toml = write_toy_task(session.path / "task_suites" / "broken" / "spoilt") / "task.toml"
    toml.write_text(toml.read_text().replace('direction = "maximize"', 'direction = "up"'))
    said = session.pytest(
        "-n", "2", "--mlab-agent=reference", "--mlab-suite=broken", "--mlab-run-dir=none"
    )
    assert said.ret == pytest.ExitCode.USAGE_ERROR, said.out
    for part in ("broken/spoilt/task.toml:13: metric.direction", '"up"', "maximize, minimize"):
        assert part in said.err
    assert "Traceback" not in said.err + said.out
    assert not (session.path / "none").exists()


def assert_told(session: Session, said: Said, task: str, reason: str) -> None:
    """The reason is the failure's text and JUnit's message."""
    name = f"{task}-reference-1"
    text = said.part(f"test_beats_baseline[{name}]")
    assert text.startswith("task_error: ")
    assert " ".join(reason.split()) in " ".join(text.split())
    assert "pytest_mlab" not in text.replace("from pytest_mlab.evaluation", "")
    assert fits(text) == []
    case = session.case(name)
    assert case.status == "failure"
    assert case.text.startswith("task_error: task ")
    assert case.properties["mlab.outcome"] == "task_error"
