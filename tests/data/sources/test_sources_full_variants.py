"""The built-in tasks' variant ``full``, from raw data in the publishers' shape to public files and
answers."""

from __future__ import annotations

import csv
import hashlib
import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.prepare import prepare
from pytest_mlab.errors import DataUnavailable
from pytest_mlab.suites.catalog import Catalog
from tests.data.file_server import Cut, file_server
from tests.data.shapes import CIFAR_BATCHES, cifar10_archive, kagglehub_has
from tests.tasks.conftest import TASKS


@pytest.fixture
def kagglehub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of kagglehub's, and no account."""
    pytest.importorskip("kagglehub")
    for name in ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME", "KAGGLE_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path / "no-account"))
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path / "kagglehub"))
    return tmp_path / "kagglehub"


def built_in(name: str, tmp_path: Path) -> Task:
    return Catalog(tmp_path).suite("mlagentbench").task(name)


def table(file: Path) -> tuple[list[str], list[list[str]]]:
    with file.open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    return header, rows


@pytest.mark.parametrize(
    ("name", "slug", "answer"),
    [
        ("house-price", "home-data-for-ml-course", "SalePrice"),
        ("spaceship-titanic", "spaceship-titanic", "Transported"),
    ],
)
def test_kaggles_training_file_is_cut_and_the_answers_are_taken_out(
    tmp_path: Path, kagglehub_cache: Path, name: str, slug: str, answer: str
) -> None:
    task = built_in(name, tmp_path)
    mini = prepare(task, "mini", tmp_path / "cache")
    kaggle_file = (mini.public / "train.csv").read_text(encoding="utf-8")
    kagglehub_has(
        kagglehub_cache,
        slug,
        {"train.csv": kaggle_file, "test.csv": "", "sample_submission.csv": ""},
    )
    full = prepare(task, "full", tmp_path / "cache", consent=[slug])
    header, rows = table(mini.public / "train.csv")
    train_header, train = table(full.public / "train.csv")
    test_header, test = table(full.public / "test.csv")
    answers_header, answers = table(full.answers / "answers.csv")
    assert train_header == header
    assert test_header == [column for column in header if column != answer]
    assert answers_header == [header[0], answer]
    assert train == rows[: len(train)]
    column = header.index(answer)
    assert answers == [[row[0], row[column]] for row in rows[len(train) :]]
    assert [row[0] for row in test] == [row[0] for row in answers]
    assert 0.15 < len(test) / len(rows) < 0.25


def test_cifar10s_archive_becomes_batches_without_test_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numpy = pytest.importorskip("numpy")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def as_array(content: bytes) -> Any:
        return numpy.frombuffer(content, dtype=numpy.uint8).reshape(-1, 3072)

    archive = cifar10_archive(20, as_array)
    task = built_in("cifar10", tmp_path)
    (source,) = task.variants["full"].sources
    with file_server() as server:
        server.files["/~kriz/cifar-10-python.tar.gz"] = archive
        server.troubles = [Cut(len(archive) // 2)]
        address = f"{server.address}/~kriz/cifar-10-python.tar.gz"
        local = replace(source, ref=address, sha256=hashlib.sha256(archive).hexdigest())
        variant = replace(task.variants["full"], sources=(local,))
        full = prepare(
            replace(task, variants={**task.variants, "full": variant}), "full", tmp_path / "cache"
        )
        assert server.ranges == ["", f"bytes={len(archive) // 2}-"]
    for number, name in enumerate(CIFAR_BATCHES):
        batch = pickle.loads(
            (full.public / "data" / "cifar-10-batches-py" / name).read_bytes(), encoding="bytes"
        )
        content = hashlib.shake_128(name.encode()).digest(20 * 3072)
        assert (batch[b"data"] == as_array(content)).all()
        labels = [(number + row) % 10 for row in range(20)]
        assert batch[b"labels"] == ([-1] * 20 if name == "test_batch" else labels)
        assert not any(
            word in b"".join(batch[b"filenames"]) for word in (b"airplane", b"cat", b"truck")
        )
    _, answers = table(full.answers / "answers.csv")
    assert answers == [[str(row), str((5 + row) % 10)] for row in range(20)]


def test_clrs_asks_for_the_package_that_makes_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {"dm-clrs": ""}

    def version(name: str) -> str:
        if not versions[name]:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "version", version)
    task = built_in("clrs", tmp_path)
    with pytest.raises(DataUnavailable) as caught:
        prepare(task, "full", tmp_path / "cache")
    assert "made by the package dm-clrs==2.0.3 (2600 MB, licence: Apache-2.0" in str(caught.value)
    assert "it is not installed" in str(caught.value)
    assert caught.value.fix == "pip install dm-clrs==2.0.3 && mlab prepare clrs --data full"
    versions["dm-clrs"] = "1.9"
    with pytest.raises(DataUnavailable, match=r"and version 1\.9 is installed"):
        prepare(task, "full", tmp_path / "cache")


PINNED: Mapping[
    str, Callable[[Source], object]
] = {  # what fixes the content of a source, where its publisher has something that does
    "http": lambda source: len(source.sha256) == 64,
    "huggingface": lambda source: re.search(r"@[0-9a-f]{40}(:|$)", source.ref),
    "generator": lambda source: "==" in source.ref,
    "gcs": lambda source: re.search(r"/20\d{6}/", source.ref),
    "kaggle": lambda source: source.consent.startswith("https://www.kaggle.com/competitions/"),
    "coco-images": lambda source: source.consent.startswith("https://"),
}


@pytest.mark.parametrize("name", TASKS)
def test_real_data_are_pinned(name: str, tmp_path: Path) -> None:
    full = built_in(name, tmp_path).variants.get("full")
    for source in full.sources if full else ():
        if source.kind != "embedded":
            assert PINNED[source.kind](source), source.ref
            assert source.size_mb > 0
            assert source.licence
