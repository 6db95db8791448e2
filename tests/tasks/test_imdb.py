"""imdb: the metric, hidden labels in no telling order, the generated reviews, the hub's files."""

from __future__ import annotations

import csv
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pytest_mlab.core.scoring import judge as judge_score
from pytest_mlab.core.task import Task
from pytest_mlab.core.trial import Outcome
from pytest_mlab.data.prepare import Prepared, prepare
from tests.data.shapes import hub_cache_has
from tests.tasks.conftest import load

MODEL = "distilbert-base-uncased"
MODEL_FILES = [
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
]

PreparedBy = Callable[[str], Prepared]
Verdict = Callable[[str, Path], dict[str, Any]]


def read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def labels_of(prepared: Prepared) -> list[int]:
    return [int(row[1]) for row in read(prepared.answers / "answers.csv")[1:]]


def submit(folder: Path, probabilities: Any) -> Path:
    lines = [
        f"{idx},{first!r},{second!r}\n"
        for idx, (first, second) in enumerate(probabilities.tolist())
    ]
    random.Random(3).shuffle(lines)
    (folder / "submission.csv").write_text("idx,0,1\n" + "".join(lines))
    return folder


def test_the_test_file_has_no_labels(prepared: PreparedBy) -> None:
    public = prepared("imdb").public
    train, test = read(public / "imdb" / "train.csv"), read(public / "imdb" / "test.csv")
    assert (train[0], test[0]) == (["idx", "text", "label"], ["idx", "text"])
    assert (len(train), len(test)) == (2001, 1001)
    assert [row[0] for row in test[1:]] == [str(n) for n in range(1000)]
    assert sorted(prepared("imdb").files) == ["imdb/test.csv", "imdb/train.csv"]


def test_the_order_of_the_reviews_does_not_tell_their_labels(prepared: PreparedBy) -> None:
    """The published test split has 12,500 negative reviews first: saying 0, then 1, is right
    everywhere."""
    train = [int(row[2]) for row in read(prepared("imdb").public / "imdb" / "train.csv")[1:]]
    for labels in (train, labels_of(prepared("imdb"))):
        assert sum(labels) * 2 == len(labels)
        assert max(len(list(run)) for _, run in groupby(labels)) < 20
        sorted_guess = [int(n >= len(labels) / 2) for n in range(len(labels))]
        assert 0.4 < np.mean(np.array(labels) == sorted_guess) < 0.6


def test_the_score_is_the_accuracy(prepared: PreparedBy, verdict: Verdict, tmp_path: Path) -> None:
    from sklearn.metrics import accuracy_score

    labels = labels_of(prepared("imdb"))
    logits = np.random.default_rng(5).standard_normal((len(labels), 2))
    logits[np.arange(len(labels)), labels] += 1.0
    expected = accuracy_score(labels, logits.argmax(axis=1))
    assert 0.6 < expected < 0.9
    assert verdict("imdb", submit(tmp_path, logits))["score"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("probabilities", [(0.5, 0.5), (1.0, 0.0), (0.0, 1.0)])
def test_a_constant_is_right_half_of_the_time_and_no_success(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path, probabilities: tuple[float, float]
) -> None:
    score = verdict("imdb", submit(tmp_path, np.tile(probabilities, (1000, 1))))["score"]
    assert score == 0.5
    assert judge_score(load("imdb"), "mini", score).outcome is Outcome.BELOW_THRESHOLD


def test_of_equal_probabilities_the_first_counts(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    labels = np.array(labels_of(prepared("imdb")))
    probabilities = np.stack([1.0 - labels, labels], axis=1)
    probabilities[labels == 0] = 0.5
    assert verdict("imdb", submit(tmp_path, probabilities))["score"] == 1.0


def test_no_review_occurs_twice_and_the_label_is_what_most_opinions_say(
    prepared: PreparedBy, data_py: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    public = prepared("imdb").public
    texts = [
        row[1] for name in ("train", "test") for row in read(public / "imdb" / f"{name}.csv")[1:]
    ]
    assert len(set(texts)) == 3000
    assert 60 < np.mean([len(text.split()) for text in texts]) < 150
    assert np.mean(["<br /><br />" in text for text in texts]) > 0.5

    module = data_py("imdb")
    monkeypatch.setattr(module, "opinion", lambda rng, good: "yes" if good else "no")
    monkeypatch.setattr(module, "remark", lambda rng: "well")
    rng = random.Random(7)
    fits = []
    for _ in range(2000):
        text, label = module.review(rng)
        words = re.findall(r"yes|no", text)
        assert 3 <= len(words) <= 11
        fits.append((words.count("yes") > words.count("no")) == bool(label))
    assert 0.96 < np.mean(fits) < 0.995


def test_nothing_is_downloaded_while_an_agent_works(prepared: PreparedBy, tmp_path: Path) -> None:
    shutil.copytree(prepared("imdb").public, tmp_path, dirs_exist_ok=True)
    shutil.copy(load("imdb").folder / "baseline" / "train.py", tmp_path)
    offline = "import runpy, socket\nsocket.socket.connect = None\nrunpy.run_path('train.py')\n"
    done = subprocess.run(
        [sys.executable, "-c", offline], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len(read(tmp_path / "submission.csv")) == 1001


# --- full ---


@pytest.fixture
def full_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """The task, and small files of the true layout for all its sources in the hub's cache; there is
    no network."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    task = load("imdb")
    contents: dict[str, dict[str, bytes]] = {}
    for source in task.variants["full"].sources:
        repository, _, paths = source.ref.partition(":")
        for path in paths.split(","):
            split = "train" if "train" in path else "test"
            # As there: every review with line breaks, the negative ones first.
            texts = [f'{split} "{n}"<br /><br />good, or bad?' for n in range(40)]
            table = pa.table({"text": texts, "label": pa.array([0] * 20 + [1] * 20, pa.int64())})
            place = tmp_path / "made.parquet"
            parquet.write_table(table, place)
            content = place.read_bytes() if path.endswith(".parquet") else f"{path}\n".encode()
            contents.setdefault(repository, {})[path] = content
    for repository, files in contents.items():
        kind, _, rest = repository.partition("/")
        name, _, revision = rest.partition("@")
        hub_cache_has(tmp_path / "hub", name, revision, files, kind)
    sources = tuple(replace(source, sha256="") for source in task.variants["full"].sources)
    variant = replace(task.variants["full"], sources=sources)
    return replace(task, variants={**task.variants, "full": variant})


def test_full_hides_the_labels_shuffles_and_brings_the_model(
    full_task: Task, tmp_path: Path
) -> None:
    full = prepare(full_task, "full", tmp_path / "cache")
    train, test = (read(full.public / "imdb" / f"{name}.csv") for name in ("train", "test"))
    answers = read(full.answers / "answers.csv")
    assert (train[0], test[0], answers[0]) == (
        ["idx", "text", "label"],
        ["idx", "text"],
        ["idx", "label"],
    )
    for name, rows in (
        ("train", train[1:]),
        ("test", [[*row, answers[n][1]] for n, row in enumerate(test[1:], 1)]),
    ):
        assert [row[0] for row in rows] == [str(n) for n in range(40)]
        numbers = [int(row[1].split('"')[1]) for row in rows]
        assert all(
            row[1] == f'{name} "{n}"<br /><br />good, or bad?'
            for row, n in zip(rows, numbers, strict=True)
        )
        assert [int(row[2]) for row in rows] == [int(n >= 20) for n in numbers]
        assert sorted(numbers) == list(range(40)) != numbers
    assert {path.name for path in (full.public / "imdb" / MODEL).iterdir()} == set(MODEL_FILES)
    assert (full.public / "imdb" / MODEL / "config.json").read_text() == "config.json\n"


def test_full_pins_revisions_and_checksums() -> None:
    for source in load("imdb").variants["full"].sources:
        assert source.kind == "huggingface"
        assert re.search(r"@[0-9a-f]{40}:", source.ref)
        assert bool(source.sha256) == source.ref.endswith(".parquet")


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            {"review": ["a"], "label": [1]},
            "expected the columns text and label; found review, label",
        ),
        ({"text": ["a", "b"], "label": [-1, -1]}, r"expected the labels 0 and 1; found \[-1\]"),
    ],
)
def test_full_refuses_other_files(
    full: Callable[[str, Path], tuple[Path, Path]],
    tmp_path: Path,
    columns: dict[str, list[Any]],
    reason: str,
) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "raw" / "plain_text").mkdir(parents=True)
    parquet.write_table(
        pa.table(columns), tmp_path / "raw" / "plain_text" / "train-00000-of-00001.parquet"
    )
    with pytest.raises(ValueError, match=rf"train-00000-of-00001\.parquet: {reason}"):
        full("imdb", tmp_path / "raw")
