"""What the endpoint remembers, without HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import Message, ModelReply, ToolCall
from pytest_mlab.models.endpoint import kept as module
from pytest_mlab.models.endpoint.body import Refused
from pytest_mlab.models.endpoint.kept import Kept

SAID = {"type": "message", "id": "msg_1", "role": "assistant", "content": "one"}
CALL = ToolCall("c", "run", "{}")
THOUGHT = {"type": "thinking", "thinking": "Hm."}


def answered(kept: Kept, fields: dict[str, Any], name: str) -> Any:
    rest, kept_as = kept.continued(fields)
    kept.keep({"id": name, "output": [SAID]}, kept_as)
    return rest["input"]


def test_a_response_and_a_conversation_are_continued() -> None:
    kept = Kept()
    first = {"type": "message", "role": "user", "content": "hi"}
    answered(kept, {"input": "hi"}, "r1")
    second = answered(kept, {"input": "more", "previous_response_id": "r1"}, "r2")
    assert second[:2] == [first, SAID]
    assert len(answered(kept, {"input": "more", "previous_response_id": "r2"}, "r3")) == 5
    # from an earlier one again, in another direction
    assert len(answered(kept, {"input": "other", "previous_response_id": "r1"}, "r4")) == 3

    answered(kept, {"input": "hi", "conversation": {"id": "conv"}}, "r5")
    assert answered(kept, {"input": "more", "conversation": "conv"}, "r6")[:2] == [first, SAID]

    reference = {"type": "item_reference", "id": "msg_1"}
    assert answered(kept, {"input": [reference]}, "r7") == [SAID]


def test_unknown_ids_are_refused_with_the_way_out() -> None:
    with pytest.raises(Refused, match="to fix: send the whole conversation as 'input'"):
        Kept().continued({"input": "x", "previous_response_id": "r"})
    with pytest.raises(Refused, match="to fix: send the item itself"):
        Kept().continued({"input": [{"type": "item_reference", "id": "r"}]})


def test_dropped_reasoning_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, spoken = Kept(), Message("assistant", "", (CALL,))
    kept.learn(ModelReply("", "m", Usage(), None, 0.0, tool_calls=(CALL,), reasoning=(THOUGHT,)))
    (found,) = kept.with_reasoning([spoken], signed=False)
    assert found.reasoning == (THOUGHT,)

    signed = {**THOUGHT, "signature": "s"}
    kept.learn(ModelReply("", "m", Usage(), None, 0.0, tool_calls=(CALL,), reasoning=(signed,)))
    assert kept.with_reasoning([spoken], signed=False)[0].reasoning == ()
    assert kept.with_reasoning([spoken], signed=True)[0].reasoning == (signed,)

    monkeypatch.setattr(module, "MOST", 1)
    other = ToolCall("d", "run", "{}")
    kept.learn(ModelReply("", "m", Usage(), None, 0.0, tool_calls=(other,), reasoning=(THOUGHT,)))
    assert kept.with_reasoning([spoken], signed=True)[0].reasoning == ()
