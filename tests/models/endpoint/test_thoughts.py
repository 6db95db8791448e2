"""Reasoning in the form of each API and back: the same blocks, whatever kind they are of."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_mlab.models.endpoint.thoughts import (
    as_anthropic,
    as_chat,
    as_items,
    call_extras,
    from_anthropic,
    from_chat,
    from_item,
    words,
)

PLAIN = {"type": "thinking", "thinking": "I think."}
SIGNED = {**PLAIN, "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "x=="}
ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "gAAA",
}
DETAIL = {"type": "reasoning.encrypted", "data": "y", "format": "google-gemini-v1"}
EXTRA = {"type": "tool_call", "id": "c", "extra_content": {"google": {"thought_signature": "s"}}}
ALL = [PLAIN, SIGNED, HIDDEN, ITEM, DETAIL, EXTRA]


@pytest.mark.parametrize("block", ALL, ids=lambda block: str(block["type"]))
def test_every_block_comes_back_as_it_was(block: dict[str, Any]) -> None:
    (of_anthropic,) = as_anthropic([block])
    assert of_anthropic["type"] in ("thinking", "redacted_thinking")
    assert from_anthropic({**of_anthropic, "cache_control": {}}) == block

    (item,) = as_items([block])
    assert item["id"].startswith("rs_")
    assert item["encrypted_content"]
    assert from_item(item) == block

    calls = [{"id": "c", "extra_content": found} for found in call_extras([block]).values()]
    assert from_chat(as_chat([block]) | {"tool_calls": calls}) == (block,)


def test_what_other_servers_and_clients_send() -> None:
    assert from_chat({"reasoning": "a"}) == ({"type": "thinking", "thinking": "a"},)
    assert from_chat({"reasoning_content": ""}) == ({"type": "thinking", "thinking": ""},)
    assert from_chat({"reasoning_content": None, "thinking_blocks": None}) == ()
    assert from_item({"type": "reasoning", "summary": []}) is None
    content = [{"type": "reasoning_text", "text": "a"}]
    assert from_item({"content": content}) == {"type": "thinking", "thinking": "a"}
    broken = {"type": "redacted_thinking", "data": "mlab1:???"}
    assert from_anthropic(broken) == broken
    assert words(ITEM) == "Hm."
