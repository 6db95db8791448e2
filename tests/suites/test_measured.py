"""Writing measurements into task.toml: the right lines, and no other."""

from __future__ import annotations

import difflib

import pytest

from pytest_mlab.core.task import Baseline
from pytest_mlab.suites.measured import summarise, with_measured
from pytest_mlab.suites.toml import parse
from tests.suites.folders import TASK_TOML

RESULT = Baseline("starter", (0.25, 0.75), 0.5, 0.35355339059, 'a "fast" café')
VALUES = {
    "measured": "starter",
    "scores": [0.25, 0.75],
    "mean": 0.5,
    "std": 0.35355339059,
    "machine": 'a "fast" café',
}


def changed(before: str, after: str) -> set[str]:
    """Lines that only one of the texts has, marked - or +."""
    return {
        line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"
    }


def test_scores_are_summarised_as_they_are_written() -> None:
    result = summarise([1 / 3, 2 / 3], measured="starter", machine="m")
    assert result.scores == (0.333333333333, 0.666666666667)
    assert result.mean == pytest.approx(0.5)
    assert result.std == pytest.approx(0.2357022603955)
    assert summarise([2.0], measured="starter", machine="m").std == 0.0
    assert summarise([25096.938356164384] * 5, measured="starter", machine="m").std == 0.0


def test_an_existing_table_is_replaced_in_its_place() -> None:
    text = with_measured(TASK_TOML, "data.mini.baseline", RESULT)
    assert parse(text)["data"]["mini"]["baseline"] == VALUES
    assert parse(text)["data"]["full"] == parse(TASK_TOML)["data"]["full"]
    assert {line[2:].split(" ")[0] for line in changed(TASK_TOML, text)} == {
        "scores",
        "mean",
        "std",
        "machine",
    }
    assert with_measured(text, "data.mini.baseline", RESULT) == text


def test_a_new_table_follows_its_variant() -> None:
    text = with_measured(TASK_TOML, "data.mini.reference", RESULT)
    order = [line for line in text.splitlines() if line.startswith("[")]
    assert order[-3:] == ["[data.mini.baseline]", "[data.mini.reference]", "[[data.full.source]]"]
    assert parse(text)["data"]["mini"]["reference"] == VALUES
    assert all(line.startswith("+") for line in changed(TASK_TOML, text))
    assert "\n\n\n" not in text


def test_a_new_table_at_the_end_of_a_file_without_newline() -> None:
    text = with_measured(TASK_TOML.rstrip("\n"), "data.full.baseline", RESULT)
    assert text.startswith(TASK_TOML)
    assert parse(text)["data"]["full"]["baseline"] == VALUES


def test_a_variant_without_tables_gets_one_at_the_end() -> None:
    text = with_measured('[task]\nname = "x"\n', "data.mini.baseline", RESULT)
    assert parse(text) == {"task": {"name": "x"}, "data": {"mini": {"baseline": VALUES}}}


def test_comments_and_other_tables_stay() -> None:
    before = (
        "# head\n[data.mini.baseline]  # measured in spring\n# by hand\nscores = [\n  1.0,  #"
        " first\n  2.0,\n]\nmean = 1.5\nstd = 0.7\n\n# about the"
        " rest\n[data.mini.reference]\nscores = [9.0]\nmean = 9.0\n"
    )
    text = with_measured(before, "data.mini.baseline", RESULT)
    assert (
        text == '# head\n[data.mini.baseline]  # measured in spring\nmeasured = "starter"\nscores ='
        ' [0.25, 0.75]\nmean = 0.5\nstd = 0.35355339059\nmachine = "a \\"fast\\" café"\n# by'
        " hand\n\n# about the rest\n[data.mini.reference]\nscores = [9.0]\nmean = 9.0\n"
    )


def test_arrays_of_tables_are_no_other_table() -> None:
    before = "[[data.mini.source]]\nkind = 'generator'\n[[data.mini.source]]\nkind = 'embedded'\n"
    text = with_measured(before, "data.mini.baseline", RESULT)
    assert text.startswith(before)
    assert text.count("[data.mini.baseline]") == 1
