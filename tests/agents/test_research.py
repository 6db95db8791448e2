"""The research agent's facts, with a fake environment and a fake model."""

from __future__ import annotations

import pytest

from agents.research import HIDDEN, ResearchAgent, ResearchSettings
from agents.research_retrieval import ResearchRetrievalAgent
from pytest_mlab.core.actions import Action, Observation
from pytest_mlab.core.budget import Budget
from pytest_mlab.errors import BudgetExhausted, ContextWindowError, MlabError, ProviderDownError
from tests.support.fake_environment import ACTIONS, FakeEnvironment, FakeModel
from tests.support.research_replies import act_reply, react_reply, research_reply, submit

RUN = ("Execute Script", {"script_name": "train.py"})


def run_reply(number: int) -> str:
    return research_reply(
        "Execute Script", {"script_name": f"train{number}.py"}, thought=f"thought number {number}"
    )


def work(
    replies: list[str | Exception], settings: ResearchSettings | None = None, **more: object
) -> tuple[FakeEnvironment, FakeModel]:
    """Run the agent on the given replies; ``more`` goes to the environment."""
    model = FakeModel(replies)
    env = FakeEnvironment(model, **more)  # type: ignore[arg-type]
    ResearchAgent(settings or ResearchSettings()).run(env)
    return env, model


def test_acts_and_submits() -> None:
    env, model = work([research_reply(*RUN), submit()])
    assert env.executed == [Action(*RUN), Action("Final Answer", {"final_answer": "done"})]
    assert [(asked.role, asked.temperature, asked.stop) for asked in model.asked] == [
        ("main", 0.5, ("Observation:",))
    ] * 2


class TestPrompt:
    def test_holds_task_and_form(self) -> None:
        _, model = work([submit()])
        [prompt] = model.prompts()
        assert "Make the number larger. It costs $5." in prompt
        headings = [
            "Reflection:",
            "Research Plan and Status:",
            "Fact Check:",
            "Thought:",
            "Action:",
            "Action Input:",
        ]
        places = [prompt.index(f"\n{heading}") for heading in headings]
        assert places == sorted(places)
        assert "$" not in prompt.replace("$5", "")

    def test_shows_the_default_actions_with_their_usage(self) -> None:
        _, model = work([submit()])
        [prompt] = model.prompts()
        shown = {name for name in ACTIONS if f"- {name}: does {name}" in prompt}
        assert shown == set(ACTIONS) - HIDDEN
        assert '"script_name": "<the script_name>"' in prompt
        assert "Gives: what Execute Script gives" in prompt

    def test_actions_can_be_added_and_removed(self) -> None:
        settings = ResearchSettings(add_actions=("Read File",), remove_actions=("Copy File",))
        _, model = work([submit()], settings)
        assert "- Read File:" in model.prompts()[0]
        assert "- Copy File:" not in model.prompts()[0]

    def test_an_unknown_action_in_the_settings_is_named(self) -> None:
        with pytest.raises(
            MlabError, match=r"add_actions: no action 'Raed File'; there are List Files"
        ):
            work([submit()], ResearchSettings(add_actions=("Raed File",)))

    def test_shows_the_last_three_steps_in_full(self) -> None:
        replies: list[str | Exception] = [run_reply(n) for n in range(1, 6)]
        _, model = work(
            [*replies, submit()], react=lambda action: f"output of {action.args['script_name']}"
        )
        prompt = model.prompts()[-1]
        for number in (3, 4, 5):
            assert f"thought number {number}" in prompt
            assert f"Observation:\n```\noutput of train{number}.py\n```" in prompt
        assert "thought number 2" not in prompt
        assert "train2.py" not in prompt

    def test_the_plan_is_kept_without_marks(self) -> None:
        env, model = work([research_reply(*RUN, plan="1. **look**"), submit()])
        assert "Research Plan and Status: 1. look\n" in model.prompts()[1]
        assert ("plan", {"text": "1. look"}) in env.notes


class TestUnusableAnswers:
    def test_are_asked_for_again_with_a_reminder(self) -> None:
        env, model = work(["I think we should run it.", research_reply("Fly", {}), submit()])
        first, second, third = model.prompts()
        assert second.startswith(first)
        assert "it lacks Reflection" in second
        assert "'Fly'" in third
        assert [action.name for action in env.executed] == ["Final Answer"]
        assert [kind for kind, _ in env.notes[:2]] == ["answer_refused"] * 2

    @pytest.mark.parametrize("text", ["", "I'm sorry, I can't help with that.", "word " * 50])
    def test_use_up_steps_in_the_end(self, text: str) -> None:
        model = FakeModel([text] * 100)
        env = FakeEnvironment(model, budget=Budget(max_steps=3))
        with pytest.raises(BudgetExhausted):
            ResearchAgent().run(env)
        assert len(env.executed) == 3
        assert {step.observation.ok for step in env.history} == {False}
        assert len(model.asked) == 4 * (
            1 + 5
        )  # the fourth step is asked for, then there is no budget for it

    def test_leave_the_prompt_after_a_good_step(self) -> None:
        silent: list[str | Exception] = ["nothing useful"] * 6
        _, model = work([*silent, research_reply(*RUN), submit()])
        prompts = model.prompts()
        assert "no action ''" in prompts[6]
        assert "no action ''" not in prompts[7]
        assert "did Execute Script" in prompts[7]

    def test_an_action_that_is_not_shown_is_still_one(self) -> None:
        env, _ = work([research_reply("Read File", {"file_name": "a"}), submit()])
        assert env.history[0].observation.ok

    def test_without_re_asks(self) -> None:
        _, model = work(["nothing", submit()], ResearchSettings(re_asks=0))
        assert len(model.asked) == 2


class TestArguments:
    def test_are_rescued(self) -> None:
        env, _ = work(
            [research_reply("Execute Script", "```json\n{'script_name': 'a.py'}\n```"), submit()]
        )
        assert env.executed[0] == Action("Execute Script", {"script_name": "a.py"})
        assert ("arguments_rescued", {"how": "sanitised"}) in env.notes

    def test_that_cannot_be_read_give_an_error_that_leaves_the_prompt(self) -> None:
        replies: list[str | Exception] = [
            research_reply("Execute Script", "just run it"),
            research_reply(*RUN),
            submit(),
        ]
        env, model = work(replies)
        _, second, third = model.prompts()
        assert "could not be read" in second
        assert '"script_name": "<the script_name>"' in second.split("could not be read")[1]
        assert "could not be read" not in third
        assert not env.history[0].observation.ok
        assert env.executed[0].args == {"unparsed": "just run it"}

    def test_that_are_wrong_stay_in_the_prompt(self) -> None:
        _, model = work(
            [research_reply("Execute Script", {"file": "a"}), research_reply(*RUN), submit()]
        )
        assert "takes script_name" in model.prompts()[2]


class TestLongObservations:
    def test_are_summarised_in_blocks_by_the_fast_model(self) -> None:
        output = "a" * 10_000 + "b" * 10_000 + "c" * 3
        model = FakeModel(
            [research_reply(*RUN), submit()],
            fast=lambda p: "joined" if "reports on" in p else "part",
        )
        ResearchAgent().run(FakeEnvironment(model, react=lambda action: output))
        *blocks, combined = model.prompts("fast")
        assert ["a" * 10_000 in blocks[0], "b" * 10_000 in blocks[1], "ccc\n" in blocks[2]] == [
            True
        ] * 3
        assert "Part 2 of 3" in blocks[1]
        assert combined.count("part\n") == 3
        assert {asked.temperature for asked in model.asked if asked.role == "fast"} == {0.01}
        assert "joined" in model.prompts()[1]
        assert "aaaa" not in model.prompts()[1]

    def test_of_one_block_need_one_call(self) -> None:
        _, model = work([research_reply(*RUN), submit()], react=lambda action: "x" * 5_001)
        assert len(model.prompts("fast")) == 1
        assert "in short" in model.prompts()[1]

    def test_up_to_the_limit_are_shown_as_they_are(self) -> None:
        _, model = work([research_reply(*RUN), submit()], react=lambda action: "x" * 5_000)
        assert model.prompts("fast") == []
        assert "x" * 5_000 in model.prompts()[1]

    def test_are_cut_when_the_fast_model_says_nothing(self) -> None:
        model = FakeModel([research_reply(*RUN), submit()], fast=lambda prompt: "")
        ResearchAgent().run(FakeEnvironment(model, react=lambda action: "a" * 6_000 + "z"))
        assert "a" * 2_500 + "\n[... 1001 characters left out ...]\n" in model.prompts()[1]


class TestFormatEntries:
    def test_can_be_left_out(self) -> None:
        settings = ResearchSettings(format_entries=("Action Input", "Thought", "Action"))
        assert settings.format_entries == ("Thought", "Action", "Action Input")
        env, model = work(
            [react_reply(*RUN), react_reply("Final Answer", {"final_answer": "done"})], settings
        )
        first, second = model.prompts()
        assert "\nThought: " in first
        for absent in (
            "Reflection:",
            "Research Plan and Status",
            "Fact Check",
            "repeat the whole plan",
        ):
            assert absent not in first
        assert "Thought: go\nAction: Execute Script\n" in second
        assert len(env.executed) == 2

    @pytest.mark.parametrize("entries", [("Thought",), ("Action", "Action Input", "Musing"), ()])
    def test_must_hold_an_action_and_be_known(self, entries: tuple[str, ...]) -> None:
        with pytest.raises(
            ValueError, match=r"give some of Reflection, .*, among them Action and Action Input"
        ):
            ResearchSettings(format_entries=entries)

    def test_without_a_plan_the_last_step_is_what_is_looked_up(self) -> None:
        settings = ResearchSettings(
            format_entries=("Action", "Action Input"), retrieval=True, shown_steps=1
        )
        replies: list[str | Exception] = [
            act_reply(*RUN),
            act_reply(*RUN),
            act_reply("Final Answer", {"final_answer": "x"}),
        ]
        env, _ = work(replies, settings)
        [recall] = [
            action for action in env.executed if action.name == "Retrieval from Research Log"
        ]
        assert recall.args["current_plan"].startswith("Action: Execute Script")


class TestRetrieval:
    def test_logs_every_step_and_recalls_after_three(self) -> None:
        def react(action: Action) -> str | Observation:
            return (
                "you tried train1.py"
                if action.name == "Retrieval from Research Log"
                else f"did {action.name}"
            )

        model = FakeModel(
            [*(run_reply(n) for n in range(1, 5)), submit()], fast=lambda prompt: "entry"
        )
        env = FakeEnvironment(model, react=react)
        ResearchRetrievalAgent().run(env)
        assert [action.name for action in env.executed] == [
            *(["Execute Script", "Append Summary to Research Log"] * 4),
            "Retrieval from Research Log",
            "Final Answer",
        ]
        assert env.executed[1].args == {"content": "entry"}
        assert env.executed[8].args == {"current_plan": "1. look  2. act"}
        assert "thought number 1" in model.prompts("fast")[0]
        assert ["you tried train1.py" in prompt for prompt in model.prompts()] == [False] * 4 + [
            True
        ]

    def test_is_off_by_default(self) -> None:
        env, model = work([run_reply(1), run_reply(2), run_reply(3), run_reply(4), submit()])
        assert model.prompts("fast") == []
        assert {action.name for action in env.executed} == {"Execute Script", "Final Answer"}


class TestModelErrors:
    def test_a_prompt_that_is_too_long_loses_its_oldest_steps(self) -> None:
        too_long = ContextWindowError("too long")
        env, model = work([run_reply(1), run_reply(2), too_long, too_long, submit()])
        *_, whole, shorter, shortest = model.prompts()
        assert ["thought number 1" in p for p in (whole, shorter, shortest)] == [True, False, False]
        assert ["thought number 2" in p for p in (whole, shorter, shortest)] == [True, True, False]
        assert ("history_shortened", {"shown_steps": 0}) in env.notes

    def test_one_that_is_too_long_without_steps_passes_through(self) -> None:
        with pytest.raises(ContextWindowError):
            work([ContextWindowError("too long")])

    def test_a_provider_that_is_down_passes_through(self) -> None:
        with pytest.raises(ProviderDownError):
            work([ProviderDownError("500")])
