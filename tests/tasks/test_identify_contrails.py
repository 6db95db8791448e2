"""identify-contrails: the global Dice coefficient, run-length encoding, hidden masks, the bucket's
files."""

from __future__ import annotations

import csv
import json
import runpy
import tarfile
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pytest_mlab.core.scoring import judge as judge_score
from pytest_mlab.core.trial import Outcome
from pytest_mlab.data.prepare import Prepared, prepare
from pytest_mlab.data.sources import download
from pytest_mlab.evaluation.main import judge
from tests.data.file_server import Cut, file_server
from tests.data.shapes import bucket_serves
from tests.tasks.conftest import load

NAME = "identify-contrails"
BANDS = [f"{number:02d}" for number in range(8, 17)]

PreparedBy = Callable[[str], Prepared]
Verdict = Callable[[str, Path], dict[str, Any]]
Mask = npt.NDArray[np.int64]


def rows_of(path: Path) -> dict[str, str]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["record_id", "encoded_pixels"]
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1] for row in rows}


def submit(folder: Path, masks: dict[str, str]) -> Path:
    with (folder / "submission.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["record_id", "encoded_pixels"], *masks.items()])
    return folder


def decoded(text: str, shape: tuple[int, int]) -> Mask:
    """Written from the task's text alone: pixel 2 lies below pixel 1."""
    mask = np.zeros(shape, dtype=np.int64)
    numbers = [] if text == "-" else list(map(int, text.split()))
    for start, length in zip(numbers[::2], numbers[1::2], strict=True):
        for pixel in range(start - 1, start - 1 + length):
            mask[pixel % shape[0], pixel // shape[0]] = 1
    return mask


@pytest.fixture(scope="module")
def encode() -> dict[str, Any]:
    """The starter's encode.py."""
    return runpy.run_path(str(load(NAME).folder / "env" / "encode.py"))


# --- metric ---


def test_the_score_is_the_f1_of_all_pixels_together(
    prepared: PreparedBy, verdict: Verdict, encode: dict[str, Any], tmp_path: Path
) -> None:
    from sklearn.metrics import f1_score

    answers = rows_of(prepared(NAME).answers / "answers.csv")
    rng = np.random.default_rng(2)
    truth = {record: decoded(text, (64, 64)) for record, text in answers.items()}
    guess = {
        record: np.where(rng.random((64, 64)) < 0.3, 1 - mask, mask)
        for record, mask in truth.items()
    }
    expected = f1_score(
        np.concatenate([mask.ravel() for mask in truth.values()]),
        np.concatenate([mask.ravel() for mask in guess.values()]),
    )
    assert 0.05 < expected < 0.5
    found = verdict(
        NAME,
        submit(tmp_path, {record: encode["rle_encode"](mask) for record, mask in guess.items()}),
    )
    assert found["score"] == pytest.approx(expected, rel=1e-12)


def by_hand(
    folder: Path, answers: dict[str, str], guess: dict[str, str], rows: int = 3, columns: int = 4
) -> Any:
    hidden = folder / "answers"
    hidden.mkdir(exist_ok=True)
    (hidden / "shape.json").write_text(json.dumps({"rows": rows, "columns": columns}))
    submit(hidden, answers)
    (hidden / "submission.csv").replace(hidden / "answers.csv")
    return judge(load(NAME).folder / "evaluator.py", submit(folder, guess), hidden)


def test_dice_of_cases_by_hand(tmp_path: Path) -> None:
    answers = {"a": "2 3 7 1", "b": "-", "c": "12 1"}
    assert by_hand(tmp_path, answers, answers)["score"] == 1.0
    # a: pixels 3, 4, 5, 7 against 2, 3, 4, 7: three in common; b: two false ones; c: missed
    assert by_hand(tmp_path, answers, {"a": "3 3 7 1", "b": "1 2", "c": "-"})["score"] == 2 * 3 / (
        4 + 6 + 1
    )
    assert by_hand(tmp_path, answers, {"a": "1 12", "b": "1 12", "c": "1 12"})["score"] == 2 * 5 / (
        36 + 5
    )


def test_fault_mean_of_images_an_empty_submission_scores_zero(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    """The published evaluator averaged over images and gave 1 for each image rightly left empty:
    0.35 here."""
    sample = rows_of(prepared(NAME).public / "sample_submission.csv")
    assert set(sample.values()) == {"-"}
    assert verdict(NAME, submit(tmp_path, sample))["score"] == 0.0
    answers = rows_of(prepared(NAME).answers / "answers.csv")
    assert 0.2 < sum(text == "-" for text in answers.values()) / len(answers) < 0.5


def test_fault_ids_of_the_sample_are_those_of_the_test_records(prepared: PreparedBy) -> None:
    """The published sample named two records that were not in the test set."""
    sample = rows_of(prepared(NAME).public / "sample_submission.csv")
    assert sorted(sample) == sorted(
        path.name for path in (prepared(NAME).public / "test").iterdir()
    )
    assert sorted(sample) == sorted(rows_of(prepared(NAME).answers / "answers.csv"))


@pytest.mark.parametrize("text", ["", " ", "NaN", "nan", "None", "[]"])
def test_fault_empty_cells_are_a_clean_refusal(tmp_path: Path, text: str) -> None:
    """The published evaluator raised AttributeError for an empty cell, which pandas reads as
    NaN."""
    found = by_hand(tmp_path, {"a": "2 3", "b": "-"}, {"a": "2 3", "b": text})
    assert found["verdict"] == "invalid_submission"
    assert "expected '-' or pairs 'start length' in ascending order" in found["reason"]


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "1 2 3",
        "0 2",
        "1 0",
        "-1 2",
        "1 -2",
        "5 2 1 1",
        "1 3 3 1",
        "12 2",
        "13 1",
        "1 1e1",
        "1.0 2",
        "1,2",
        "1  2",
        "1 2 -",
        "9" * 13 + " 1",
        "9" * 5000 + " 1",
        "\u0661 1",
    ],
)
def test_runs_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    found = by_hand(tmp_path, {"a": "2 3"}, {"a": text})
    assert found["verdict"] == "invalid_submission"


@pytest.mark.parametrize("text", ["1 12", "12 1", "1 1 2 1", " 1 2 "])
def test_runs_at_the_edges_are_accepted(tmp_path: Path, text: str) -> None:
    assert by_hand(tmp_path, {"a": "1 12"}, {"a": text})["verdict"] == "scored"


def test_a_mask_of_very_many_runs_is_accepted(tmp_path: Path) -> None:
    """Longer than what the csv module takes for one field by default."""
    text = " ".join(f"{start} 1" for start in range(1, 65536, 2))
    assert len(text) > csv.field_size_limit() or csv.field_size_limit() > 131072
    assert by_hand(tmp_path, {"a": text}, {"a": text}, rows=256, columns=256)["score"] == 1.0


def test_encode_and_decode(encode: dict[str, Any], data_py: Callable[[str], ModuleType]) -> None:
    rng = np.random.default_rng(0)
    for share in (0.0, 0.02, 0.5, 1.0):
        mask = (rng.random((7, 5)) < share).astype(np.int64)
        text = encode["rle_encode"](mask)
        assert text == data_py(NAME).encode(mask)
        assert np.array_equal(decoded(text, (7, 5)), mask)
        assert np.array_equal(encode["rle_decode"](text, (7, 5)), mask)
    assert encode["rle_encode"](np.array([[0, 1], [1, 1]])) == "2 3"


# --- degenerate predictors ---


def test_fault_a_starter_that_is_noise_no_constant_mask_is_a_success(
    prepared: PreparedBy, verdict: Verdict, encode: dict[str, Any], tmp_path: Path
) -> None:
    """Without a seed the starter marks nothing, everything or a part, by its random weights."""
    task = load(NAME)
    baseline = task.variants["mini"].baseline
    assert baseline is not None
    records = rows_of(prepared(NAME).public / "sample_submission.csv")
    full_mask = verdict(NAME, submit(tmp_path, dict.fromkeys(records, "1 4096")))["score"]
    assert baseline.mean == pytest.approx(full_mask)
    masks = [
        np.load(path / "human_pixel_masks.npy")[..., 0]
        for path in sorted((prepared(NAME).public / "train").iterdir())
    ]
    frequent = np.mean(masks, axis=0)
    scores = [full_mask]
    for share in (0.0, 0.5, 0.75, 0.9, 0.97):
        mask = frequent >= np.quantile(frequent, share)
        scores.append(
            verdict(NAME, submit(tmp_path, dict.fromkeys(records, encode["rle_encode"](mask))))[
                "score"
            ]
        )
    assert max(scores) > 1.1 * baseline.mean  # which is why success takes more than that
    for score in scores:
        assert judge_score(task, "mini", score).outcome is Outcome.BELOW_THRESHOLD


def test_fault_a_starter_that_is_noise_random_weights_are_hardly_ever_a_success(
    prepared: PreparedBy,
) -> None:
    """Single pixels of the training records weighed at random, as the unseeded starter does."""
    absolute = load(NAME).threshold.absolute
    assert absolute is not None
    images, truth = [], []
    for path in sorted((prepared(NAME).public / "train").iterdir()):
        band = {n: np.load(path / f"band_{n}.npy")[..., 4].astype(float) for n in (11, 14, 15)}
        images.append(
            [(band[15] - band[14] + 4) / 6, (band[14] - band[11] + 4) / 9, (band[14] - 243) / 60]
        )
        truth.append(np.load(path / "human_pixel_masks.npy")[..., 0].ravel() > 0)
    pixels = np.concatenate([np.reshape(image, (3, -1)) for image in images], axis=1)[:, ::7]
    contrail = np.concatenate(truth)[::7]
    rng = np.random.default_rng(1)
    successes = 0
    for _ in range(200):
        weights = rng.uniform(-1, 1, (2, 4)) / np.sqrt(3)  # as torch initialises Conv2d(3, 2, 1)
        weights = weights[1] - weights[0]
        found = weights[:3] @ pixels + weights[3] > 0
        successes += 2 * np.sum(found & contrail) / (np.sum(found) + np.sum(contrail)) > absolute
    assert successes <= 6


# --- data ---


def test_generated_records_have_bands_and_masks_of_the_published_layout(
    prepared: PreparedBy,
) -> None:
    public = prepared(NAME).public
    train = sorted((public / "train").iterdir())
    assert len(train) == 160
    positive = []
    for record in train[:40]:
        bands = {n: np.load(record / f"band_{n}.npy") for n in (11, 14, 15)}
        for band in bands.values():
            assert band.shape == (64, 64, 8)
            assert 150 < band.min() < band.max() < 350
        individual = np.load(record / "human_individual_masks.npy")
        majority = np.load(record / "human_pixel_masks.npy")
        assert individual.shape == (64, 64, 1, 3)
        assert majority.shape == (64, 64, 1)
        assert np.array_equal(majority, individual.sum(axis=-1) * 2 > 3)
        positive.append(majority.mean())
    assert 0.01 < np.mean(positive) < 0.05


def test_test_records_hold_bands_only(prepared: PreparedBy) -> None:
    public = prepared(NAME).public
    assert len(list((public / "test").iterdir())) == 60
    assert {path.name for path in (public / "test").glob("*/*")} == {
        f"band_{n}.npy" for n in (11, 14, 15)
    }
    assert not {path.name for path in (public / "test").iterdir()} & {
        p.name for p in (public / "train").iterdir()
    }


def test_metadata_name_the_records(prepared: PreparedBy) -> None:
    public = prepared(NAME).public
    for name, folder in (("train", "train"), ("validation", "test")):
        metadata = json.loads((public / f"{name}_metadata.json").read_text())
        assert sorted(entry["record_id"] for entry in metadata) == sorted(
            p.name for p in (public / folder).iterdir()
        )


def test_fault_a_misspelt_name_all_data_are_read_only() -> None:
    """The published list said validations_metadata.json, which no file is called."""
    patterns = load(NAME).read_only
    for name in (
        "validation_metadata.json",
        "train_metadata.json",
        "test/1/band_11.npy",
        "train/1/band_11.npy",
    ):
        assert any(fnmatch(name, pattern) for pattern in patterns), name


# --- full: the bucket's files ---


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    """Three small files of the bucket's kind, written by TensorFlow 2.21: 4 x 6 pixels, 8 frames, 4
    labellers; record 2 has no contrail, the validation file no individual masks."""
    with tarfile.open(
        Path(__file__).parents[1] / "data" / "files" / "contrails-tfrecords.tar.xz"
    ) as archive:
        archive.extractall(tmp_path / "raw", filter="data")
    return tmp_path / "raw"


def written(seed: int) -> tuple[Mask, Mask]:
    """What TensorFlow was given for a record: bands (band, row, column, frame) and masks (row,
    column, 1, labeller)."""
    rng = np.random.RandomState(seed)
    bands = [200.0 + n * 10 + rng.randint(0, 80, (4, 6, 8)) / 8.0 for n in range(9)]
    masks = rng.randint(0, 2, (4, 6, 1, 4)) * (seed != 2)
    return np.stack(bands), masks


def test_full_reads_what_tensorflow_wrote(
    full: Callable[[str, Path], tuple[Path, Path]], bucket: Path
) -> None:
    public, answers = full(NAME, bucket)
    train = {"0000000000": 1, "0000000001": 2, "0000100000": 3}
    assert {path.name for path in (public / "train").iterdir()} == set(train)
    for record, seed in train.items():
        bands, masks = written(seed)
        for number, values in zip(BANDS, bands, strict=True):
            band = np.load(public / "train" / record / f"band_{number}.npy")
            assert band.dtype == np.float32
            assert np.array_equal(band, values)
        individual = np.load(public / "train" / record / "human_individual_masks.npy")
        assert np.array_equal(individual, masks)
        majority = np.load(public / "train" / record / "human_pixel_masks.npy")
        assert np.array_equal(majority, masks.sum(axis=-1) * 2 > 4)
    found = rows_of(answers / "answers.csv")
    assert list(found) == ["0000000000", "0000000001"]
    for text, seed in zip(found.values(), (11, 12), strict=True):
        assert np.array_equal(decoded(text, (4, 6)), written(seed)[1].sum(axis=-1)[..., 0] * 2 > 4)
    assert json.loads((answers / "shape.json").read_text()) == {"rows": 4, "columns": 6}


def test_full_hides_the_masks_of_the_validation_records(
    full: Callable[[str, Path], tuple[Path, Path]], bucket: Path
) -> None:
    public, _ = full(NAME, bucket)
    for record in ("0000000000", "0000000001"):
        names = {path.name for path in (public / "test" / record).iterdir()}
        assert names == {f"band_{band}.npy" for band in BANDS}
    assert rows_of(public / "sample_submission.csv") == {"0000000000": "-", "0000000001": "-"}
    metadata = json.loads((public / "validation_metadata.json").read_text())
    assert metadata[1] == {
        "record_id": "0000000001", "row_min": 24003.0, "row_size": -2000.0,
        "col_min": -12006.0, "col_size": 2000.0,
        "timestamp": 1560000012.0,
    }  # fmt: skip
    assert len(json.loads((public / "train_metadata.json").read_text())) == 3


def test_full_refuses_files_that_are_not_whole(
    full: Callable[[str, Path], tuple[Path, Path]], bucket: Path
) -> None:
    file = bucket / "train.tfrecords-00000-of-00100"
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(ValueError, match=r"train\.tfrecords-00000-of-00100 is cut off"):
        full(NAME, bucket)


def test_full_refuses_a_part_without_records(
    full: Callable[[str, Path], tuple[Path, Path]], bucket: Path
) -> None:
    (bucket / "validation.tfrecords-00000-of-00100").write_bytes(b"")
    with pytest.raises(ValueError, match=r"there is no record in validation\.tfrecords"):
        full(NAME, bucket)


def test_full_comes_from_the_public_bucket(
    tmp_path: Path, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: listed, one download cut and taken up again, checked, prepared."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(download, "_sleep", lambda seconds: None)
    files = {
        f"20230419/tfrecords/{path.name}": path.read_bytes() for path in sorted(bucket.iterdir())
    }
    with file_server() as server:
        bucket_serves(
            server, "goes_contrails_dataset", {**files, "20230419/Instruction.pdf": b"%PDF"}
        )
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.address)
        address = (
            "/goes_contrails_dataset/20230419/tfrecords/train.tfrecords-00001-of-00100?generation=2"
        )
        server.cut_once[address] = Cut(5000)
        ready = prepare(load(NAME), "full", tmp_path / "cache")
        assert sorted(filter(None, server.ranges)) == ["bytes=5000-"]
    assert len(list((ready.public / "train").iterdir())) == 3
    assert len(rows_of(ready.answers / "answers.csv")) == 2
