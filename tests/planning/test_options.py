"""The table of options: every value is checked once, and errors name the option and what is
allowed."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.values import PerModel
from pytest_mlab.errors import ConfigError
from pytest_mlab.planning.options import (
    BY_FIELD,
    NEWEST,
    TABLE,
    MlabOptions,
    add_flags,
    given,
    resolve,
)


def parsed(*words: str, ini: dict[str, Any] | None = None) -> MlabOptions:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_flags(parser.add_argument)
    args = parser.parse_args(words)
    return resolve(lambda dest: getattr(args, dest), (ini or {}).get)


def test_nothing_given_is_the_defaults_and_asks_for_no_run() -> None:
    assert parsed() == MlabOptions()
    assert not parsed().active


def test_table_and_object_hold_the_same_options() -> None:
    assert list(BY_FIELD) == [f.name for f in fields(MlabOptions)]


@pytest.mark.parametrize("option", TABLE, ids=lambda option: option.name)
def test_help_begins_with_a_capital_and_ends_without_a_period(option: Any) -> None:
    first = option.help[0]
    assert first.isupper() or option.help.startswith("litellm")
    assert not option.help.endswith(".")


def test_values_of_the_command_line() -> None:
    options = parsed(
        "--mlab-model=a/b",
        "--mlab-model=c",
        "--mlab-task=x*",
        "--mlab-repeats=2",
        "--mlab-max-time=1h30m",
        "--mlab-max-cost=1.5",
        "--mlab-run-max-cost=20",
        "--mlab-rpm=60",
        "--mlab-rpm=a/b=30",
        "--mlab-exclude-waits",
        "--mlab-network",
        "--mlab-fail-under=25%",
        "--mlab-run-dir=out",
        "--mlab-heartbeat=5m",
    )
    assert options.model == ("a/b", "c")
    assert options.task == ("x*",)
    assert (options.repeats, options.max_time, options.max_cost) == (2, 5400.0, 1.5)
    assert options.network
    assert options.fail_under == 0.25
    assert options.run_dir == Path("out")
    assert options.heartbeat == 300.0
    assert options.active
    assert options.budget.max_seconds == 5400.0
    assert options.budget.max_cost == 1.5
    assert options.budget.exclude_waits
    assert (options.run_max_cost, options.rpm, options.tpm) == (
        20.0,
        (PerModel(60), PerModel(30, "a/b")),
        (),
    )


def test_resume_may_stand_alone() -> None:
    assert parsed("--mlab-resume").resume == NEWEST
    assert parsed("--mlab-resume=run-1").resume == "run-1"
    assert parsed("--mlab-resume").active


def test_command_line_wins_over_ini_and_ini_over_default() -> None:
    ini = {
        "mlab_repeats": 3,
        "mlab_agent": ["mine"],
        "mlab_network": True,
        "mlab_sandbox": "",
        "mlab_task": [],
    }
    options = parsed("--mlab-repeats=5", ini=ini)
    assert options.repeats == 5
    assert options.agent == ("mine",)
    assert options.network
    assert options.sandbox == "auto"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mlab-repeats=0"], "--mlab-repeats=0: give a whole number from 1"),
        (["--mlab-repeats=many"], "--mlab-repeats=many: give a whole number"),
        (["--mlab-max-time=5x"], "--mlab-max-time=5x: '5x' is not a duration.*5h"),
        (["--mlab-max-cost=-1"], "--mlab-max-cost=-1: give a number above 0"),
        (["--mlab-max-cost=inf"], "give a number above 0"),
        (["--mlab-run-max-cost=0"], "--mlab-run-max-cost=0: give a number above 0"),
        (["--mlab-rpm=fast"], "--mlab-rpm=fast: give a whole number from 1, or model=number"),
        (["--mlab-tpm=gpt-4=0"], "--mlab-tpm=gpt-4=0: give a whole number from 1"),
        (["--mlab-threshold=nan"], "--mlab-threshold=nan: give a number such as 0.1"),
        (["--mlab-fail-under=120%"], "give a share between 0 and 1"),
        (["--mlab-data=ful"], "--mlab-data=ful: allowed: full, mini"),
        (["--mlab-gate=agregate"], "allowed: aggregate, "),
        (["--mlab-junit-properties=some"], "allowed: .*none"),
        (["--mlab-agent= "], "give a name"),
        (
            ["--mlab-gate=none", "--mlab-fail-under=0.5"],
            "--mlab-fail-under needs --mlab-gate=aggregate",
        ),
        (["--mlab-resume=a", "--mlab-run-dir=b"], "both name a run"),
        (["--mlab-record=a", "--mlab-replay=b"], "exclude each other"),
        (["--mlab-replay-mode=lenient"], "--mlab-replay-mode=lenient needs --mlab-replay=DIR"),
        (["--mlab-replay=a", "--mlab-replay-mode=fuzzy"], "allowed: lenient, strict"),
        (
            ["--mlab-resume=a", "--mlab-record=b"],
            "goes on recording or replaying as it began; leave --mlab-record out",
        ),
    ],
)
def test_bad_values_are_named_with_what_is_allowed(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parsed(*words)


def test_bad_ini_value_names_the_setting() -> None:
    with pytest.raises(ConfigError, match="mlab_repeats in the ini file=0"):
        parsed(ini={"mlab_repeats": 0})

    def broken(dest: str) -> Any:
        raise ValueError("expects a string, got int")

    with pytest.raises(ConfigError, match="mlab_model in the ini file: expects a string"):
        resolve(lambda dest: None, broken)


def test_given_lists_what_differs_from_the_defaults() -> None:
    options = parsed(
        "--mlab-agent=baseline", "--mlab-agent=reference", "--mlab-repeats=8", "--mlab-data=full"
    )
    assert given(options) == {"--mlab-agent": "baseline, reference", "--mlab-data": "full"}
    assert given(parsed("--mlab-rpm=60", "--mlab-rpm=a=5")) == {"--mlab-rpm": "60, a=5"}
