"""Estimates of tokens, against a real tokenizer's counts of recorded conversations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, ModelReply, ToolCall
from pytest_mlab.models.recording.format import read_recording
from pytest_mlab.models.tokens import count_tokens, prompt_tokens, reasoning_tokens, reply_tokens
from tests.support.chat_template import answer_text, prompt_text

DATA = Path(__file__).parent / "data"

REAL = {
    "tools": [
        (2321, 113),
        (2483, 116),
        (3093, 138),
        (3587, 344),
        (3975, 117),
        (4142, 135),
        (7668, 135),
    ],
    "text": [(1278, 181), (1490, 197), (1205, 184), (1878, 181)],
}
"""Prompt and answer of every call of the recordings in ``data`` (the agents tools and research with
a scripted model), as the tokenizer of SmolLM2-135M-Instruct counts them; checked again by
tests/real_model/test_real_calls.py."""


def calls(name: str) -> list[Any]:
    return [(call.request, call.outcome) for call in read_recording(DATA / f"{name}.jsonl").calls]


@pytest.mark.parametrize("name", REAL)
def test_estimates_are_within_a_quarter_of_real_tokenizers(name: str) -> None:
    recorded = calls(name)
    assert len(recorded) == len(REAL[name])
    for (request, reply), (prompt, answer) in zip(recorded, REAL[name], strict=True):
        assert isinstance(reply, ModelReply)
        estimate = prompt_tokens(request.messages, request.tools)
        assert estimate == pytest.approx(prompt, rel=0.25)
        assert estimate == pytest.approx(count_tokens(prompt_text(request)), rel=0.25)
        estimate = reply_tokens(reply.text, reply.tool_calls, reply.reasoning)
        assert estimate == pytest.approx(answer, rel=0.25)
        assert estimate == pytest.approx(count_tokens(answer_text(reply)), rel=0.25)


def test_all_that_is_sent_and_received_counts() -> None:
    long = "one word after the other " * 100
    tokens = count_tokens(long)
    assert tokens == pytest.approx(500, rel=0.05)
    schema = {"type": "object", "properties": {"x": {"type": "string", "description": long}}}
    tool = ActionSpec("Do", "It.", schema)
    call = ToolCall("1", "Do", long)
    plain = Message("assistant", "")
    nothing = prompt_tokens([plain], ())
    for messages, tools in [
        ([Message("system", long)], ()),
        ([replace(plain, tool_calls=(call,))], ()),
        ([replace(plain, reasoning=({"type": "thinking", "thinking": long},))], ()),
        ([replace(plain, reasoning=({"type": "reasoning", "summary": [{"text": long}]},))], ()),
        ([plain], (tool,)),
        ([plain], (ActionSpec("Do", long, {}),)),
    ]:
        assert prompt_tokens(messages, tools) - nothing == pytest.approx(tokens, rel=0.2)
    images = ({"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "data:"}})
    assert prompt_tokens([replace(plain, blocks=images)], ()) - nothing == 1500

    assert reply_tokens(long, ()) == tokens
    assert reply_tokens("", (call, call)) == pytest.approx(2 * tokens, rel=0.2)
    assert reply_tokens("", (), ({"type": "thinking", "thinking": long},)) == tokens


def test_encrypted_reasoning_counts_by_its_length_and_its_marks_do_not() -> None:
    block = {"type": "redacted_thinking", "data": "x" * 5_000}
    assert reasoning_tokens([block]) == 1_000
    assert reasoning_tokens([{"type": "thinking", "thinking": "", "signature": "x" * 5_000}]) == 0


def test_numbers_lie_between_three_digits_a_token_and_one() -> None:
    numbers = " ".join(f"0.{n * 7919 % 10**6:06}" for n in range(1_000))
    assert 4_000 < count_tokens(numbers) < 8_000
    assert count_tokens("") == 0
