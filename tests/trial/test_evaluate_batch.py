"""A batch tells what evaluations say about submissions; the others are evaluated again alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_mlab.core.task import Submission
from pytest_mlab.sandboxes import make
from pytest_mlab.suites.loader import load_task
from pytest_mlab.trial.evaluate import Evaluated
from pytest_mlab.trial.evaluate_batch import evaluate_batch
from pytest_mlab.validation.bench import Bench
from tests.validation.tasks import settings, sound_task, subject

EVALUATOR = """\
import os
import time

from pytest_mlab.evaluation import InvalidSubmission, record

EARLIER = []


def evaluate(submission_dir, answers_dir):
    said = (submission_dir / "said").read_text()
    record(own=said, earlier=len(EARLIER))
    EARLIER.append(said)
    if said == "raises":
        raise RuntimeError("not the submission's fault")
    if said == "hangs":
        time.sleep(60)
    if said == "leaves":
        os._exit(0)
    if said == "refused":
        raise InvalidSubmission("no good")
    return float(said)
"""
SAID = ("0.25", "0.75", "hangs", "leaves", "raises", "refused")
SECONDS = 2.0


class Watched(Bench):
    """A bench that notes what is evaluated alone."""

    alone: list[str]

    def evaluate(
        self, submission: Path, answers: Path | None = None, *, timeout: float = 60.0
    ) -> Evaluated:
        self.alone.append(submission.name)
        return super().evaluate(submission, answers, timeout=timeout)


@pytest.fixture
def submissions(tmp_path: Path) -> Path:
    """Folders, each of which says what its evaluation does."""
    for said in SAID:
        folder = tmp_path / "submissions" / said
        folder.mkdir(parents=True)
        (folder / "said").write_text(said)
    return tmp_path / "submissions"


def test_what_a_batch_does_not_tell_is_evaluated_again_alone(
    tmp_path: Path, submissions: Path
) -> None:
    task = sound_task(tmp_path / "guess", evaluator=EVALUATOR)
    bench = Watched(subject(task), settings())
    bench.alone = []
    with bench:
        found = bench.evaluate_each(submissions, timeout=SECONDS)
        left = [path.name for path in bench.scratch.glob("evaluation-*")]
    assert sorted(bench.alone) == ["hangs", "leaves", "raises"]
    assert {name: (result.word, result.score) for name, result in found.items()} == {
        "0.25": ("scored", 0.25),
        "0.75": ("scored", 0.75),
        "hangs": ("task_error", None),
        "leaves": ("task_error", None),
        "raises": ("task_error", None),
        "refused": ("invalid_submission", None),
    }
    assert found["refused"].reason == "no good"
    assert "evaluator.py:14: RuntimeError: not the submission's fault" in found["raises"].reason
    assert "did not end within 2 s" in found["hangs"].reason
    assert "without a result" in found["leaves"].reason
    # No evaluation sees an earlier one's variables or details.
    for name in ("0.25", "0.75", "raises", "refused"):
        assert found[name].details == {"own": name, "earlier": 0}
    assert left == []


def test_code_that_the_evaluator_runs_shares_no_sandbox(tmp_path: Path, submissions: Path) -> None:
    task = load_task(sound_task(tmp_path / "guess", evaluator=EVALUATOR), "toy")
    made = evaluate_batch(
        replace(task, submission=Submission("script", "said")),
        make("local"),
        submissions=submissions,
        answers=tmp_path,
        label="test-batch",
        scratch=tmp_path,
        timeout=SECONDS,
    )
    assert made == {}
