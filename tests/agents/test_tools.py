"""The tools agent: calls and their answers, replies without any, and a conversation that outgrows
its model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.tools import ToolsAgent, ToolsSettings
from pytest_mlab.core.actions import Action, Observation
from pytest_mlab.core.budget import Budget, Usage
from pytest_mlab.core.model_api import Message, ModelFacts, ModelReply, ToolCall
from pytest_mlab.errors import BudgetExhausted, ContextWindowError, ProviderDownError
from tests.support.fake_environment import Asked, FakeEnvironment, FakeModel


def calls(*wanted: tuple[str, Any]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(f"c{n}", name, args if isinstance(args, str) else json.dumps(args))
        for n, (name, args) in enumerate(wanted)
    )


SUBMIT = calls(("Final Answer", {"final_answer": "done"}))


def run_of(number: int) -> tuple[ToolCall, ...]:
    return calls(("Execute Script", {"script_name": f"train{number}.py"}))


def work(
    replies: list[Any], settings: ToolsSettings | None = None, **more: Any
) -> tuple[FakeEnvironment, FakeModel]:
    model = more.pop("model", None) or FakeModel(replies)
    env = FakeEnvironment(model, **more)
    ToolsAgent(settings).run(env)
    return env, model


def contents(asked: Asked) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in asked.messages]


def test_offers_the_actions_as_tools_and_no_format() -> None:
    _, model = work([SUBMIT])
    [asked] = model.asked
    names = {tool.name for tool in asked.tools}
    assert {"Write File", "Execute Script", "Final Answer", "Edit Script (AI)"} <= names
    assert not names & {
        "Reflection",
        "Append Summary to Research Log",
        "Retrieval from Research Log",
    }
    assert [message.role for message in asked.messages] == ["system", "user"]
    assert "Make the number larger. It costs $5." in asked.prompt
    assert asked.temperature is None
    assert asked.stop == ()


def test_actions_can_be_added_and_removed() -> None:
    _, model = work(
        [SUBMIT], ToolsSettings(add_actions=("Reflection",), remove_actions=("Edit Script (AI)",))
    )
    names = {tool.name for tool in model.asked[0].tools}
    assert "Reflection" in names
    assert "Edit Script (AI)" not in names


def test_reasoning_goes_back_with_the_reply_that_it_came_with() -> None:
    thought = ({"type": "thinking", "thinking": "hm", "signature": "c2ln"},)
    first = ModelReply("", "fake", Usage(), 0.0, 0.0, tool_calls=run_of(1), reasoning=thought)
    idle = ModelReply("", "fake", Usage(), 0.0, 0.0, reasoning=thought)
    _, model = work([first, idle, SUBMIT])
    said = [m for m in model.asked[-1].messages if m.role == "assistant"]
    assert [message.reasoning for message in said] == [thought, thought]


def test_every_call_is_answered_in_order() -> None:
    three = calls(
        ("List Files", {"dir_path": "."}),
        ("Execute Script", {"script_name": "a.py"}),
        ("Fly", {"to": "the moon"}),
    )
    env, model = work([three, SUBMIT])
    assert [action.name for action in env.executed] == [
        "List Files",
        "Execute Script",
        "Final Answer",
    ]
    *_, said, first, second, third = model.asked[-1].messages
    assert said.tool_calls == three
    assert [(m.role, m.tool_call_id) for m in (first, second, third)] == [
        ("tool", "c0"),
        ("tool", "c1"),
        ("tool", "c2"),
    ]
    assert first.content == "did List Files\n(step 1 of 50)"
    assert "There is no action 'Fly'" in third.content


def test_the_final_answer_ends_it_in_the_middle_of_a_reply() -> None:
    env, model = work([(*SUBMIT, *run_of(1))])
    assert [action.name for action in env.executed] == ["Final Answer"]
    assert len(model.asked) == 1


def test_the_end_of_the_budget_in_the_middle_of_a_reply_passes_through() -> None:
    env = FakeEnvironment(
        FakeModel([(*run_of(1), *run_of(2), *run_of(3))]), budget=Budget(max_steps=2)
    )
    with pytest.raises(BudgetExhausted):
        ToolsAgent().run(env)
    assert len(env.executed) == 2


class TestRepliesWithoutAnAction:
    def test_are_answered_with_a_nudge(self) -> None:
        env, model = work(["I would run it.", run_of(1), "", SUBMIT])
        assert contents(model.asked[1])[-2][1] == "I would run it."
        assert contents(model.asked[1])[-1] == ("user", contents(model.asked[3])[-1][1])
        assert "called no tool" in contents(model.asked[1])[-1][1]
        assert contents(model.asked[3])[-2] == ("assistant", "(no words)")
        assert len(env.executed) == 2

    def test_that_were_cut_off_are_told_so(self) -> None:
        thought = ({"type": "thinking", "thinking": "hm"},)
        cut = ModelReply("", "m", Usage(), 0.0, 0.0, finish_reason="length", reasoning=thought)
        _, model = work([cut, SUBMIT])
        nudge = contents(model.asked[1])[-1][1]
        assert "nothing happened (it reached its token limit while it was still reasoning)" in nudge

    def test_end_the_work_when_they_do_not_stop(self) -> None:
        env, model = work([run_of(1), *["I am done."] * 10], ToolsSettings(nudges=2))
        assert len(model.asked) == 1 + 3
        assert env.notes[-1] == ("gave_up", {"replies_without_an_action": 3})
        assert not env.done

    def test_an_action_in_between_counts_as_a_new_start(self) -> None:
        env, _ = work(["a", run_of(1), "b", run_of(2), "c", SUBMIT], ToolsSettings(nudges=1))
        assert env.done


class TestArguments:
    @pytest.mark.parametrize(
        "text", ["{script_name: train.py}", '{"script_name": "tra', "[1]", "null", '"x"']
    )
    def test_that_are_no_object_are_an_error_and_no_step(self, text: str) -> None:
        env, model = work([calls(("Execute Script", text)), SUBMIT])
        assert [action.name for action in env.executed] == ["Final Answer"]
        *_, said, answer = model.asked[1].messages
        assert said.tool_calls == (ToolCall("c0", "Execute Script", "{}"),)
        assert answer.role == "tool"
        assert '"script_name": "<the script_name>"' in answer.content
        assert env.notes[0][0] == "call_refused"

    @pytest.mark.parametrize("name", ["Execute Script", "Fly"])
    def test_that_never_fit_are_steps_after_as_many_replies_as_nudges(self, name: str) -> None:
        env = FakeEnvironment(FakeModel([calls((name, "{"))] * 9), budget=Budget(max_steps=2))
        with pytest.raises(BudgetExhausted):
            ToolsAgent(ToolsSettings(nudges=2)).run(env)
        assert env.executed == [Action(name, {"unparsed": "{"})] * 2

    def test_are_read_as_they_are_meant(self) -> None:
        env, model = work(
            [calls(("functions.write_file", {"fileName": "a", "content": 3})), SUBMIT]
        )
        assert env.executed[0] == Action("Write File", {"file_name": "a", "content": "3"})
        assert model.asked[1].messages[-1].content == "did Write File\n(step 1 of 50)"

    def test_that_were_cut_off_are_told_so(self) -> None:
        class Cut(FakeModel):
            def complete(self, prompt: Any, **options: Any) -> ModelReply:
                reply = super().complete(prompt, **options)
                return ModelReply(
                    "",
                    "fake",
                    Usage(),
                    0.0,
                    0.0,
                    finish_reason="length",
                    tool_calls=reply.tool_calls,
                )

        _, model = work(
            [], model=Cut([calls(("Write File", '{"file_name": "a", "content": "xx')), SUBMIT])
        )
        assert "token limit" in model.asked[1].messages[-1].content

    def test_none_at_all_are_an_empty_object(self) -> None:
        _, model = work([calls(("Execute Script", "")), SUBMIT])
        assert "missing script_name" in model.asked[1].messages[-1].content

    def test_raw_line_breaks_are_read(self) -> None:
        env, _ = work([calls(("Write File", '{"file_name": "a", "content": "x\ny"}')), SUBMIT])
        assert env.executed[0].args["content"] == "x\ny"


class Counting(FakeModel):
    """Reports a token for four characters."""

    def complete(self, prompt: Any, **options: Any) -> ModelReply:
        reply = super().complete(prompt, **options)
        return ModelReply(
            reply.text,
            "fake",
            Usage(size(self.asked[-1]) // 4, 9),
            0.0,
            0.0,
            tool_calls=reply.tool_calls,
        )


def size(asked: Asked) -> int:
    tools = sum(len(f"{t.name}{t.summary}{t.returns}{json.dumps(t.schema)}") for t in asked.tools)
    return tools + sum(_message_size(message) for message in asked.messages)


def _message_size(message: Message) -> int:
    return len(message.content) + sum(
        len(call.name) + len(call.arguments) for call in message.tool_calls
    )


class TestContext:
    def test_near_the_known_limit_the_older_part_becomes_notes(self) -> None:
        known = ModelFacts("fake", native_tools=True, context=8_000)
        model = Counting(
            [*(run_of(n) for n in range(20)), SUBMIT], fast=lambda prompt: "NOTES", known=known
        )
        env, _ = work(
            [],
            ToolsSettings(keep_turns=2),
            model=model,
            react=lambda action: f"{action.args} " + "y" * 3_000,
        )
        main = [asked for asked in model.asked if asked.role == "main"]
        assert max(size(asked) // 4 for asked in main) <= 6_000
        last = main[-1]
        assert last.messages[2].content.endswith("NOTES")
        assert [m.role for m in last.messages[:3]] == ["system", "user", "user"]
        assert "train19.py" in last.prompt
        notes = [data for kind, data in env.notes if kind == "summarised"]
        assert 2 <= len(notes) <= 8
        assert "train0.py" in model.prompts("fast")[0]
        assert any("The notes so far:\nNOTES" in prompt for prompt in model.prompts("fast")[1:])

    def test_calls_and_answers_stay_together(self) -> None:
        known = ModelFacts("fake", native_tools=True, context=6_000)
        model = Counting([*(run_of(n) + run_of(n + 100) for n in range(12)), SUBMIT], known=known)
        work([], ToolsSettings(keep_turns=1), model=model, react=lambda action: "y" * 2_500)
        for asked in model.asked:
            made = [call.id for message in asked.messages for call in message.tool_calls]
            assert made == [
                message.tool_call_id for message in asked.messages if message.role == "tool"
            ]

    def test_a_refused_prompt_is_shortened_and_its_size_remembered(self) -> None:
        too_long = ContextWindowError("too long")
        replies = [
            *(run_of(n) for n in range(8)),
            too_long,
            *(run_of(n) for n in range(8, 12)),
            SUBMIT,
        ]
        _, model = work(replies, react=lambda action: "y" * 1_500)
        sizes = [size(asked) for asked in model.asked if asked.role == "main"]
        assert sizes[8] == max(sizes)
        assert max(sizes[9:]) <= 0.8 * sizes[8]

    def test_long_answers_are_cut_before_more_is_forgotten(self) -> None:
        _, model = work(
            [run_of(1), ContextWindowError("too long"), SUBMIT], react=lambda action: "y" * 9_000
        )
        assert model.prompts("fast") == []
        assert "characters left out" in model.asked[-1].messages[-1].content

    def test_without_words_from_the_fast_model_an_outline_is_kept(self) -> None:
        model = FakeModel(
            [run_of(1), run_of(2), ContextWindowError("too long"), SUBMIT], fast=lambda prompt: ""
        )
        work([], model=model)
        assert (
            '- Execute Script {"script_name": "train1.py"}: did Execute Script'
            in model.asked[-1].prompt
        )

    def test_a_fast_model_that_reads_less_gets_smaller_blocks(self) -> None:
        def fast(prompt: str) -> str:
            if len(prompt) > 9_000:
                raise ContextWindowError("too long for the fast one")
            return "NOTES"

        model = FakeModel(
            [*(run_of(n) for n in range(8)), ContextWindowError("too long"), SUBMIT], fast=fast
        )
        env, _ = work([], model=model, react=lambda action: "y" * 8_000)
        assert env.done
        assert "NOTES" in model.asked[-1].prompt

    def test_when_nothing_is_left_to_forget_it_passes_through(self) -> None:
        too_long = ContextWindowError("too long")
        with pytest.raises(ContextWindowError):
            work([run_of(1), run_of(2), *[too_long] * 20])


def test_long_observations_are_cut() -> None:
    settings = ToolsSettings(observation_chars=100)
    _, model = work([run_of(1), SUBMIT], settings, react=lambda action: Observation("a" * 300))
    assert "[... 200 characters left out ...]" in model.asked[1].messages[-1].content


def test_a_provider_that_is_down_passes_through() -> None:
    with pytest.raises(ProviderDownError):
        work([ProviderDownError("500")])
