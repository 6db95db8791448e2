"""vectorization: only code that computes the same is timed, and only the evaluator's clock
counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.data.prepare import Prepared
from pytest_mlab.evaluation.main import judge, load_evaluator
from tests.tasks.conftest import load

FOLDER = load("vectorization").folder
STARTER = (FOLDER / "env" / "train.py").read_text()
REFERENCE = (FOLDER / "reference" / "train.py").read_text()

Submit = Callable[..., dict[str, Any]]


@pytest.fixture
def submit(tmp_path: Path, prepared: Callable[[str], Prepared]) -> Submit:
    """The verdict on a train.py, with few and small timed rounds."""
    answers = tmp_path / "answers"
    (answers / "starter").mkdir(parents=True)
    (answers / "starter" / "train.py").write_text(STARTER)
    (answers / "timing.json").write_text('{"rounds": 3, "images": 1}')
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    def run(code: str | None, **others: str) -> dict[str, Any]:
        if code is not None:
            (workspace / "train.py").write_text(code)
        for name, content in others.items():
            (workspace / f"{name}.py").write_text(content)
        return judge(FOLDER / "evaluator.py", workspace, answers)

    return run


def test_helpers_in_other_files_are_fine(submit: Submit) -> None:
    helper, body = REFERENCE.split("class Conv2DLayer")
    code = "from fast_parts import *\nclass Conv2DLayer" + body
    assert submit(code, fast_parts=helper, numpy="raise SystemExit('shadowed')")["score"] < 0.5


SPECIAL_CASE = (
    REFERENCE
    + """
general = Conv2DLayer.forward
def special(self, features):
    return general(self, features) if (self.stride, self.padding) == (2, 2) else np.zeros(1)
Conv2DLayer.forward = special
"""
)

WRONG = {
    "special case": (SPECIAL_CASE, "wrong output with kernel 3, stride 1, padding 0"),
    "padding ignored": (
        REFERENCE.replace("add_padding(features, self.padding)", "features"),
        "cannot reshape",
    ),
    "activation ignored": (
        REFERENCE.replace('if self.activation == "relu":', "if True:"),
        "values, the first at (",
    ),
    "biases ignored": (
        REFERENCE.replace(" + self.biases", ""),
        "wrong output with kernel 3, stride 2, padding 2",
    ),
    "single precision": (
        REFERENCE.replace("@ self", ".astype('f4') @ self").replace(
            "s.reshape(-1, num", "s.astype('f4').reshape(-1, num"
        ),
        "values, the first at (",
    ),
    "all zeros": (
        STARTER.replace("= convolution_step(", "= 0 * convolution_step("),
        "wrong output",
    ),
    "nothing": (
        STARTER.replace("return relu(output)", "return None"),
        "raised ValueError: Object arrays",
    ),
    "renamed class": (
        STARTER.replace("class Conv2DLayer", "class Layer"),
        "has no attribute 'Conv2DLayer'",
    ),
    "other constructor": (
        STARTER.replace(", stride, padding, activation):", ", stride):"),
        "raised TypeError",
    ),
    "no Python": ("def forward(:\n", "train.py is no valid Python: line 1: invalid syntax"),
    "NUL byte": ("x = 1\0", "train.py is no valid Python"),
    "torch": (
        "import torch.nn\n" + REFERENCE,
        "train.py imports torch; only numpy and the standard library",
    ),
    "runs at import": ("import os\nos._exit(0)\n", "cannot be loaded: it ended with exit status 0"),
    "empty": ("", "train.py is empty"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_code_is_invalid(submit: Submit, kind: str) -> None:
    code, reason = WRONG[kind]
    assert code not in (STARTER, REFERENCE)
    found = submit(code)
    assert (found["verdict"], found["score"]) == ("invalid_submission", None)
    assert reason in found["reason"]


def test_a_helper_may_not_import_more_than_train(submit: Submit) -> None:
    found = submit(
        "from helper import *\n" + REFERENCE, helper="from scipy.signal import convolve\n"
    )
    assert (
        found["reason"]
        == "helper.py imports scipy; only numpy and the standard library are allowed"
    )


def test_no_train_is_no_submission(submit: Submit) -> None:
    found = submit(None)
    assert found["verdict"] == "no_submission"
    assert "train.py is missing" in found["reason"]


def test_a_link_or_a_directory_is_invalid(submit: Submit, tmp_path: Path) -> None:
    place = tmp_path / "workspace" / "train.py"
    place.symlink_to(FOLDER / "reference" / "train.py")
    assert "is a symbolic link" in submit(None)["reason"]
    place.unlink()
    place.mkdir()
    assert "is a directory" in submit(None)["reason"]


def test_a_time_in_a_file_plays_no_part(submit: Submit, tmp_path: Path) -> None:
    (tmp_path / "workspace" / "submission.csv").write_text("0.0001\n")
    tricks = "import time\ntime.perf_counter = time.time = time.monotonic = lambda: 0.0\n"
    assert submit(tricks + STARTER)["score"] > 0.5


def test_every_round_is_new_and_half_of_them_unforeseen() -> None:
    import numpy as np

    evaluator = load_evaluator(FOLDER / "evaluator.py")
    rounds = [evaluator.timed_round(np.random.default_rng(7), n, 1) for n in (0, 0)]
    assert np.array_equal(rounds[0].arrays[0], rounds[1].arrays[0])  # the generator alone decides
    rng = np.random.default_rng(7)
    rounds = [evaluator.timed_round(rng, n, 1) for n in range(12)]
    assert len({r.arrays[0].tobytes() for r in rounds}) == 12
    published = [
        r for r in rounds if r.arrays[0].shape == (1, 64, 64, 3) and r.settings["stride"] == 2
    ]
    assert 6 <= len(published) < 12
    assert len({(r.settings["stride"], r.settings["padding"]) for r in rounds}) > 3


@pytest.mark.parametrize(("variant", "images"), [("mini", 4), ("full", 8)])
def test_answers_hold_the_original_code(
    data_py: Callable[[str], Any], tmp_path: Path, variant: str, images: int
) -> None:
    for name in ("raw", "public", "answers"):
        (tmp_path / name).mkdir()
    (tmp_path / "raw" / "train.py").write_text(STARTER)
    data_py("vectorization").prepare(
        tmp_path / "raw", tmp_path / "public", tmp_path / "answers", variant
    )
    assert (tmp_path / "answers" / "starter" / "train.py").read_text() == STARTER
    assert json.loads((tmp_path / "answers" / "timing.json").read_text())["images"] == images
    assert not list((tmp_path / "public").iterdir())
