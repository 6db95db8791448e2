"""The langchain agent with the real LangChain; only the model's replies are made up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.langchain import LangchainAgent, LangchainSettings
from pytest_mlab.core.actions import Observation
from pytest_mlab.core.budget import Budget, Usage
from pytest_mlab.core.model_api import Message, ModelReply, ToolCall
from pytest_mlab.errors import BudgetExhausted, ContextWindowError, MlabError, ProviderDownError
from tests.support.fake_environment import FakeEnvironment, FakeModel

LIST, RUN = ("List Files", {"dir_path": "."}), ("Execute Script", {"script_name": "train.py"})
SUBMIT = ("Final Answer", {"final_answer": "done"})
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _extra() -> None:
    pytest.importorskip("langchain", reason="needs the extra: pip install 'pytest-mlab[langchain]'")


def calls(*acts: tuple[str, Any]) -> tuple[ToolCall, ...]:
    """A reply that calls these actions; arguments that are a text go out as they are."""
    return tuple(
        ToolCall(f"call{n}", name, args if isinstance(args, str) else json.dumps(args))
        for n, (name, args) in enumerate(acts)
    )


def played(*replies: Any, steps: int = 20, **more: Any) -> FakeEnvironment:
    env = FakeEnvironment(FakeModel(main=[*replies]), budget=Budget(max_steps=steps), **more)
    LangchainAgent(LangchainSettings(nudges=2)).run(env)
    return env


def asked(env: FakeEnvironment) -> list[tuple[Message, ...]]:
    assert isinstance(env.model, FakeModel)
    return [one.messages for one in env.model.asked]


def did(env: FakeEnvironment) -> list[tuple[str, dict[str, Any]]]:
    return [(action.name, dict(action.args)) for action in env.executed]


def test_calls_of_a_reply_are_done_in_order_and_each_is_answered() -> None:
    env = played(calls(LIST, RUN, LIST), calls(SUBMIT))
    assert did(env) == [LIST, RUN, LIST, SUBMIT]
    system, task, reply, *answers = asked(env)[1]
    assert (system.role, task.role, reply.role) == ("system", "user", "assistant")
    assert "Make the number larger. It costs $5." in task.content
    assert [call.name for call in reply.tool_calls] == [
        "List Files",
        "Execute Script",
        "List Files",
    ]
    assert [(m.role, m.content, m.tool_call_id) for m in answers] == [
        ("tool", "did List Files", "call0"),
        ("tool", "did Execute Script", "call1"),
        ("tool", "did List Files", "call2"),
    ]


def test_reasoning_goes_back_with_the_reply_that_it_came_with() -> None:
    thought = ({"type": "redacted_thinking", "data": "enc"},)
    first = ModelReply("", "m", Usage(), 0.0, 0.0, tool_calls=calls(LIST), reasoning=thought)
    said = [message for message in asked(played(first, calls(SUBMIT)))[-1] if message.tool_calls]
    assert [message.reasoning for message in said] == [thought]


def test_nothing_follows_the_final_answer() -> None:
    env = played(calls(SUBMIT, LIST))
    assert did(env) == [SUBMIT]
    assert len(asked(env)) == 1


def test_the_actions_are_offered_but_for_the_research_log() -> None:
    env = played(calls(SUBMIT))
    assert isinstance(env.model, FakeModel)
    names = [spec.name for spec in env.model.asked[0].tools]
    assert "Edit Script (AI)" in names
    assert "Append Summary to Research Log" not in names


def test_actions_can_be_chosen() -> None:
    env = FakeEnvironment(FakeModel(main=[calls(SUBMIT)]))
    settings = LangchainSettings(add_actions=("Reflection",), remove_actions=("Python REPL",))
    LangchainAgent(settings).run(env)
    assert isinstance(env.model, FakeModel)
    names = [spec.name for spec in env.model.asked[0].tools]
    assert "Reflection" in names
    assert "Python REPL" not in names
    with pytest.raises(MlabError, match="no action 'Dance'"):
        LangchainAgent(LangchainSettings(add_actions=("Dance",))).run(env)


@pytest.mark.parametrize(
    ("name", "text", "given", "why"),
    [
        ("Dance", "{}", {}, "There is no action 'Dance'"),
        ("Execute Script", "{broken", {"unparsed": "{broken"}, "no JSON object"),
        ("Execute Script", "[1]", {"unparsed": "[1]"}, "no JSON object (it is a list)"),
        ("Execute Script", "", {}, "missing script_name"),
        (
            "Execute Script",
            '{"self": 1, "config": 2, "run_manager": 3}',
            {"self": 1, "config": 2, "run_manager": 3},
            "unknown self, config, run_manager",
        ),
    ],
    ids=["no action", "no JSON", "no object", "nothing", "names that Python uses"],
)
def test_what_cannot_be_done_is_answered_and_a_step_after_some_in_a_row(
    name: str, text: str, given: dict[str, Any], why: str
) -> None:
    env = played(*[calls((name, text))] * 3, calls(SUBMIT))
    assert did(env) == [(name, given), SUBMIT]
    first, third = asked(env)[1][-1], asked(env)[3][-1]
    assert (first.role, why in first.content) == ("tool", True)
    assert third.content == env.history[0].observation.text


def test_a_reply_that_was_cut_off_is_told_so() -> None:
    thought = ({"type": "thinking", "thinking": "hm"},)
    cut = ModelReply("", "m", Usage(), 0.0, 0.0, finish_reason="length", reasoning=thought)
    nudge = asked(played(cut, calls(SUBMIT)))[1][-1].content
    assert "(it reached its token limit while it was still reasoning)" in nudge


def test_errors_are_read_by_the_model() -> None:
    env = played(calls(RUN), calls(SUBMIT), react=lambda action: Observation("it failed", ok=False))
    assert asked(env)[1][-1].content == "it failed"


def test_a_reply_without_a_call_is_nudged_and_then_believed() -> None:
    env = played("I think", calls(LIST), "hm", "hm", "I am done.")
    assert did(env) == [LIST]
    roles = [message.role for message in asked(env)[-1]]
    assert roles == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert ("gave_up", {"replies_without_an_action": 3}) in env.notes


def test_the_budget_and_no_count_of_nodes_ends_the_loop() -> None:
    steps = 60
    env = FakeEnvironment(FakeModel(main=[calls(LIST)] * 100), budget=Budget(max_steps=steps))
    with pytest.raises(BudgetExhausted):
        LangchainAgent().run(env)
    assert len(env.history) == steps


@pytest.mark.parametrize(
    "error",
    [
        ProviderDownError("down"),
        BudgetExhausted("no tokens left", limit="tokens"),
        MlabError("other"),
    ],
)
@pytest.mark.parametrize("where", ["model", "action"])
def test_what_ends_a_trial_passes_through_the_graph(error: MlabError, where: str) -> None:
    def react(action: Any) -> str:
        raise error

    replies = [error] if where == "model" else [calls(LIST)]
    with pytest.raises(type(error), match=str(error)):
        played(*replies, react=react)


def test_turns_that_no_longer_fit_are_forgotten_oldest_first() -> None:
    env = played(*[calls(LIST)] * 4, ContextWindowError("too long"), calls(RUN), calls(SUBMIT))
    assert did(env) == [LIST] * 4 + [RUN, SUBMIT]
    assert env.notes == [("turns_forgotten", {"turns": 2})]
    whole, narrowed, later = asked(env)[-3:]
    assert [len(whole), len(narrowed), len(later)] == [2 + 8, 2 + 4, 2 + 6]
    assert [message.role for message in narrowed[:3]] == ["system", "user", "assistant"]


def test_a_task_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(ContextWindowError):
        played(*[ContextWindowError("too long")] * 3)


def test_long_observations_are_cut() -> None:
    env = FakeEnvironment(FakeModel(main=[calls(RUN), calls(SUBMIT)]), lambda action: "x" * 5000)
    LangchainAgent(LangchainSettings(observation_chars=300)).run(env)
    assert len(asked(env)[1][-1].content) < 400


def test_the_agent_s_file_imports_without_langchain() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['langchain', 'langchain_core',"
        " 'langgraph']))\nfrom pathlib import Path; from pytest_mlab.agentfiles.loader import"
        " plan_agent\nprint(plan_agent('langchain', Path('.')).requirements)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "('langchain>=1.0,<2', 'langgraph>=1.0,<2')", done.stderr
