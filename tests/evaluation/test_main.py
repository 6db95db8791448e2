"""The program that runs an evaluator: whatever the evaluator does, there is a verdict that names
it."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pytest_mlab.evaluation.main as main_module
from pytest_mlab.evaluation import record
from pytest_mlab.evaluation.main import as_plain_number, main

Judge = Callable[[str], dict[str, Any]]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """The verdict of an evaluator with the given body, run in this process."""

    def run(body: str) -> dict[str, Any]:
        evaluator = tmp_path / "evaluator.py"
        evaluator.write_text(
            "def evaluate(submission_dir, answers_dir):\n" + textwrap.indent(body, "    ") + "\n"
        )
        assert main(arguments(tmp_path, evaluator)) == 0
        found = json.loads((tmp_path / "result.json").read_text())
        assert set(found) == {"verdict", "score", "reason", "details"}
        assert isinstance(found, dict)
        return found

    return run


def arguments(folder: Path, evaluator: Path) -> list[str]:
    return [
        *("--evaluator", str(evaluator), "--submission", str(folder / "submission")),
        *("--answers", str(folder / "answers"), "--result", str(folder / "result.json")),
    ]


@pytest.mark.parametrize(
    ("value", "score"),
    [
        ("0.25", 0.25),
        ("3", 3.0),
        ("__import__('numpy').float32(0.5)", 0.5),
        ("__import__('numpy').int64(7)", 7.0),
        ("__import__('numpy').array(1.5)", 1.5),
    ],
)
def test_numbers_are_scores(judge: Judge, value: str, score: float) -> None:
    assert judge(f"return {value}") == {
        "verdict": "scored",
        "score": score,
        "reason": "",
        "details": {},
    }


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("None", "returned None (NoneType)"),
        ("float('nan')", "returned nan (float)"),
        ("float('-inf')", "returned -inf (float)"),
        ("'0.5'", "returned '0.5' (str)"),
        ("True", "returned True (bool)"),
        ("[0.5]", "returned [0.5] (list)"),
        ("10 ** 400", "(int); expected a finite number"),
        ("__import__('numpy').array([1.0])", "returned array([1.]) (ndarray)"),
        ("__import__('numpy').float64('nan')", "(float64); expected a finite number"),
        ("__import__('numpy').bool_(True)", "expected a finite number"),
    ],
)
def test_anything_else_is_the_tasks_fault(judge: Judge, value: str, found: str) -> None:
    verdict = judge(f"return {value}")
    assert (verdict["verdict"], verdict["score"]) == ("task_error", None)
    assert verdict["reason"].startswith("evaluator.py: evaluate() ")
    assert found in verdict["reason"]


@pytest.mark.parametrize(
    ("error", "verdict"), [("Invalid", "invalid_submission"), ("No", "no_submission")]
)
def test_refusals_keep_their_reason(judge: Judge, error: str, verdict: str) -> None:
    body = (
        f"from pytest_mlab.evaluation import {error}Submission as Refused\nraise Refused('row 3\\n"
        " is bad')"
    )
    assert judge(body) == {
        "verdict": verdict,
        "score": None,
        "reason": "row 3 is bad",
        "details": {},
    }


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("a = 1\nreturn a / 0", "evaluator.py:3: ZeroDivisionError: division by zero"),
        (
            "import json\nreturn json.loads('{')",
            "evaluator.py:3: json.decoder.JSONDecodeError: Expecting",
        ),
        ("raise SystemExit(3)", "evaluator.py:2: SystemExit: 3"),
        ("return evaluate(1, 2)", "evaluator.py:2: RecursionError: "),
        (
            "import nothing_like_this",
            "evaluator.py:2: ModuleNotFoundError: No module named 'nothing_like_this'",
        ),
        ("return (", "evaluator.py:2: SyntaxError: '(' was never closed"),
        ("return open(answers_dir / 'a.csv')", "evaluator.py:2: FileNotFoundError: "),
    ],
)
def test_a_broken_evaluator_is_named_with_its_line(judge: Judge, body: str, reason: str) -> None:
    verdict = judge(body)
    assert verdict["verdict"] == "task_error"
    assert verdict["reason"].startswith(reason)
    assert "\n" not in verdict["reason"]


def test_an_evaluator_without_the_function(tmp_path: Path) -> None:
    (tmp_path / "evaluator.py").write_text("x = 1\n")
    main(arguments(tmp_path, tmp_path / "evaluator.py"))
    verdict = json.loads((tmp_path / "result.json").read_text())
    assert verdict["verdict"] == "task_error"
    assert "has no attribute 'evaluate'" in verdict["reason"]


def test_a_missing_evaluator(tmp_path: Path) -> None:
    main(arguments(tmp_path, tmp_path / "evaluator.py"))
    verdict = json.loads((tmp_path / "result.json").read_text())
    assert verdict["verdict"] == "task_error"
    assert "No such file" in verdict["reason"]


def test_recorded_details_belong_to_one_evaluation(judge: Judge) -> None:
    body = (
        "from pytest_mlab.evaluation import record\nrecord(seconds=1.5, rounds=[1.0,"
        " 2.0])\nreturn 1.0"
    )
    assert judge(body)["details"] == {"seconds": 1.5, "rounds": [1.0, 2.0]}
    assert judge("return 1.0")["details"] == {}
    record(left="over")
    assert judge("return 1.0")["details"] == {}


def test_plain_numbers() -> None:
    import torch

    assert as_plain_number(torch.tensor(0.5)) == 0.5
    assert as_plain_number(torch.tensor([0.5])) is None


def test_runs_alone_in_isolated_mode(tmp_path: Path) -> None:
    """With ``-I``, from any folder, beside hostile files, and leaving nothing behind but the
    result."""
    workspace = tmp_path / "submission"
    workspace.mkdir()
    (workspace / "json.py").write_text("raise SystemExit('the workspace was imported')")
    (tmp_path / "helper.py").write_text("raise SystemExit('the evaluator\\'s folder was imported')")
    library = str(Path(main_module.__file__).parents[2])
    (tmp_path / "evaluator.py").write_text(
        "import json, sys\nfrom pathlib import Path\nimport pytest_mlab.evaluation\ndef"
        " evaluate(submission_dir, answers_dir):\n    heavy = {'numpy', 'pytest', 'pydantic',"
        " 'pytest_mlab.core', 'pytest_mlab.errors'} & set(sys.modules)\n    assert not heavy,"
        f" heavy\n    assert Path(pytest_mlab.evaluation.__file__).is_relative_to({library!r})\n   "
        " return 1\n"
    )
    program = [sys.executable, "-I", "-S", main_module.__file__]
    done = subprocess.run(
        [*program, *arguments(tmp_path, tmp_path / "evaluator.py")],
        cwd=workspace,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads((tmp_path / "result.json").read_text())["reason"] == ""
    assert {path.name for path in tmp_path.iterdir()} == {
        "submission",
        "helper.py",
        "evaluator.py",
        "result.json",
    }
