"""Plans and results as JSON and back."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.core.plan import Plan, PlannedAgent, PlannedTask, RunSettings
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.errors import StoreError, WireError
from pytest_mlab.store import serial

TRIAL = TrialId("house-price", "research", "openai/gpt-5", 3)
RESULT = TrialResult(
    TRIAL,
    Outcome.SUCCESS,
    "beats it",
    score=0.1,
    ended_by=EndedBy.SUBMITTED,
    ledger=Ledger(steps=7),
)
PLAN = Plan(
    run_id="2026-01-01-abc",
    settings=RunSettings(consent=("https://rules",), budget=Budget(max_cost=1.5)),
    tasks=(PlannedTask("house-price", "mlagentbench", "/somewhere/house-price", "ab" * 32),),
    agents=(PlannedAgent("research", "research", "cd" * 32, True),),
    trials=(TRIAL, replace(TRIAL, repeat=4)),
)


def test_plan_and_result_survive_the_way_there_and_back() -> None:
    assert serial.from_json(Plan, serial.to_json(PLAN), "plan.json") == PLAN
    assert serial.from_json(TrialResult, serial.to_json(RESULT), "result.json") == RESULT


@given(
    score=st.none() | st.floats(allow_nan=False),
    reason=st.text(),
    cost=st.floats(min_value=0, allow_nan=False),
    tokens=st.integers(min_value=0, max_value=2**53),
    outcome=st.sampled_from(Outcome),
)
def test_any_result_survives(
    score: float | None, reason: str, cost: float, tokens: int, outcome: Outcome
) -> None:
    ledger = Ledger(cost=cost, usage=Usage(prompt_tokens=tokens))
    result = replace(RESULT, score=score, reason=reason, ledger=ledger, outcome=outcome)
    assert serial.from_json(TrialResult, serial.to_json(result), "r") == result


def test_undefined_and_infinite_numbers_survive() -> None:
    back = serial.from_json(
        TrialResult, serial.to_json(replace(RESULT, score=math.nan, baseline=-math.inf)), "r"
    )
    assert math.isnan(back.score or 0.0)
    assert back.baseline == -math.inf


@pytest.mark.parametrize("value", [np.float64(1.0), np.float32(1.0), np.int64(1), np.bool_(True)])
def test_numpy_scalars_are_refused_by_field_and_type(value: object) -> None:
    with pytest.raises(
        WireError, match=rf"TrialResult.score holds a numpy.{type(value).__name__}.*make it a plain"
    ):
        serial.to_json(replace(RESULT, score=value))  # type: ignore[arg-type]


def test_a_path_in_a_nested_field_is_refused() -> None:
    settings = replace(PLAN.settings, consent=("x", Path("y")))  # type: ignore[arg-type]
    with pytest.raises(WireError, match=r"Plan.settings.consent\[1\] holds a pathlib"):
        serial.to_json(replace(PLAN, settings=settings))


def test_a_torn_file_is_named_with_the_way_out() -> None:
    with pytest.raises(StoreError, match=r"x/result.json .*--mlab-resume"):
        serial.from_json(TrialResult, serial.to_json(RESULT)[:50], "x/result.json")


def test_another_format_is_named() -> None:
    data = json.loads(serial.to_json(PLAN)) | {"format": 99}
    with pytest.raises(StoreError, match="format 99, this version of pytest-mlab reads format 1"):
        serial.from_json(Plan, json.dumps(data), "plan.json")
    with pytest.raises(StoreError, match="format None"):
        serial.from_json(Plan, "[]", "plan.json")


def test_a_wrong_value_is_named() -> None:
    data = json.loads(serial.to_json(RESULT)) | {"outcome": "victory"}
    with pytest.raises(StoreError, match=r"r.json: outcome: .*found 'victory'"):
        serial.from_json(TrialResult, json.dumps(data), "r.json")


@pytest.mark.parametrize(("sandbox", "isolated"), [("local", False), ("docker", True)])
def test_an_older_plan_does_not_say_whether_its_sandbox_isolates(
    sandbox: str, isolated: bool
) -> None:
    data = json.loads(serial.to_json(Plan("r", RunSettings(sandbox=sandbox), (), (), ())))
    del data["settings"]["isolated"]
    read = serial.from_json(Plan, json.dumps(data), "plan.json")
    assert read.settings.isolated is isolated
