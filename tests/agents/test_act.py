"""The act and react agents: their format, their history, and what they do when it outgrows the
model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents.act import ActAgent, ActSettings
from agents.react import ReactAgent
from pytest_mlab.core.actions import Action
from pytest_mlab.core.budget import Budget, Usage
from pytest_mlab.core.model_api import ModelFacts, ModelReply
from pytest_mlab.errors import BudgetExhausted, ContextWindowError, ProviderDownError
from tests.support.fake_environment import FakeEnvironment, FakeModel
from tests.support.research_replies import act_reply, react_reply

Reply = Callable[[str, Any], str]

SUBMIT = ("Final Answer", {"final_answer": "done"})


def run_of(number: int) -> tuple[str, dict[str, str]]:
    return ("Execute Script", {"script_name": f"train{number}.py"})


@pytest.fixture(params=[(ActAgent, act_reply), (ReactAgent, react_reply)], ids=["act", "react"])
def kind(request: pytest.FixtureRequest) -> tuple[type[ActAgent], Reply]:
    found: tuple[type[ActAgent], Reply] = request.param
    return found


def work(
    agent: type[ActAgent],
    replies: list[Any],
    settings: ActSettings | None = None,
    *,
    model: FakeModel | None = None,
    **more: Any,
) -> tuple[FakeEnvironment, FakeModel]:
    model = model or FakeModel(replies)
    env = FakeEnvironment(model, **more)
    agent(settings).run(env)
    return env, model


def test_acts_and_submits(kind: tuple[type[ActAgent], Reply]) -> None:
    agent, reply = kind
    env, model = work(agent, [reply(*run_of(1)), reply(*SUBMIT)])
    assert env.executed == [Action(*run_of(1)), Action(*SUBMIT)]
    assert {(asked.role, asked.temperature, asked.stop) for asked in model.asked} == {
        ("main", 0.5, ("Observation:",))
    }


def test_an_action_is_meant_by_a_name_in_another_form(kind: tuple[type[ActAgent], Reply]) -> None:
    agent, reply = kind
    name, arguments = run_of(1)
    env, _ = work(agent, [reply(f"functions.{name.lower()}", arguments), reply(*SUBMIT)])
    assert env.executed[0] == Action(name, arguments)


def test_an_answer_that_was_cut_off_is_told_so(kind: tuple[type[ActAgent], Reply]) -> None:
    agent, reply = kind
    thought = ({"type": "thinking", "thinking": "hm"},)
    cut = ModelReply("", "m", Usage(), 0.0, 0.0, finish_reason="length", reasoning=thought)
    env, model = work(agent, [cut, reply(*SUBMIT)])
    assert "it reached its token limit while it was still reasoning" in model.prompts()[1]
    assert len(env.executed) == 1


def test_the_prompt_holds_task_actions_and_the_whole_history(
    kind: tuple[type[ActAgent], Reply],
) -> None:
    agent, reply = kind
    replies = [reply(*run_of(n)) for n in range(1, 8)]
    _, model = work(
        agent,
        [*replies, reply(*SUBMIT)],
        react=lambda action: f"output of {action.args['script_name']}",
    )
    first, *_, last = model.prompts()
    assert "Make the number larger. It costs $5." in first
    assert "- Write File: does Write File" in first
    assert "- Reflection:" not in first
    assert first.endswith("Begin now.")
    for n in range(1, 8):
        assert (
            f'Action Input: {{"script_name": "train{n}.py"}}\nObservation:\n```\noutput of'
            f" train{n}.py\n```" in last
        )


def test_only_react_thinks() -> None:
    _, model = work(
        ReactAgent, [react_reply(*run_of(1), thought="hm, why not"), react_reply(*SUBMIT)]
    )
    assert "\nThought: " in model.prompts()[0]
    assert "Thought: hm, why not\nAction: Execute Script\n" in model.prompts()[1]
    _, model = work(ActAgent, [act_reply(*SUBMIT)])
    assert "Thought" not in model.prompts()[0]


def test_a_thought_that_is_missing_is_asked_for() -> None:
    env, model = work(ReactAgent, [act_reply(*SUBMIT), react_reply(*SUBMIT)])
    assert "it lacks Thought" in model.prompts()[1]
    assert "(Thought, Action, Action Input)" in model.prompts()[1]
    assert len(env.executed) == 1


def test_useless_answers_use_the_steps_up(kind: tuple[type[ActAgent], Reply]) -> None:
    agent, _ = kind
    model = FakeModel(["no idea"] * 100)
    env = FakeEnvironment(model, budget=Budget(max_steps=3))
    with pytest.raises(BudgetExhausted):
        agent(ActSettings(re_asks=1)).run(env)
    assert len(env.executed) == 3
    assert len(model.asked) == 4 * 2


def test_arguments_that_cannot_be_read_are_a_step_with_usage(
    kind: tuple[type[ActAgent], Reply],
) -> None:
    agent, reply = kind
    env, model = work(agent, [reply("Execute Script", "run it"), reply(*SUBMIT)])
    assert env.executed[0].args == {"unparsed": "run it"}
    assert '"script_name": "<the script_name>"' in model.prompts()[1].split("could not be read")[1]


def test_long_observations_are_cut() -> None:
    settings = ActSettings(observation_chars=100)
    _, model = work(
        ActAgent,
        [act_reply(*run_of(1)), act_reply(*SUBMIT)],
        settings,
        react=lambda a: "a" * 200 + "z",
    )
    assert f"{'a' * 50}\n[... 101 characters left out ...]\n{'a' * 49}z" in model.prompts()[1]


class TestContext:
    def test_the_oldest_steps_are_left_out_when_a_prompt_is_refused(
        self, kind: tuple[type[ActAgent], Reply]
    ) -> None:
        agent, reply = kind
        too_long = ContextWindowError("too long")
        replies = [
            *(reply(*run_of(n)) for n in range(1, 4)),
            too_long,
            reply(*run_of(4)),
            reply(*SUBMIT),
        ]
        env, model = work(agent, replies, react=lambda action: "x" * 5_000)
        *_, refused, again, last = model.prompts()
        assert len(again) < 0.8 * len(refused)
        assert "train1.py" not in again
        assert "train3.py" in again
        assert "earlier steps are left out" in again
        assert len(last) <= 0.8 * len(refused)  # it is remembered: no second refusal
        assert env.notes[0] == ("history_shortened", {"left_out": 1})

    def test_a_known_context_is_never_exceeded(self) -> None:
        class Counting(FakeModel):
            def complete(self, prompt: Any, **options: Any) -> ModelReply:
                reply = super().complete(prompt, **options)
                return ModelReply(
                    reply.text, "fake", Usage(len(self.asked[-1].prompt) // 4, 9), 0.0, 0.0
                )

        replies = [act_reply(*run_of(n)) for n in range(20)]
        model = Counting(
            [*replies, act_reply(*SUBMIT)],
            known=ModelFacts("fake", native_tools=True, context=6_000),
        )
        work(ActAgent, [], model=model, react=lambda action: "y" * 3_000)
        longest = max(len(prompt) for prompt in model.prompts())
        assert (
            3_000 < longest // 4 < 4_500
        )  # three quarters of the context, the rest is for the answer
        assert "train19.py" in model.prompts()[-1]

    def test_the_setting_wins(self) -> None:
        replies = [act_reply(*run_of(n)) for n in range(4)]
        settings = ActSettings(context_tokens=2_400)
        _, model = work(
            ActAgent, [*replies, act_reply(*SUBMIT)], settings, react=lambda action: "y" * 2_000
        )
        assert "earlier steps are left out" in model.prompts()[-1]

    def test_without_any_step_it_passes_through(self, kind: tuple[type[ActAgent], Reply]) -> None:
        with pytest.raises(ContextWindowError):
            work(kind[0], [ContextWindowError("too long")])


def test_a_provider_that_is_down_passes_through(kind: tuple[type[ActAgent], Reply]) -> None:
    with pytest.raises(ProviderDownError):
        work(kind[0], [ProviderDownError("500")])
