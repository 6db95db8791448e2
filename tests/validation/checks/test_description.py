from __future__ import annotations

from pathlib import Path

import pytest

from tests.suites.folders import edit
from tests.validation.tasks import finding, sound_task


def test_a_description_that_names_everything(tmp_path: Path) -> None:
    assert finding("description", sound_task(tmp_path / "toy")).status == "ok"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("`train.py` writes", "The starter writes", "train.py is not named"),
        ("`test.csv`", "`the test`", "test.csv is not named"),
        ("Both\nare read-only.", "", "train.csv is not said to be read-only"),
        ("`submission.csv`", "a table", "the submission submission.csv is not named"),
        ("label", "answer", "the column label of the submission is not named"),
    ],
)
def test_what_an_agent_would_have_to_guess(tmp_path: Path, old: str, new: str, fault: str) -> None:
    task = sound_task(tmp_path / "toy")
    text = (task / "description.md").read_text()
    assert old in text
    (task / "description.md").write_text(text.replace(old, new))
    found = finding("description", task)
    assert found.status == "fail"
    assert fault in found.facts["faults"]


def test_files_are_named_by_a_folder_or_in_braces(tmp_path: Path) -> None:
    task = sound_task(tmp_path / "toy")
    for name in ("images/1.png", "images/2.png", "left.txt", "right.txt"):
        (task / "env" / name).parent.mkdir(exist_ok=True)
        (task / "env" / name).write_text("x")
    edit(
        task / "description.md",
        "`train.py` writes",
        "`images/` and `{left,right}.txt`; `train.py` writes",
    )
    assert finding("description", task).status == "ok"


def test_one_sentence_may_protect_all_files(tmp_path: Path) -> None:
    task = sound_task(tmp_path / "toy")
    edit(task / "description.md", "Both\nare read-only.", "")
    with (task / "description.md").open("a") as file:
        file.write("\nAll of them are\nread-only.\n")
    assert finding("description", task).status == "ok"
