"""Submissions that cannot be scored: the reason stands in the failure's text, in JUnit and in
``mlab show``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.session import Said, Session, fits
from tests.support.toy_suite import write_toy_task

# As the built-in tasks do it: by the evaluation library.
EVALUATOR = """\
from pytest_mlab.evaluation import read_answers, read_submission, text


def evaluate(submission_dir, answers_dir):
    truth = read_answers(answers_dir / "answers.csv", key="id", columns={"label": text})
    columns = {"label": label}
    file = submission_dir / "submission.csv"
    given = read_submission(file, key="id", columns=columns, ids=truth, max_mb=1)
    return sum(given[one]["label"] == row["label"] for one, row in truth.items()) / len(truth)


def label(value):
    if value not in ("yes", "no"):
        raise ValueError(value)
    return value


label.expected = "yes or no"
"""

AGENT = """\
from pytest_mlab import Action

WRITE = '''
ids = [f"b{{i}}" for i in range(100)]
rows = [f"{{one}},no" for one in ids]
head = "id,label"

def write(rows=rows, head=head):
    with open("submission.csv", "w") as file:
        print(head, *rows, sep="\\\\n", file=file)

'''


class Agent:
    needs_model = False

    def run(self, env):
        seen = env.execute(Action("Python REPL", {{"command": WRITE + {code!r}}}))
        assert "Traceback" not in seen.text and "Error" not in seen.text, seen.text
        env.execute(Action("Final Answer", {{"final_answer": "done"}}))
"""

INVALID = {
    "empty": ("write([], '')", "submission.csv is empty"),
    "headeronly": ("write([])", "submission.csv"),
    "wrongcolumns": ("write(head='id,answer')", "answer"),
    "duplicates": ("write([*rows, 'b7,no'])", "b7"),
    "missingids": ("write(rows[2:])", "b0"),
    "extraids": ("write([*rows, 'zz,no'])", "zz"),
    "nan": ("write([*rows[:-1], 'b99,nan'])", "nan"),
    "strings": ("write([*rows[:-1], 'b99,maybe'])", "maybe"),
    "gigabyte": ("import os; write(); os.truncate('submission.csv', 10**9)", "1000.0 MB"),
    "symlink": (
        "import os; write(); os.rename('submission.csv', 'x'); os.symlink('x', 'submission.csv')",
        "symbolic",
    ),
    "directory": ("import os; os.mkdir('submission.csv')", "a directory"),
    "pipe": ("import os; os.mkfifo('submission.csv')", "pipe"),
    "binary": (
        "import os; open('submission.csv', 'wb').write(bytes(range(256)) * 9)",
        "submission.csv",
    ),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    found = Session(tmp_path_factory.mktemp("project"))
    write_toy_task(found.path / "task_suites" / "toy" / "guess", evaluator=EVALUATOR)
    toml = found.path / "task_suites" / "toy" / "guess" / "task.toml"
    # a file with holes needs no disk, but it must not be longer than that
    toml.write_text(toml.read_text().replace("disk_mb = 64", "disk_mb = 2000"))
    for name, (code, _) in INVALID.items():
        found.agent(name, AGENT.format(code=code))
    found.agent("nothing", AGENT.format(code="pass"))
    found.agent("fine", AGENT.format(code="write()"))
    return found


@pytest.fixture(scope="module")
def said(session: Session) -> Said:
    agents = [f"--mlab-agent={name}" for name in (*INVALID, "nothing", "fine")]
    return session.pytest("-n", "2", *agents)


@pytest.mark.parametrize("kind", INVALID)
def test_invalid_submission(session: Session, said: Said, kind: str) -> None:
    assert said.ret == pytest.ExitCode.TESTS_FAILED
    result = session.result(f"guess/{kind}/1")
    assert result["outcome"] == "invalid_submission", result["reason"]
    assert "submission.csv" in result["reason"]
    assert INVALID[kind][1] in result["reason"]
    assert_told(session, said, f"guess-{kind}-1", f"invalid_submission: {result['reason']}")


def test_no_submission(session: Session, said: Said) -> None:
    result = session.result("guess/nothing/1")
    assert result["outcome"] == "no_submission"
    assert_told(
        session,
        said,
        "guess-nothing-1",
        "no_submission: submission.csv is missing: write it into the workspace",
    )


def test_a_good_submission_among_them_is_scored(session: Session, said: Said) -> None:
    assert said.ret == pytest.ExitCode.TESTS_FAILED
    assert session.result("guess/fine/1")["score"] == 0.4


@pytest.mark.parametrize("kind", ["directory", "nothing"])
def test_shown(session: Session, said: Said, kind: str) -> None:
    assert said.ret == pytest.ExitCode.TESTS_FAILED
    shown = session.mlab("show", session.name, f"guess-{kind}-1")
    assert session.result(f"guess/{kind}/1")["reason"] in " ".join(shown.out.split())
    assert fits(shown.out) == []


def test_nothing_of_them_stays(session: Session, said: Said) -> None:
    assert said.ret == pytest.ExitCode.TESTS_FAILED
    assert not [path for path in session.path.rglob("*") if path.is_fifo()]
    assert disk_used(session.path) < 20e6


def disk_used(folder: Path) -> int:
    """Bytes of all files as they are on disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def assert_told(session: Session, said: Said, trial: str, words: str) -> None:
    """The words are the failure's first line, JUnit's message and property."""
    text = said.part(f"test_beats_baseline[{trial}]")
    assert words in " ".join(text.split())
    assert "Traceback" not in text
    assert fits(text) == []
    case = session.case(trial)
    assert case.status == "failure"
    assert case.text.startswith(words)
    assert f"{case.properties['mlab.outcome']}: {case.properties['mlab.reason']}" == words
