"""The control agents replay a task's own actions."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.agentfiles.loader import load_agent, plan_agent
from pytest_mlab.core.actions import Action, Observation
from pytest_mlab.core.agent_api import Agent
from pytest_mlab.errors import BudgetExhausted, MlabError
from tests.support.fake_environment import FakeEnvironment, FakeModel

SCRIPT = (
    Action("Write File", {"file_name": "train.py", "content": "x"}),
    Action("Execute Script", {"script_name": "train.py"}),
    Action("Final Answer", {"final_answer": "done"}),
)


def agent(name: str) -> Agent:
    return load_agent(name, Path("/nowhere"))()


@pytest.mark.parametrize("name", ["baseline", "reference"])
def test_replays_and_stops_after_the_final_answer(name: str) -> None:
    env = FakeEnvironment(FakeModel(), scripts={name: [*SCRIPT, SCRIPT[0]]})
    agent(name).run(env)
    assert env.executed == list(SCRIPT)


@pytest.mark.parametrize("name", ["baseline", "reference"])
def test_needs_no_model(name: str) -> None:
    assert plan_agent(name, Path("/nowhere")).needs_model is False


def failing(action: Action) -> Observation:
    return Observation("Traceback: no numpy", ok=action.name != "Execute Script")


def test_the_reference_stops_at_a_failure() -> None:
    env = FakeEnvironment(FakeModel(), failing, scripts={"reference": SCRIPT})
    with pytest.raises(
        MlabError, match="step 2 of the reference, Execute Script, failed: Traceback: no numpy"
    ):
        agent("reference").run(env)
    assert len(env.executed) == 2


def test_the_control_submits_what_there_is() -> None:
    env = FakeEnvironment(FakeModel(), failing, scripts={"baseline": SCRIPT})
    agent("baseline").run(env)
    assert env.executed[-1].name == "Final Answer"


def test_the_end_of_the_budget_passes_through() -> None:
    env = FakeEnvironment(FakeModel(), scripts={"baseline": [SCRIPT[0]] * 3})
    env.history = []
    env.budget = type(env.budget)(max_steps=2)
    with pytest.raises(BudgetExhausted):
        agent("baseline").run(env)
