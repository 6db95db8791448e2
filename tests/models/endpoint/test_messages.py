"""Anthropic's messages, read and answered without HTTP."""

from __future__ import annotations

import json

import pytest

from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import ModelReply, ToolCall
from pytest_mlab.models.endpoint.messages import answer, read, stream

SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "x=="}
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
REPLY = ModelReply(
    "I look.",
    "m",
    Usage(5, 3),
    None,
    0.0,
    tool_calls=(ToolCall("t", "read", '{"path": "a"}'),),
    reasoning=(SIGNED, HIDDEN, ITEM),
)
BODY = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def test_thinking_goes_before_text_and_comes_back() -> None:
    asked = read({**BODY, "thinking": {"type": "enabled", "budget_tokens": 1024}})
    content = answer(asked, REPLY)["content"]
    assert content[:2] == [SIGNED, HIDDEN]
    assert [block["type"] for block in content[3:]] == ["text", "tool_use"]
    said = [*BODY["messages"], {"role": "assistant", "content": content}]  # type: ignore[misc]
    spoken = read({**BODY, "messages": said}).messages[1]
    assert spoken.reasoning == REPLY.reasoning
    assert (spoken.content, spoken.tool_calls) == ("I look.", REPLY.tool_calls)


def test_a_stream_has_thinking_and_its_signature() -> None:
    asked = read({**BODY, "stream": True})
    events = [json.loads(raw.partition(b"data: ")[2]) for raw in stream(asked, REPLY)]
    blocks = [event["content_block"] for event in events if "content_block" in event]
    assert blocks[0] == {"type": "thinking", "thinking": "", "signature": ""}
    assert blocks[1] == HIDDEN
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert deltas == [
        {"type": "thinking_delta", "thinking": "Hm."},
        {"type": "signature_delta", "signature": "c2ln"},
        {"type": "text_delta", "text": "I look."},
        {"type": "input_json_delta", "partial_json": '{"path": "a"}'},
    ]


@pytest.mark.parametrize("thinking", [None, {"type": "disabled"}])
def test_a_program_that_forbids_thinking_is_shown_none(thinking: object) -> None:
    asked = read({**BODY, **({"thinking": thinking} if thinking else {})})
    kinds = [block["type"] for block in answer(asked, REPLY)["content"]]
    assert ("thinking" in kinds) == (thinking is None)


def test_what_is_said_and_no_end() -> None:
    body = {
        **BODY,
        "metadata": {"user_id": "u"},
        "context_management": {"edits": []},
        "mcp_servers": [{"type": "url", "url": "https://x", "name": "n"}],
        "of_next_year": 1,
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    }
    assert read(body).left_out == (
        "tool web_search_20250305 web_search",
        "metadata",
        "context_management",
        "mcp_servers",
        "of_next_year",
    )


@pytest.mark.parametrize(
    ("more", "thinks"),
    [
        ({}, False),
        ({"output_config": {"effort": "low"}}, False),
        ({"thinking": {"type": "disabled"}}, False),
        ({"thinking": {"type": "adaptive"}}, True),
    ],
)
def test_which_requests_think(more: dict[str, object], thinks: bool) -> None:
    assert read({**BODY, **more}).thinks is thinks
