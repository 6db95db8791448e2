"""What an agent is told: all that it finds, what it must leave alone, what it has to hand in, how
that is scored."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from pytest_mlab.data.prepare import Prepared
from tests.tasks.conftest import load
from tests.tasks.test_every_task import TASKS

PreparedBy = Callable[[str], Prepared]


def words_of(name: str) -> str:
    """The description on one line, with lists in braces spelt out (``split/{a,b}.csv``)."""
    text = " ".join(load(name).description.split())
    for found in re.finditer(r"(\S*)\{([\w,]+)\}(\S*)", text):
        text += "".join(f" {found[1]}{part}{found[3]}" for part in found[2].split(","))
    return text


@pytest.mark.parametrize("name", TASKS)
def test_it_has_a_goal_a_metric_with_its_direction_and_a_submission(name: str) -> None:
    task, text = load(name), words_of(name)
    assert text.startswith("# ")
    assert "**Goal.**" in text
    assert f"**Metric: {task.metric.name}".lower() in text.lower()
    better = "higher is better" if task.sign > 0 else "lower is better"
    assert set(re.findall(r"higher is better|lower is better", text)) == {better}
    assert re.search(r"\*\*(Submission|What is scored)\.\*\*", text)


@pytest.mark.parametrize("name", TASKS)
def test_every_file_that_an_agent_finds_is_named(name: str, prepared: PreparedBy) -> None:
    task, text = load(name), words_of(name)
    starter = [
        path.relative_to(task.folder / "env").as_posix()
        for path in (task.folder / "env").rglob("*.*")
    ]
    files = [path for path in (*starter, *prepared(name).files) if "__pycache__" not in path]
    for path in files:
        parts = path.split("/")
        places = [path, parts[-1], *("/".join(parts[:end]) + "/" for end in range(1, len(parts)))]
        assert any(place in text for place in places), path


@pytest.mark.parametrize("name", TASKS)
def test_what_is_read_only_is_said_to_be_where_it_is_named(name: str) -> None:
    task = load(name)
    if not task.read_only:
        assert "nothing is read-only" in words_of(name)
        return
    points = [" ".join(point.split()) for point in re.split(r"\n- |\n\n", task.description)]
    protected = " ".join(point for point in points if "read-only" in point.lower())
    named = words_of(name) if "All of them are read-only" in protected else protected
    for pattern in task.read_only:
        assert pattern.removesuffix("*") in named, pattern


@pytest.mark.parametrize("name", TASKS)
def test_the_submission_is_described_down_to_its_columns(name: str) -> None:
    task, text = load(name), words_of(name)
    told = text[re.search(r"\*\*(Submission|What is scored)\.\*\*", text).start() :]  # type: ignore[union-attr]
    assert task.submission.path in told
    assert all(f"`{column}`" in told for column in task.submission.columns)
    if task.submission.kind == "csv":
        assert "in any order" in told
        assert re.search(r"Missing, repeated or unknown (ids|numbers)", told)
