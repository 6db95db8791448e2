"""Toy tasks for the validator: one that is sound, and ways to spoil it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_mlab.core.sandbox_api import SandboxOptions
from pytest_mlab.suites.loader import load_task
from pytest_mlab.validation.bench import Bench, Settings, Subject
from pytest_mlab.validation.finding import Finding
from pytest_mlab.validation.registry import Check, chosen
from tests.suites.folders import edit
from tests.support.toy_suite import DATA, TRAIN, write_toy_task

STRICT = """\
from pytest_mlab.evaluation import read_answers, read_submission, text


def evaluate(submission_dir, answers_dir):
    file = submission_dir / "submission.csv"
    truth = read_answers(answers_dir / "answers.csv", key="id", columns={"label": text})
    given = read_submission(file, key="id", columns={"label": text}, ids=truth)
    return sum(given[key] == label for key, label in truth.items()) / len(truth)
"""
GUESS = TRAIN.replace('"no"', '"yes"')

_CACHE = tempfile.TemporaryDirectory(prefix="mlab-validation-")
"""Of all tasks here: data that are made by the same code are made once. Removed at exit."""


def sound_task(
    folder: Path, *, data: str = DATA, evaluator: str = STRICT, train: str = GUESS, **changes: Any
) -> Path:
    """The toy task, mended: a strict evaluator, and a starter that guesses the more frequent
    label."""
    write_toy_task(folder, evaluator=evaluator, train=train, **changes)
    edit(
        folder / "task.toml",
        "scores = [0.4, 0.4, 0.4]\nmean = 0.4",
        "scores = [0.6, 0.6, 0.6]\nmean = 0.6",
    )
    (folder / "data.py").write_text(data, encoding="utf-8")
    return folder


def subject(folder: Path) -> Subject:
    return Subject(folder.name, "toy", partial(load_task, folder, "toy"))


def settings(*, sandbox: str = "local", **changes: Any) -> Settings:
    made = Settings(Path(_CACHE.name), sandbox=SandboxOptions(sandbox))
    return replace(made, **changes)


def bench(folder: Path, **changes: Any) -> Bench:
    """A bench for the task in ``folder``, in the sandbox ``local`` unless another is named."""
    return Bench(subject(folder), settings(**changes))


def borrowing(sound: Bench, folder: Path) -> Bench:
    """A bench for the task in ``folder``, which differs from the sound one in neither data nor
    reference: it has these from there, the evaluation of the reference included."""
    made = bench(folder)
    vars(made).update(prepared=sound.prepared, reference=sound.reference)
    return made


def the(name: str) -> Check:
    return chosen([name])[0]


def finding(name: str, folder: Path, **changes: Any) -> Finding:
    """What one check says about the task in ``folder``."""
    with bench(folder, **changes) as made:
        return the(name).run(made)
