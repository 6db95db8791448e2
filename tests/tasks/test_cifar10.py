"""cifar10: the metric, the layout, and what the public files must not tell."""

from __future__ import annotations

import csv
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_mlab.data.prepare import Prepared

BATCHES = [f"data_batch_{n}" for n in range(1, 6)]
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
FOLDER = "cifar-10-batches-py"


def batch(public: Path, name: str) -> dict[bytes, Any]:
    content = pickle.loads((public / "data" / FOLDER / name).read_bytes(), encoding="bytes")
    assert isinstance(content, dict)
    return content


def labels_of(answers: Path) -> list[int]:
    with (answers / "answers.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert [row[0] for row in rows] == [str(n) for n in range(len(rows))]
    return [int(row[1]) for row in rows]


def test_layout_and_hidden_labels(prepared: Callable[[str], Prepared]) -> None:
    public, answers = prepared("cifar10").public, prepared("cifar10").answers
    for name in BATCHES:
        train = batch(public, name)
        assert train[b"data"].shape == (1000, 3072)
        assert train[b"data"].dtype == np.uint8
        assert set(train[b"labels"]) == set(range(10))
    test = batch(public, "test_batch")
    assert test[b"data"].shape == (1000, 3072)
    assert test[b"labels"] == [-1] * 1000
    assert len(batch(public, "batches.meta")[b"label_names"]) == 10
    labels = labels_of(answers)
    assert [labels.count(c) for c in range(10)] == [100] * 10


def test_images_are_padded_grey_pictures(prepared: Callable[[str], Prepared]) -> None:
    images = batch(prepared("cifar10").public, "data_batch_1")[b"data"].reshape(-1, 3, 32, 32)
    assert np.array_equal(images[:, 0], images[:, 1])
    assert np.array_equal(images[:, 0], images[:, 2])
    assert not images[:, :, :2].any()
    assert not images[:, :, :, 30:].any()
    assert images[:, 0, 2:30, 2:30].mean() > 50


def test_the_score_is_the_accuracy(
    prepared: Callable[[str], Prepared],
    verdict: Callable[[str, Path], dict[str, Any]],
    tmp_path: Path,
) -> None:
    import pandas as pd
    from sklearn.metrics import accuracy_score

    labels = labels_of(prepared("cifar10").answers)
    logits = np.random.default_rng(5).standard_normal((len(labels), 10))
    logits[np.arange(len(labels)), labels] += 1.0
    pd.DataFrame(logits).to_csv(tmp_path / "submission.csv")
    expected = accuracy_score(labels, logits.argmax(axis=1))
    assert 0.2 < expected < 0.8
    assert verdict("cifar10", tmp_path)["score"] == pytest.approx(expected, rel=1e-12)


def test_of_equal_scores_the_first_counts(
    prepared: Callable[[str], Prepared],
    verdict: Callable[[str, Path], dict[str, Any]],
    tmp_path: Path,
) -> None:
    import pandas as pd

    count = len(labels_of(prepared("cifar10").answers))
    pd.DataFrame(np.full((count, 10), 0.1)).to_csv(tmp_path / "submission.csv")
    assert verdict("cifar10", tmp_path)["score"] == 0.1


def archive(folder: Path) -> dict[str, list[int]]:
    """Files as in CIFAR-10's archive, small: protocol 2, byte keys, the class in every file
    name."""
    rng = np.random.default_rng(0)
    place = folder / FOLDER
    place.mkdir(parents=True)
    labels = {}
    for number, name in enumerate([*BATCHES, "test_batch"]):
        labels[name] = [(n * 7 + number) % 10 for n in range(20)]
        content = {
            b"batch_label": (
                b"testing batch 1 of 1"
                if name == "test_batch"
                else f"training batch {number + 1} of 5".encode()
            ),
            b"labels": labels[name],
            b"data": rng.integers(0, 256, (20, 3072), dtype=np.uint8),
            b"filenames": [
                f"{CLASSES[c]}_s_{n:06d}.png".encode() for n, c in enumerate(labels[name])
            ],
        }
        (place / name).write_bytes(pickle.dumps(content, protocol=2))
    meta = {
        b"num_cases_per_batch": 20,
        b"label_names": [c.encode() for c in CLASSES],
        b"num_vis": 3072,
    }
    (place / "batches.meta").write_bytes(pickle.dumps(meta, protocol=2))
    (place / "readme.html").write_text(
        "<a href='https://www.cs.toronto.edu/~kriz/cifar.html'>CIFAR-10</a>"
    )
    return labels


def test_full_hides_labels_and_telling_file_names(
    full: Callable[[str, Path], tuple[Path, Path]], tmp_path: Path
) -> None:
    labels = archive(tmp_path / "raw")
    public, answers = full("cifar10", tmp_path / "raw")

    assert labels_of(answers) == labels["test_batch"]
    assert batch(public, "test_batch")[b"labels"] == [-1] * 20
    for name in BATCHES:
        assert batch(public, name)[b"labels"] == labels[name]
    original = pickle.loads(
        (tmp_path / "raw" / FOLDER / "test_batch").read_bytes(), encoding="bytes"
    )
    assert np.array_equal(batch(public, "test_batch")[b"data"], original[b"data"])
    assert batch(public, "batches.meta")[b"label_names"] == [c.encode() for c in CLASSES]
    content = (public / "data" / FOLDER / "test_batch").read_bytes()
    assert not [c for c in CLASSES if f"{c}_s_".encode() in content]
    assert sorted(path.name for path in (public / "data" / FOLDER).iterdir()) == sorted(
        [*BATCHES, "test_batch", "batches.meta"]
    )


def test_full_refuses_batches_of_another_shape(
    full: Callable[[str, Path], tuple[Path, Path]], tmp_path: Path
) -> None:
    archive(tmp_path / "raw")
    bad = {b"data": np.zeros((20, 784), dtype=np.uint8), b"labels": [0] * 20}
    (tmp_path / "raw" / FOLDER / "data_batch_3").write_bytes(pickle.dumps(bad, protocol=2))
    with pytest.raises(
        ValueError, match=r"data_batch_3: 20 labels for images of shape \(20, 784\)"
    ):
        full("cifar10", tmp_path / "raw")
