"""The autogpt agent: its prompt, commands, answers that are none, and its memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.autogpt import AutogptAgent, AutogptSettings
from pytest_mlab.core.actions import Action
from pytest_mlab.core.budget import Budget
from pytest_mlab.errors import BudgetExhausted, ContextWindowError, ProviderDownError
from tests.support.fake_environment import FakeEnvironment, FakeModel
from tests.support.research_replies import autogpt_reply

SUBMIT = autogpt_reply("Final Answer", {"final_answer": "done"})


def run_of(number: int) -> str:
    return autogpt_reply(
        "Execute Script", {"script_name": f"train{number}.py"}, thought=f"thought number {number}"
    )


def work(
    replies: list[Any], settings: AutogptSettings | None = None, **more: Any
) -> tuple[FakeEnvironment, FakeModel]:
    model = more.pop("model", None) or FakeModel(replies)
    env = FakeEnvironment(model, **more)
    AutogptAgent(settings).run(env)
    return env, model


def test_acts_and_submits() -> None:
    env, model = work([run_of(1), SUBMIT])
    assert env.executed == [
        Action("Execute Script", {"script_name": "train1.py"}),
        Action("Final Answer", {"final_answer": "done"}),
    ]
    assert {(asked.role, asked.temperature) for asked in model.asked} == {("main", 0.0)}


def test_the_prompt_holds_goals_task_commands_and_form() -> None:
    _, model = work([SUBMIT])
    system = model.asked[0].messages[0]
    assert system.role == "system"
    for part in (
        "1. Solve the task",
        "4. Give the Final Answer",
        "It costs $5.",
        "- Write File: does",
        '"criticism"',
    ):
        assert part in system.content
    assert "- Reflection:" not in system.content


def test_goals_can_be_given() -> None:
    _, model = work([SUBMIT], AutogptSettings(goals=("Be quick", "Be right")))
    assert "1. Be quick\n2. Be right\n\n" in model.prompts()[0]


@pytest.mark.parametrize(
    "name", ["execute_script", "Execute_Script", "EXECUTE SCRIPT", "`Execute Script`"]
)
def test_names_of_commands_may_be_written_in_other_ways(name: str) -> None:
    env, _ = work([autogpt_reply(name, {"script_name": "a.py"}), SUBMIT])
    assert env.executed[0] == Action("Execute Script", {"script_name": "a.py"})


def test_a_fence_and_words_around_the_object_do_no_harm() -> None:
    env, _ = work([f"Here you are:\n```json\n{run_of(1)}\n```", SUBMIT])
    assert env.executed[0].name == "Execute Script"


UNUSABLE = [
    ("I would look around.", "it is not a JSON object"),
    ('{"thoughts": {"text": "hm"}}', "it has no command with a name"),
    ('{"command": "List Files"}', "it has no command with a name"),
    (autogpt_reply("Fly", {}), "'Fly' is not a command"),
    (autogpt_reply("List Files", "."), "its args are not a JSON object"),
]


@pytest.mark.parametrize(("text", "problem"), UNUSABLE, ids=[u[1] for u in UNUSABLE])
def test_an_answer_that_cannot_be_used_is_asked_for_again(text: str, problem: str) -> None:
    env, model = work([text, SUBMIT])
    assert problem in model.prompts()[1]
    assert env.notes == [("answer_refused", {"attempt": 1, "problem": problem})]
    assert len(env.executed) == 1


@pytest.mark.parametrize(("text", "problem"), UNUSABLE, ids=[u[1] for u in UNUSABLE])
def test_in_the_end_it_uses_the_steps_up(text: str, problem: str) -> None:
    model = FakeModel([text] * 100)
    env = FakeEnvironment(model, budget=Budget(max_steps=3))
    with pytest.raises(BudgetExhausted):
        AutogptAgent(AutogptSettings(re_asks=1)).run(env)
    assert [step.observation.ok for step in env.history] == [False] * 3
    assert len(model.asked) == 4 * 2
    assert problem in model.prompts()[2]


class TestMemory:
    def test_shows_the_last_steps_and_an_account_of_the_others(self) -> None:
        def fast(prompt: str) -> str:
            return (
                f"account of {prompt.count('thought number')} and"
                f" {'earlier' if 'account of' in prompt else 'nothing'}"
            )

        model = FakeModel([*(run_of(n) for n in range(1, 5)), SUBMIT], fast=fast)
        work(
            [],
            AutogptSettings(shown_steps=2),
            model=model,
            react=lambda a: f"output of {a.args['script_name']}",
        )
        last = model.asked[-1]
        assert [m.role for m in last.messages] == [
            "system",
            "user",
            "assistant",
            "user",
            "assistant",
            "user",
            "user",
        ]
        assert last.messages[1].content.endswith("account of 1 and earlier")
        assert json.loads(last.messages[2].content)["thoughts"]["text"] == "thought number 3"
        assert last.messages[3].content == "Command Execute Script returned:\noutput of train3.py"
        assert "thought number 2" not in last.prompt
        assert len(model.prompts("fast")) == 2

    def test_a_fast_model_that_says_nothing_wipes_nothing_out(self) -> None:
        model = FakeModel([run_of(1), run_of(2), SUBMIT], fast=lambda prompt: "")
        work(
            [],
            AutogptSettings(shown_steps=0),
            model=model,
            react=lambda a: f"output of {a.args['script_name']}",
        )
        assert "output of train1.py" in model.prompts()[-1]
        assert "output of train2.py" in model.prompts()[-1]

    def test_a_prompt_that_does_not_fit_gives_up_its_oldest_steps(self) -> None:
        replies = [
            *(run_of(n) for n in range(1, 5)),
            ContextWindowError("too long"),
            run_of(5),
            SUBMIT,
        ]
        _, model = work(replies, react=lambda action: "y" * 3_000)
        main = model.prompts()
        assert len(main[5]) <= 0.8 * len(main[4])
        assert len(main[6]) <= 0.8 * len(main[4])
        assert "thought number 1" not in main[5]
        assert "thought number 4" in main[5]

    def test_without_any_step_it_passes_through(self) -> None:
        with pytest.raises(ContextWindowError):
            work([ContextWindowError("too long")])

    def test_the_setting_bounds_the_prompt(self) -> None:
        settings = AutogptSettings(context_tokens=4_000, shown_steps=50)
        _, model = work(
            [*(run_of(n) for n in range(9)), SUBMIT], settings, react=lambda action: "y" * 1_500
        )
        assert (
            max(map(len, model.prompts())) <= 9_000
        )  # three characters a token, a quarter kept for the answer


def test_a_provider_that_is_down_passes_through() -> None:
    with pytest.raises(ProviderDownError):
        work([ProviderDownError("500")])
