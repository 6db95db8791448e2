"""What the starters do when they run: how much they predict at once, and on which rows they
look."""

from __future__ import annotations

import json
import os
import pickle
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pytest_mlab.data.prepare import Prepared
from tests.tasks.conftest import load

PreparedBy = Callable[[str], Prepared]

# Runs train.py and writes down, for every call of a network that the script defines: is it
# training, how many rows.
WATCH = """
import atexit, json, runpy, torch
calls = []

def note(module, args, output):
    if type(module).__module__ == "__main__":
        calls.append((module.training, len(args[0])))

torch.nn.modules.module.register_module_forward_hook(note)
atexit.register(lambda: open("calls.json", "w").write(json.dumps(calls)))
runpy.run_path("train.py", run_name="__main__")
"""


def workspace(name: str, prepared: PreparedBy, tmp_path: Path) -> Path:
    shutil.copytree(load(name).folder / "env", tmp_path, dirs_exist_ok=True)
    shutil.copytree(prepared(name).public, tmp_path, dirs_exist_ok=True)
    return tmp_path


def watched(place: Path) -> tuple[list[int], str]:
    """How many rows each prediction (no training step) of the starter was about, and what it
    printed."""
    pytest.importorskip("torch")
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WATCH], cwd=place, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    calls = json.loads((place / "calls.json").read_text())
    return [rows for training, rows in calls if not training], done.stdout


def test_cifar10_predicts_in_batches_every_image_and_looks_at_the_test_images_once(
    prepared: PreparedBy, tmp_path: Path
) -> None:
    """The published starter predicted 10,000 images one by one, printed the test accuracy of every
    epoch, and left out the last incomplete batch of what it evaluated."""
    place = workspace("cifar10", prepared, tmp_path)
    for file in sorted(
        (place / "data" / "cifar-10-batches-py").glob("data_batch_*")
    ):  # fewer images: it is quicker
        batch = pickle.loads(file.read_bytes(), encoding="bytes")
        file.unlink()
        file.write_bytes(
            pickle.dumps({b"data": batch[b"data"][:60], b"labels": batch[b"labels"][:60]})
        )
    rows, printed = watched(place)
    assert rows == [300] * 5 + [
        1000
    ]  # all training images after each epoch, the test images at the end
    assert "training accuracy" in printed
    assert "test" not in printed.lower()
    assert len((tmp_path / "submission.csv").read_text().splitlines()) == 1001


def test_ogbn_arxiv_predicts_the_papers_that_are_asked_for_and_no_others(
    prepared: PreparedBy, tmp_path: Path
) -> None:
    """The published starter sampled all neighbours of all papers for a network that does not look
    at neighbours."""
    rows, _ = watched(workspace("ogbn-arxiv", prepared, tmp_path))
    assert (
        sum(rows) == 4 * 573 + 1751
    )  # the validation papers after each epoch, the test papers at the end
    assert max(rows) > 500


FILLED = """
import numpy as np
calls = []
def predict(texts):
    calls.append(len(texts))
    return np.tile([0.4, 0.6], (len(texts), 1))
"""
BLOCK = "for each text and a column of probabilities for each of the labels 0 and 1.\n"


def test_imdb_hands_over_all_reviews_at_once(
    prepared: PreparedBy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The published skeleton called the model with one review after the other."""
    place = workspace("imdb", prepared, tmp_path)
    source = (place / "train.py").read_text()
    assert source.count(BLOCK) == 1
    (place / "train.py").write_text(source.replace(BLOCK, BLOCK + FILLED))
    monkeypatch.chdir(place)
    assert runpy.run_path("train.py")["calls"] == [1800, 200, 1000]
    assert len((place / "submission.csv").read_text().splitlines()) == 1001


def test_spaceship_titanic_validates_on_the_rows_right_after_the_training_rows(
    prepared: PreparedBy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The published starter lost a row between the two."""
    place = workspace("spaceship-titanic", prepared, tmp_path)
    mark = (
        "# Fill in: fit a model on train_X and train_y; set `model`, `train_accuracy` and"
        " `val_accuracy`.\n"
    )
    source = (place / "train.py").read_text()
    assert source.count(mark) == 1
    filled = (
        "model = LogisticRegression(max_iter=1000).fit(train_X, train_y)\ntrain_accuracy ="
        " val_accuracy = 0.0\n"
    )
    (place / "train.py").write_text(source.replace(mark, mark + filled))
    monkeypatch.chdir(place)
    found = runpy.run_path("train.py")
    for train, valid in ((found["train_X"], found["val_X"]), (found["train_y"], found["val_y"])):
        assert list(train.index) + list(valid.index) == list(range(len(found["X"])))
    assert np.array_equal(
        found["train_data"]["PassengerId"], found["train_data"]["PassengerId"].unique()
    )
