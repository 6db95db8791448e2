"""What the notes say that solutions score: degenerate, weak, good, very good ones, in this order;
and who succeeds."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from pytest_mlab.core.scoring import judge as judge_score
from pytest_mlab.core.trial import Outcome
from pytest_mlab.data.prepare import Prepared
from tests.tasks.conftest import load
from tests.tasks.test_amp_parkinsons import best_constants
from tests.tasks.test_every_task import TASKS

PreparedBy = Callable[[str], Prepared]
Verdict = Callable[[str, Path], dict[str, Any]]

LEVELS = ("degenerate", "weak", "good", "very good")
# Their score is a time or their submission a program: there is no degenerate one that the evaluator
# accepts.
PROGRAMS = ("llama-inference", "vectorization")


def table(name: str) -> list[tuple[str, str]]:
    """The rows of the notes' table of solutions: what was tried, and the score as it is written."""
    text = (load(name).folder / "notes.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    assert rows[0][0] == "solution"
    return [(row[0], row[1].replace(",", "")) for row in rows[2:]]


def scores(name: str, level: str) -> list[str]:
    """The scores of a level's rows, the first number of each; or the word ``invalid``."""
    found = []
    for what, score in table(name):
        if re.match(rf"{level}\b", what):
            number = re.search(r"-?\d+(\.\d+)?|invalid", score)
            assert number is not None, f"{name}: {what}: {score}"
            found.append(number[0])
    return found


def better(name: str, one: float, other: float) -> bool:
    return load(name).sign * (one - other) > 0


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_there(name: str, level: str) -> None:
    assert scores(name, level)


@pytest.mark.parametrize("name", TASKS)
def test_better_modelling_gives_a_better_score(name: str) -> None:
    levels = [float(scores(name, level)[0]) for level in LEVELS[1:]]
    numbers = [float(score) for score in scores(name, "degenerate") if score != "invalid"]
    best = max(numbers, key=lambda score: load(name).sign * score, default=None)
    assert best is None or better(name, levels[0], best)
    assert better(name, levels[1], levels[0])
    assert better(name, levels[2], levels[1])


@pytest.mark.parametrize("name", TASKS)
def test_no_degenerate_solution_succeeds_and_good_ones_do(name: str) -> None:
    task = load(name)
    for score in scores(name, "degenerate"):
        if score == "invalid":
            assert name in PROGRAMS
        else:
            assert judge_score(task, "mini", float(score)).outcome is Outcome.BELOW_THRESHOLD
    for level in ("good", "very good"):
        for score in scores(name, level):
            assert judge_score(task, "mini", float(score)).outcome is Outcome.SUCCESS


@pytest.mark.parametrize("name", [name for name in TASKS if name not in PROGRAMS])
def test_the_recorded_reference_is_in_the_table(name: str) -> None:
    reference = load(name).variants["mini"].reference
    assert reference is not None
    (found,) = [
        score for what, score in table(name) if re.match(r"(very good, |good, )?reference:", what)
    ]
    assert float(found.split()[0]) == pytest.approx(reference.mean, rel=0.01)


# --- the degenerate ones, measured -----------------------------------------------------------------------------


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def everywhere(data: Prepared, folder: Path, **values: object) -> Path:
    """The same values for every id of the answers."""
    rows = read(data.answers / "answers.csv")
    key = next(iter(rows[0]))
    with (folder / "submission.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [[key, *values], *([row[key], *values.values()] for row in rows)]
        )
    return folder


def amp(data: Prepared, folder: Path) -> Path:
    constants = best_constants(data)
    with (folder / "submission.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["prediction_id", "rating"], *constants.items()])
    return folder


def house_price(data: Prepared, folder: Path) -> Path:
    return everywhere(
        data,
        folder,
        SalePrice=median(float(row["SalePrice"]) for row in read(data.public / "train.csv")),
    )


def spaceship_titanic(data: Prepared, folder: Path) -> Path:
    fates = Counter(row["Transported"] for row in read(data.public / "train.csv"))
    return everywhere(data, folder, Transported=fates.most_common(1)[0][0])


def feedback(data: Prepared, folder: Path) -> Path:
    rows = read(data.public / "train.csv")
    columns = load("feedback").submission.columns[1:]
    return everywhere(
        data, folder, **{c: sum(float(row[c]) for row in rows) / len(rows) for c in columns}
    )


def fathomnet(data: Prepared, folder: Path) -> Path:
    lists = [
        json.loads(row["categories"])
        for row in read(data.public / "multilabel_classification" / "train.csv")
    ]
    counts = Counter(int(category) for categories in lists for category in categories)
    popular = " ".join(str(category) for category, _ in counts.most_common(20))
    return everywhere(data, folder, categories=popular, osd=0.5)


def contrails(data: Prepared, folder: Path) -> Path:
    return everywhere(data, folder, encoded_pixels="-")


def imdb(data: Prepared, folder: Path) -> Path:
    return everywhere(data, folder, **{"0": 0.3, "1": 0.7})


def cifar10(data: Prepared, folder: Path) -> Path:
    everywhere(data, folder, **{str(label): 0.1 for label in range(10)})
    text = (folder / "submission.csv").read_text(encoding="utf-8")
    (folder / "submission.csv").write_text(text[text.index(",") :], encoding="utf-8")
    return folder


def ogbn_arxiv(data: Prepared, folder: Path) -> Path:
    import gzip

    known = gzip.decompress(
        (data.public / "networks/ogbn_arxiv/raw/node-label.csv.gz").read_bytes()
    ).split()
    subject = Counter(label.decode() for label in known if label != b"-1").most_common(1)[0][0]
    return everywhere(data, folder, label=subject)


DEGENERATE: dict[str, Callable[[Prepared, Path], Path]] = {
    "amp-parkinsons-disease-progression-prediction": amp,
    "cifar10": cifar10,
    "fathomnet": fathomnet,
    "feedback": feedback,
    "house-price": house_price,
    "identify-contrails": contrails,
    "imdb": imdb,
    "ogbn-arxiv": ogbn_arxiv,
    "spaceship-titanic": spaceship_titanic,
}
# Those of the others are measured beside what else is tested of them.
ELSEWHERE = {
    "babylm": "test_a_uniform_model_scores_the_size_of_the_vocabulary",
    "clrs": "test_a_trivial_predictor_is_scored_and_no_success",
    "llama-inference": "test_fault_mended_output_is_compared",
    "vectorization": "test_wrong_code_is_invalid",
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_the_degenerate_predictor_scores_what_the_notes_say(
    name: str, prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    found = verdict(name, DEGENERATE[name](prepared(name), tmp_path))
    assert found["verdict"] == "scored", found["reason"]
    written = scores(name, "degenerate")[0]
    assert round(found["score"], len(written.partition(".")[2])) == float(written)
    assert judge_score(load(name), "mini", found["score"]).outcome is Outcome.BELOW_THRESHOLD


def test_every_degenerate_predictor_is_measured() -> None:
    from tests.tasks.test_faults import TESTS, functions_of

    assert sorted([*DEGENERATE, *ELSEWHERE]) == TASKS
    for name, function in ELSEWHERE.items():
        assert function in functions_of(TESTS / "tasks" / f"test_{name.replace('-', '_')}.py")


def test_the_recorded_trivial_predictor_of_clrs_is_the_degenerate_one() -> None:
    baseline = load("clrs").variants["mini"].baseline
    assert baseline is not None
    assert scores("clrs", "degenerate") == [f"{baseline.mean:.3f}"]
