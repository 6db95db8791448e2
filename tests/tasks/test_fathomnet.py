"""fathomnet: AUC and MAP@20, an out-of-sample truth that is real, the generator, Kaggle's
annotations."""

from __future__ import annotations

import csv
import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_mlab.core.scoring import judge as judge_score
from pytest_mlab.core.trial import Outcome
from pytest_mlab.data.prepare import Prepared
from pytest_mlab.evaluation.main import judge
from tests.tasks.conftest import load

NAME = "fathomnet"

PreparedBy = Callable[[str], Prepared]
Verdict = Callable[[str, Path], dict[str, Any]]
Full = Callable[[str, Path], tuple[Path, Path]]
Row = tuple[str, str, str]


def rows_of(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["id", "categories", "osd"]
    return [(row[0], row[1], row[2]) for row in rows]


def write(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "categories", "osd"), *rows])


def submit(folder: Path, rows: Sequence[Row]) -> Path:
    write(folder / "submission.csv", rows)
    return folder


def truth(prepared: Prepared) -> list[Row]:
    return rows_of(prepared.answers / "answers.csv")


@pytest.fixture(scope="module")
def evaluator() -> dict[str, Any]:
    return runpy.run_path(str(load(NAME).folder / "evaluator.py"))


# --- metric ---


def published_average_precision(actual: list[int], predicted: list[int], k: int = 20) -> float:
    """The usual definition, written with slices."""
    predicted = predicted[:k]
    total = 0.0
    for i, category in enumerate(predicted):
        if category in actual and category not in predicted[:i]:
            hits = len({p for p in predicted[: i + 1] if p in actual})
            total += hits / (i + 1)
    return total / min(len(actual), k)


def test_the_score_is_half_auc_and_half_map(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    import numpy as np
    from sklearn.metrics import roc_auc_score

    answers = truth(prepared(NAME))
    rng = np.random.default_rng(4)
    rows, precisions = [], []
    for name, categories, osd in answers:
        actual = [int(category) for category in categories.split()]
        guess = [int(c) for c in rng.permutation(290)[:18] + 1]
        guess[int(rng.integers(0, 18))] = actual[0]
        score = round(float(np.clip(0.3 * int(osd) + rng.uniform(0, 0.7), 0, 1)), 1)  # with ties
        rows.append((name, " ".join(map(str, guess)), str(score)))
        precisions.append(published_average_precision(actual, guess))
    area = roc_auc_score([int(osd) for _, _, osd in answers], [float(row[2]) for row in rows])
    found = verdict(NAME, submit(tmp_path, rows))
    assert found["score"] == pytest.approx(
        (2 * area - 1) / 2 + float(np.mean(precisions)) / 2, rel=1e-12
    )
    assert found["details"] == {
        "map20": pytest.approx(np.mean(precisions)),
        "auc": pytest.approx(area),
    }


def test_fault_a_score_below_zero_is_a_score(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    """The published plots dropped every score of 0 and below as no submission."""
    rows = [(name, "", "0" if osd == "1" else "1") for name, _, osd in truth(prepared(NAME))]
    found = verdict(NAME, submit(tmp_path, rows))
    assert (found["verdict"], found["score"]) == ("scored", -0.5)
    assert judge_score(load(NAME), "mini", found["score"]).outcome is Outcome.BELOW_THRESHOLD


def test_average_precision_by_hand(evaluator: dict[str, Any]) -> None:
    precision = evaluator["average_precision"]
    assert precision([1, 2], {1, 2}) == 1.0
    assert precision([3, 1, 4, 2], {1, 2}) == (1 / 2 + 2 / 4) / 2
    assert precision([1, 1, 1, 2], {1, 2}) == (1 + 2 / 4) / 2  # a repeated category counts once
    assert precision([*range(100, 120), 1], {1}) == 0.0  # the 21st does not count
    assert precision([], {1}) == 0.0
    assert precision(list(range(1, 21)), set(range(1, 31))) == 1.0


def test_auc_by_hand(evaluator: dict[str, Any]) -> None:
    auc = evaluator["auc"]
    assert auc([(0.9, True), (0.1, False)]) == 1.0
    assert auc([(0.1, True), (0.9, False)]) == 0.0
    assert auc([(0.5, True), (0.5, False), (0.5, False)]) == 0.5
    assert auc([(0.2, True), (0.8, True), (0.2, False), (0.5, False)]) == (0.5 + 0 + 1 + 1) / 4


def test_the_agents_metric_is_the_evaluators(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    metric = runpy.run_path(str(load(NAME).folder / "env" / "metric.py"))
    answers = truth(prepared(NAME))
    rows = [
        (name, f"7 {categories} 9", f"{n % 7 / 10}")
        for n, (name, categories, _) in enumerate(answers)
    ]
    expected = metric["score"](
        [[int(c) for c in row[1].split()] for row in answers],
        [[int(c) for c in row[1].split()] for row in rows],
        [int(row[2]) for row in answers],
        [float(row[2]) for row in rows],
    )
    assert verdict(NAME, submit(tmp_path, rows))["score"] == pytest.approx(expected, rel=1e-12)


def test_fault_a_random_truth_scoring_is_deterministic_and_the_truth_is_what_was_generated(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    """The published evaluator drew which images are out of sample at random, at every call."""
    answers = truth(prepared(NAME))
    submit(tmp_path, [(name, categories, osd) for name, categories, osd in answers])
    assert [verdict(NAME, tmp_path)["score"] for _ in range(3)] == [1.0] * 3
    share = sum(osd == "1" for _, _, osd in answers) / len(answers)
    assert 0.25 < share < 0.5  # deeper than 800 of up to 1300 m


def test_out_of_sample_images_are_darker(prepared: PreparedBy) -> None:
    """The truth is in the images, not only in a file."""
    import numpy as np
    from PIL import Image
    from sklearn.metrics import roc_auc_score

    answers = truth(prepared(NAME))
    light = []
    for name, _, _ in answers:
        with Image.open(prepared(NAME).public / "images" / f"{name}.png") as image:
            light.append(float(np.asarray(image, dtype=float).mean()))
    area = roc_auc_score([int(osd) for _, _, osd in answers], [-value for value in light])
    assert 0.6 < area < 0.97


@pytest.mark.parametrize("form", ["{}", "[{}]", "[{}.0]", "  {} "])
def test_fault_the_documented_form_scores_and_so_does_the_training_files(
    form: str, prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    """The published evaluator split "[1.0, 9.0]" at blanks: a perfect submission in the documented
    form got 0."""
    rows = []
    for name, categories, osd in truth(prepared(NAME)):
        joined = (
            categories
            if "[" not in form
            else categories.replace(" ", ".0, " if ".0" in form else ", ")
        )
        rows.append((name, form.format(joined), osd))
    assert verdict(NAME, submit(tmp_path, rows))["score"] == 1.0


def test_no_categories_at_all_are_allowed(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    rows = [
        (name, "" if n % 2 else "[]", "1") for n, (name, _, _) in enumerate(truth(prepared(NAME)))
    ]
    assert verdict(NAME, submit(tmp_path, rows))["score"] == 0.0


@pytest.mark.parametrize(
    "text", ["nan", "1;2", "-1", "1.5", "1e3", "[1", "1,,2", "fish", "9" * 10, "\u0661"]
)
def test_categories_that_are_none_are_refused(
    text: str, prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    first, *rest = truth(prepared(NAME))
    found = verdict(NAME, submit(tmp_path, [(first[0], text, first[2]), *rest]))
    assert found["verdict"] == "invalid_submission"
    assert "in row 1" in found["reason"]
    assert "expected category numbers separated by blanks" in found["reason"]


@pytest.mark.parametrize("text", ["1.01", "-0.5", "", "nan"])
def test_osd_is_from_0_to_1(
    text: str, prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    first, *rest = truth(prepared(NAME))
    found = verdict(NAME, submit(tmp_path, [(*first[:2], text), *rest]))
    assert found["verdict"] == "invalid_submission"
    assert "from 0 to 1" in found["reason"]


def test_images_without_known_categories_do_not_count_for_map(tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    write(
        tmp_path / "answers" / "answers.csv", [("a", "3 4", "0"), ("b", "", "1"), ("c", "5", "0")]
    )
    submit(tmp_path, [("c", "9 5", "0.2"), ("b", "1 2 3", "0.9"), ("a", "3 4", "0.1")])
    found = judge(load(NAME).folder / "evaluator.py", tmp_path, tmp_path / "answers")
    assert found["score"] == pytest.approx(0.5 + (1 + 0.5) / 2 / 2)


# --- baseline ---


def test_fault_a_placeholder_as_baseline_the_most_frequent_categories_are_no_success(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    """The published baseline was 1e-10, which anything beats."""
    task = load(NAME)
    with (prepared(NAME).public / "multilabel_classification" / "train.csv").open(
        newline=""
    ) as file:
        lists = [json.loads(row["categories"]) for row in csv.DictReader(file)]
    counts: dict[int, int] = {}
    for categories in lists:
        for category in categories:
            counts[int(category)] = counts.get(int(category), 0) + 1
    popular = " ".join(str(category) for category in sorted(counts, key=lambda c: -counts[c])[:20])
    for osd in ("0", "0.5", "1"):
        found = verdict(
            NAME, submit(tmp_path, [(name, popular, osd) for name, _, _ in truth(prepared(NAME))])
        )
        assert found["score"] > 0.1
        assert judge_score(task, "mini", found["score"]).outcome is Outcome.BELOW_THRESHOLD


def test_fault_one_prediction_for_all_the_starter_ranks_twenty_for_each_image(
    prepared: PreparedBy, tmp_path: Path
) -> None:
    """The published starter wrote the prediction for the first validation image for every test
    image."""
    shutil.copytree(load(NAME).folder / "env", tmp_path, dirs_exist_ok=True)
    public = prepared(NAME).public
    (tmp_path / "images").symlink_to(public / "images")
    # Fewer images: it is quicker.
    for file, count in (
        ("multilabel_classification/train.csv", 300),
        ("sample_submission.csv", 90),
    ):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        lines = (public / file).read_text().splitlines(keepends=True)
        (tmp_path / file).write_text("".join(lines[: count + 1]))
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "submission.csv")
    assert len(rows) == 90
    assert len({categories for _, categories, _ in rows}) > 1
    for _, categories, _ in rows:
        assert len(set(categories.split())) == 20
        assert all(1 <= int(category) <= 290 for category in categories.split())


# --- data ---


def test_generated_files_have_kaggles_layout(prepared: PreparedBy) -> None:
    from PIL import Image

    public = prepared(NAME).public
    with (public / "category_key.csv").open(newline="") as file:
        key = list(csv.DictReader(file))
    assert [row["id"] for row in key] == [str(n) for n in range(1, 291)]
    with (public / "multilabel_classification" / "train.csv").open(newline="") as file:
        table = {row["id"]: json.loads(row["categories"]) for row in csv.DictReader(file)}
    assert len(table) == 1200
    assert len({category for categories in table.values() for category in categories}) == 20
    train = json.loads((public / "object_detection" / "train.json").read_text())
    names = {image["id"]: Path(image["file_name"]).stem for image in train["images"]}
    assert set(names.values()) == set(table)
    boxes: dict[str, set[float]] = {}
    for annotation in train["annotations"]:
        x, y, width, height = annotation["bbox"]
        assert 0 <= x <= x + width <= 48
        assert 0 <= y <= y + height <= 48
        boxes.setdefault(names[annotation["image_id"]], set()).add(float(annotation["category_id"]))
    assert boxes == {name: set(categories) for name, categories in table.items()}
    with Image.open(public / "images" / train["images"][0]["file_name"]) as image:
        assert (image.size, image.mode, image.format) == ((48, 48), "RGB", "PNG")


def test_public_files_do_not_tell_what_test_images_show(prepared: PreparedBy) -> None:
    public = prepared(NAME).public
    asked = [name for name, _, _ in truth(prepared(NAME))]
    content = json.loads((public / "object_detection" / "eval.json").read_text())
    assert content["annotations"] == []
    assert [Path(image["file_name"]).stem for image in content["images"]] == asked
    assert {key for image in content["images"] for key in image} == {
        "id",
        "file_name",
        "width",
        "height",
    }
    assert {row[1:] for row in rows_of(public / "sample_submission.csv")} == {("1 2 3", "0.5")}
    train = (public / "multilabel_classification" / "train.csv").read_text()
    assert not [name for name in asked if name in train]
    assert all((public / "images" / f"{name}.png").is_file() for name in asked)


def kaggle_files(raw: Path, count: int = 200) -> dict[str, list[int]]:
    """Kaggle's annotations, small, and images as the source of kind coco-images leaves them."""
    categories = {f"{n:08x}-0000": sorted({1 + n % 3, 10 + n % 60}) for n in range(count)}
    for folder in ("multilabel_classification", "object_detection", "images"):
        (raw / folder).mkdir(parents=True)
    (raw / "category_key.csv").write_text("id,name,supercat\n1,a,b\n")
    lines = [f'{name},"{[float(c) for c in numbers]}"\n' for name, numbers in categories.items()]
    (raw / "multilabel_classification" / "train.csv").write_text("id,categories\n" + "".join(lines))
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, (name, numbers) in enumerate(categories.items(), 1):
        (raw / "images" / f"{name}.png").write_bytes(name.encode())
        url = f"https://database.fathomnet.org/static/m3/{name}.png"
        images.append(
            {
                "id": number,
                "file_name": f"{name}.png",
                "coco_url": url,
                "width": 9,
                "height": 9,
                "license": 0,
            }
        )
        annotations += [
            {"id": len(annotations) + 1, "image_id": number, "category_id": c, "bbox": []}
            for c in numbers
        ]
    content = {
        "info": {},
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 1, "name": "a"}],
    }
    (raw / "object_detection" / "train.json").write_text(json.dumps(content))
    (raw / "object_detection" / "eval.json").write_text(
        json.dumps({"images": [{"id": 1, "file_name": "x.png"}]})
    )
    return categories


def test_fault_no_real_truth_full_withholds_categories(full: Full, tmp_path: Path) -> None:
    categories = kaggle_files(tmp_path / "raw")
    public, hidden = full(NAME, tmp_path / "raw")
    with (public / "multilabel_classification" / "train.csv").open(newline="") as file:
        train = {
            row["id"]: [int(c) for c in json.loads(row["categories"])]
            for row in csv.DictReader(file)
        }
    assert all(numbers == categories[name] for name, numbers in train.items())
    known = {category for numbers in train.values() for category in numbers}
    rows = rows_of(hidden / "answers.csv")
    outside = [row for row in rows if row[2] == "1"]
    assert len(rows) == 2 * len(outside)
    assert 0.1 * len(categories) <= len(outside) <= 0.15 * len(categories)
    for name, text, osd in rows:
        assert name not in train
        assert [int(c) for c in text.split()] == [c for c in categories[name] if c in known]
        assert (osd == "1") == bool(set(categories[name]) - known)
    assert len(train) + len(rows) == len(categories)
    assert {1, 2, 3} <= known  # frequent categories are never withheld


def test_full_annotations_are_split_like_the_images(full: Full, tmp_path: Path) -> None:
    categories = kaggle_files(tmp_path / "raw")
    public, hidden = full(NAME, tmp_path / "raw")
    asked = [row[0] for row in rows_of(hidden / "answers.csv")]
    train = json.loads((public / "object_detection" / "train.json").read_text())
    names = {image["id"]: Path(image["file_name"]).stem for image in train["images"]}
    assert set(names.values()) == set(categories) - set(asked)
    assert {names[annotation["image_id"]] for annotation in train["annotations"]} == set(
        names.values()
    )
    content = json.loads((public / "object_detection" / "eval.json").read_text())
    assert [Path(image["file_name"]).stem for image in content["images"]] == asked
    assert {key for image in content["images"] for key in image} == {
        "id",
        "file_name",
        "width",
        "height",
    }
    assert content["annotations"] == []
    for name in categories:
        assert (public / "images" / f"{name}.png").samefile(
            tmp_path / "raw" / "images" / f"{name}.png"
        )


def test_full_refuses_other_files(
    full: Full, data_py: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    kaggle_files(tmp_path / "raw")
    table = tmp_path / "raw" / "multilabel_classification" / "train.csv"
    with table.open("a") as file:
        file.write('lost,"[1.0]"\n')
    with pytest.raises(ValueError, match=r"lacks 1 images of train\.csv, e\.g\. lost"):
        full(NAME, tmp_path / "raw")
    table.write_text("a,b\n")
    (tmp_path / "other").mkdir()
    with pytest.raises(
        ValueError, match=r"train\.csv: expected the columns id, categories; found a, b"
    ):
        data_py(NAME).kaggle(tmp_path / "raw", tmp_path / "other")


def test_full_has_annotations_first_and_then_their_images() -> None:
    kaggle, images = load(NAME).variants["full"].sources
    assert kaggle.ref == "competitions/fathomnet-out-of-sample-detection"
    assert (images.kind, images.ref) == ("coco-images", "object_detection/train.json")
