from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.plan import RunSettings
from pytest_mlab.reporting import text
from pytest_mlab.store.shared import Spending


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0.0, "0.0s"),
        (59.94, "59.9s"),
        (59.96, "1m00s"),
        (723.4, "12m03s"),
        (18000, "5h00m"),
        (3599.7, "1h00m"),
    ],
)
def test_durations(value: float | None, shown: str) -> None:
    assert text.seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0, "0"),
        (31.5, "31.5"),
        (950, "950"),
        (1234, "1.2k"),
        (182400, "182k"),
        (1.2e6, "1.2M"),
        (3e9, "3.0G"),
    ],
)
def test_counts(value: float | None, shown: str) -> None:
    assert text.count(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "?"), (0.0, "0.00"), (0.0012, "0.0012"), (1.2, "1.20"), (1234.5, "1234")],
)
def test_dollars_never_show_unknown_as_nothing(value: float | None, shown: str) -> None:
    assert text.dollars(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (0.123, "+12.3%"), (-0.5, "-50.0%"), (12.34, "+1234%"), (1e6, "+1e+08%")],
)
def test_improvements(value: float | None, shown: str) -> None:
    assert text.percent(value) == shown


@given(st.floats(0, 3e7))
def test_figures_fit_their_columns(value: float) -> None:
    assert len(text.seconds(value)) <= 7
    assert len(text.count(value)) <= 6
    assert len(text.percent(value)) <= 8


@given(st.text())
def test_terminal_text_is_printable_ascii_on_one_line(found: str) -> None:
    shown = text.ascii_only(found)
    assert shown.isascii()
    assert shown.isprintable()


def test_long_words_stick_out_and_are_not_broken() -> None:
    assert text.wrapped("a " + "b" * 30 + " c", 20, "  ") == ["  a", "  " + "b" * 30, "  c"]


def test_limits_of_the_whole_run() -> None:
    assert text.about_limits(RunSettings()) == ""
    models = (
        ModelSettings("a", "m", rpm=1),
        ModelSettings("b", "m", tpm=30_000),
        ModelSettings("c", "other"),
    )
    settings = RunSettings(run_max_cost=5.0, models=models)
    shared = "1 request, 30.0k tokens a minute"
    assert text.about_limits(settings) == f"$5.00 for the run; a {shared}; b {shared}"


def test_what_a_run_has_spent_of_its_limit() -> None:
    assert text.about_spending(Spending(1.0, 2, 0), None) == ""
    assert text.about_spending(Spending(3.2, 2, 0), 5.0) == "spent $3.20 of $5.00 for the run"
    assert text.about_spending(Spending(3.2, 2, 1), 5.0).endswith(
        " for the run, and 1 call of unknown price"
    )


def test_waits_for_providers() -> None:
    assert "10m without waits for providers" in text.conditions(
        RunSettings(budget=Budget(50, 600.0, exclude_waits=True))
    )


NAMES = (
    "amp-parkinsons-disease-progression-prediction",
    "amp-parkinsons-disease-progression-2",
    "imdb",
)


AGENTS = ("research with openai/gpt-4o-mini", "research[retrieval=true] with openai/gpt-4o-mini")


def test_names_that_do_not_fit_go_on_below_and_are_never_cut() -> None:
    rows = [["task", "agent", "dollars"]]
    rows += [[name, agent, "1.50"] for name in NAMES for agent in AGENTS]
    for line, row in zip(text.grid(rows, [20], 140, gap=2), rows, strict=True):
        assert re.split("  +", line) == row
    lines = text.grid(rows, [20], 80, gap=2)
    assert all(len(line) <= 80 for line in lines)
    # figures stand below one another
    assert len({line.index("1.50") for line in lines if "1.50" in line}) == 1
    split = lines[0].index("agent")
    for column, cut in ((0, slice(0, split)), (1, slice(split, 60))):
        found = "".join(line[cut] for line in lines)
        assert found.replace(" ", "") == "".join(row[column] for row in rows).replace(" ", "")


def test_where_the_first_name_alone_is_too_long_it_is_in_one_piece() -> None:
    rows = [[NAMES[0], "mini", "1"], ["imdb", "full", "2"]]
    assert text.grid(rows, [3], 40) == [
        NAMES[0],
        " " * 32 + "mini   1",
        "imdb" + " " * 28 + "full   2",
    ]


def test_the_first_column_has_a_least_width_and_others_their_own() -> None:
    assert text.grid([["a", "1"], ["bb", "22"]], [3], least=[5]) == ["a       1", "bb     22"]
    assert text.grid([["a", "b-cd", "1"]], [2], 8) == ["a b-   1", "  cd"]


def test_the_width_is_that_of_the_terminal_and_at_least_80(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in (("132", 132), ("40", 80)):
        monkeypatch.setenv("COLUMNS", columns)
        assert text.terminal_width() == width
