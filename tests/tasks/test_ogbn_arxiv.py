"""ogbn-arxiv: the metric, OGB's layout, hidden subjects, citations that explain them, no success by
luck."""

from __future__ import annotations

import ast
import csv
import gzip
import hashlib
import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pytest_mlab.core.scoring import judge as judge_score
from pytest_mlab.core.trial import Outcome
from pytest_mlab.data.prepare import Prepared, prepare
from tests.data.file_server import Cut, file_server
from tests.tasks.conftest import load

TASK = "ogbn-arxiv"
FOLDER = Path("networks") / "ogbn_arxiv"
RAW = ["edge", "node-feat", "node-label", "node_year", "num-edge-list", "num-node-list"]

PreparedBy = Callable[[str], Prepared]
Verdict = Callable[[str, Path], dict[str, Any]]


def lines(public: Path, name: str) -> list[str]:
    with gzip.open(public / FOLDER / f"{name}.csv.gz", "rt", encoding="ascii") as file:
        return file.read().splitlines()


def numbers(public: Path, name: str) -> list[int]:
    return [int(line) for line in lines(public, name)]


def answers_of(folder: Path) -> dict[int, int]:
    with (folder / "answers.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["node", "label"]
    return {int(node): int(label) for node, label in rows}


def submit(folder: Path, rows: list[tuple[Any, Any]], header: str = "node,label") -> Path:
    (folder / "submission.csv").write_text(
        f"{header}\n" + "".join(f"{node},{label}\n" for node, label in rows)
    )
    return folder


def test_the_files_have_ogbs_layout(prepared: PreparedBy) -> None:
    public = prepared(TASK).public
    expected = {f"raw/{name}" for name in RAW} | {
        f"split/time/{name}" for name in ("train", "valid", "test")
    }
    assert set(prepared(TASK).files) == {str(FOLDER / f"{name}.csv.gz") for name in expected}
    (papers,) = numbers(public, "raw/num-node-list")
    (citations,) = numbers(public, "raw/num-edge-list")
    features = np.array(
        [line.split(",") for line in lines(public, "raw/node-feat")], dtype=np.float32
    )
    assert features.shape == (papers, 128)
    assert len(lines(public, "raw/edge")) == citations
    years = numbers(public, "raw/node_year")
    assert len(years) == papers
    parts = {name: numbers(public, f"split/time/{name}") for name in ("train", "valid", "test")}
    assert sorted(node for nodes in parts.values() for node in nodes) == list(range(papers))
    for name, fits in {
        "train": range(1990, 2018),
        "valid": [2018],
        "test": range(2019, 2021),
    }.items():
        assert {years[node] for node in parts[name]} <= set(fits)
    assert len(parts["test"]) > 1000


def test_the_subjects_of_test_papers_are_hidden_and_no_others(prepared: PreparedBy) -> None:
    public = prepared(TASK).public
    subjects = numbers(public, "raw/node-label")
    test = numbers(public, "split/time/test")
    assert {subjects[node] for node in test} == {-1}
    shown = [subject for node, subject in enumerate(subjects) if node not in set(test)]
    assert set(shown) <= set(range(40))
    assert len(set(shown)) > 35
    answers = answers_of(prepared(TASK).answers)
    assert list(answers) == test
    assert set(answers.values()) <= set(range(40))


def test_papers_cite_earlier_papers_often_of_their_own_subject(prepared: PreparedBy) -> None:
    public = prepared(TASK).public
    edges = [tuple(map(int, line.split(","))) for line in lines(public, "raw/edge")]
    assert all(cited < citing for citing, cited in edges)
    assert all(one < two for one, two in pairwise(edges))  # each once
    subjects = dict(enumerate(numbers(public, "raw/node-label"))) | answers_of(
        prepared(TASK).answers
    )
    same = np.mean([subjects[citing] == subjects[cited] for citing, cited in edges])
    assert 0.4 < same < 0.55


def test_the_score_is_the_accuracy(prepared: PreparedBy, verdict: Verdict, tmp_path: Path) -> None:
    from sklearn.metrics import accuracy_score

    answers = answers_of(prepared(TASK).answers)
    guess = {node: label if node % 3 else (label + 1) % 40 for node, label in answers.items()}
    submit(
        tmp_path,
        [(f"{node}.0", f"{label}.0") for node, label in sorted(guess.items(), reverse=True)],
    )
    expected = accuracy_score(list(answers.values()), [guess[node] for node in answers])
    assert 0.6 < expected < 0.7
    assert verdict(TASK, tmp_path)["score"] == pytest.approx(expected, rel=1e-12)


def test_a_column_without_numbers_of_papers_is_refused_with_a_reason(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    """The published format: the order counts, and an index that pandas writes made the score -1."""
    labels = list(answers_of(prepared(TASK).answers).values())
    (tmp_path / "submission.csv").write_text("0\n" + "".join(f"{label}\n" for label in labels))
    assert "has no column" in verdict(TASK, tmp_path)["reason"]
    submit(tmp_path, list(enumerate(labels)))
    found = verdict(TASK, tmp_path)
    assert found["verdict"] == "invalid_submission"
    assert "lacks ids in column node" in found["reason"]


def test_half_a_subject_is_refused(prepared: PreparedBy, verdict: Verdict, tmp_path: Path) -> None:
    answers = answers_of(prepared(TASK).answers)
    found = verdict(
        TASK, submit(tmp_path, [(node, label + 0.5) for node, label in answers.items()])
    )
    assert found["verdict"] == "invalid_submission"
    assert "expected a whole number" in found["reason"]


def test_neither_the_most_frequent_subject_nor_a_lucky_starter_is_a_success(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    public = prepared(TASK).public
    known = [subject for subject in numbers(public, "raw/node-label") if subject >= 0]
    most = max(set(known), key=known.count)
    score = verdict(
        TASK, submit(tmp_path, [(node, most) for node in answers_of(prepared(TASK).answers)])
    )["score"]
    baseline = load(TASK).variants["mini"].baseline
    assert baseline is not None
    assert score < baseline.mean + baseline.std
    assert baseline.n >= 20
    best_of_200_starters = 0.239
    for one in (score, *baseline.scores, best_of_200_starters):
        assert judge_score(load(TASK), "mini", one).outcome is Outcome.BELOW_THRESHOLD


@pytest.mark.parametrize("script", ["env/train.py", "reference/train.py"])
def test_the_scripts_need_neither_torch_geometric_nor_ogb(script: str) -> None:
    tree = ast.parse((load(TASK).folder / script).read_text())
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= {"pathlib", "pandas", "torch"}


@pytest.mark.parametrize("rows", [0, 1, 40_000])
def test_written_files_are_whole_gzip_files(
    data_py: Callable[[str], ModuleType], tmp_path: Path, rows: int
) -> None:
    data_py(TASK).write(tmp_path / "x", ([n, -n] for n in range(rows)))
    content = gzip.decompress((tmp_path / "x.csv.gz").read_bytes())
    assert content == "".join(f"{n},{-n}\n" for n in range(rows)).encode()


# --- full ---


def published_archive() -> dict[str, bytes]:
    """What is in arxiv.zip, with twelve papers, as OGB stores it: every table a csv.gz, a license,
    a mapping."""
    tables = {
        "raw/edge": ["4,0", "0,11", "7,3"],  # some papers cite later ones, as there
        "raw/node-feat": [",".join([f"{n}.25"] * 128) for n in range(12)],
        "raw/node-label": [str(3 * n) for n in range(12)],
        "raw/node_year": [str(2012 + n % 9) for n in range(12)],
        "raw/num-edge-list": ["3"],
        "raw/num-node-list": ["12"],
        "split/time/train": ["0", "1", "2", "3", "4", "5", "9"],
        "split/time/valid": ["6", "11"],
        "split/time/test": ["10", "7", "8"],
    }
    files = {
        f"arxiv/{name}.csv.gz": gzip.compress(("\n".join(rows) + "\n").encode())
        for name, rows in tables.items()
    }
    files["arxiv/mapping/nodeidx2paperid.csv.gz"] = gzip.compress(b"node idx,paper id\n0,9657784\n")
    files["arxiv/mapping/README.md"] = b"# ogbn-arxiv\n"
    files["arxiv/RELEASE_v1.txt"] = b""
    return files


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in (
            "arxiv/",
            "arxiv/raw/",
            "arxiv/split/",
            "arxiv/split/time/",
            "arxiv/mapping/",
        ):
            archive.writestr(folder, b"")
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def test_full_is_ogbs_archive_without_the_subjects_of_test_papers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    files = published_archive()
    archive = zipped(files)
    task = load(TASK)
    (source,) = task.variants["full"].sources
    assert source.ref == "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
    with file_server() as server:
        server.files["/ogb/arxiv.zip"] = archive
        server.troubles = [Cut(len(archive) // 2)]
        local = replace(
            source,
            ref=f"{server.address}/ogb/arxiv.zip",
            sha256=hashlib.sha256(archive).hexdigest(),
        )
        variant = replace(task.variants["full"], sources=(local,))
        full = prepare(
            replace(task, variants={**task.variants, "full": variant}), "full", tmp_path / "cache"
        )
        assert server.ranges == ["", f"bytes={len(archive) // 2}-"]
    assert numbers(full.public, "raw/node-label") == [
        -1 if n in (7, 8, 10) else 3 * n for n in range(12)
    ]
    assert answers_of(full.answers) == {10: 30, 7: 21, 8: 24}
    assert list(answers_of(full.answers)) == [10, 7, 8]
    copied = {
        name.removeprefix("arxiv/"): content
        for name, content in files.items()
        if name.endswith(".csv.gz")
    }
    del copied["raw/node-label.csv.gz"], copied["mapping/nodeidx2paperid.csv.gz"]
    for name, content in copied.items():
        assert (full.public / FOLDER / name).read_bytes() == content
    assert len(full.files) == len(copied) + 1


def test_full_refuses_another_archive(
    full: Callable[[str, Path], tuple[Path, Path]], tmp_path: Path
) -> None:
    for name, content in published_archive().items():
        place = tmp_path / "raw" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(
            gzip.compress(b"13\n") if name.endswith("num-node-list.csv.gz") else content
        )
    with pytest.raises(
        ValueError, match=r"node-label\.csv\.gz: expected 13 subjects from 0 to 39; found 12"
    ):
        full(TASK, tmp_path / "raw")
