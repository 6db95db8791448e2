from __future__ import annotations

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
