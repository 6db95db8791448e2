"""The responses API, read and answered without HTTP."""

from __future__ import annotations

import json
from typing import Any

from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import ModelReply, ToolCall
from pytest_mlab.models.endpoint.responses import answer, read, stream

THOUGHT = {"type": "thinking", "thinking": "Hm."}
CUSTOM = {"type": "custom", "name": "apply_patch", "description": "Patches."}
HELLO: list[Any] = [{"type": "message", "role": "user", "content": "hello"}]
CODEX = {
    "model": "my-model",
    "instructions": "Be brief.",
    "input": HELLO,
    "tools": [
        {"type": "function", "name": "exec_command", "parameters": {"type": "object"}},
        CUSTOM,
        {"type": "local_shell"},
        {"type": "namespace", "name": "multi_agent_v1", "tools": []},
        {"type": "web_search", "external_web_access": False},
    ],
    "store": False,
    "background": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "a_field_of_next_year": {"x": 1},
}
REPLY = ModelReply(
    "I look.",
    "m",
    Usage(5, 3),
    None,
    0.0,
    tool_calls=(
        ToolCall("c1", "apply_patch", '{"input": "*** Begin"}'),
        ToolCall("c2", "local_shell", '{"command": ["ls"], "timeout_ms": 5}'),
        ToolCall("c3", "exec_command", "{}"),
    ),
    reasoning=(THOUGHT,),
)


def test_what_codex_sends() -> None:
    asked = read(CODEX)
    assert [tool.name for tool in asked.tools] == ["exec_command", "apply_patch", "local_shell"]
    assert asked.left_out == (
        "tool namespace multi_agent_v1",
        "tool web_search",
        "background",
        "prompt_cache_key",
        "a_field_of_next_year",
    )
    more = {"type": "additional_tools", "tools": [{**CUSTOM, "name": "later"}]}
    asked = read({**CODEX, "input": [*HELLO, more]})
    assert asked.tools[-1].name == "later"
    assert [message.role for message in asked.messages] == ["system", "user"]


def test_calls_go_back_in_their_own_form_and_come_again() -> None:
    asked = read(CODEX)
    output = answer(asked, REPLY)["output"]
    assert [item["type"] for item in output] == [
        "reasoning",
        "message",
        "custom_tool_call",
        "local_shell_call",
        "function_call",
    ]
    assert output[2]["input"] == "*** Begin"
    assert output[3]["action"] == {"type": "exec", "env": {}, "command": ["ls"], "timeout_ms": 5}
    picture = {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}
    again = [
        *HELLO,
        *output,
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "patched"},
        {"type": "local_shell_call_output", "id": "c2", "output": "a.py"},
        {"type": "function_call_output", "call_id": "c3", "output": [picture]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"role": "user", "content": "go on"},
    ]
    found = read({**CODEX, "input": again}).messages
    spoken = found[2]
    assert (spoken.content, spoken.reasoning) == ("I look.", (THOUGHT,))
    assert [(call.id, call.name) for call in spoken.tool_calls] == [
        ("c1", "apply_patch"),
        ("c2", "local_shell"),
        ("c3", "exec_command"),
    ]
    assert spoken.tool_calls[0].arguments == REPLY.tool_calls[0].arguments
    assert [(m.role, m.tool_call_id, m.content) for m in found[3:]] == [
        ("tool", "c1", "patched"),
        ("tool", "c2", "a.py"),
        ("tool", "c3", "[image/png, 3 bytes]"),
        ("assistant", "", '[web_search_call {"id": "ws_1", "status": "completed"}]'),
        ("user", "", "go on"),
    ]
    assert found[5].blocks[0]["type"] == "image_url"


def test_a_stream_ends_with_the_response_that_is_kept() -> None:
    kept: list[Any] = []
    asked = read({**CODEX, "stream": True})
    object.__setattr__(asked, "on_response", kept.append)
    events = [json.loads(raw.partition(b"data: ")[2]) for raw in stream(asked, REPLY)]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert kept == [events[-1]["response"]]
    assert kept[0]["output"] == done
    deltas = {event["type"]: event["delta"] for event in events if "delta" in event}
    assert deltas == {
        "response.reasoning_summary_text.delta": "Hm.",
        "response.output_text.delta": "I look.",
        "response.custom_tool_call_input.delta": "*** Begin",
        "response.function_call_arguments.delta": "{}",
    }


def test_the_output_of_a_call_that_is_text_becomes_text() -> None:
    """Providers refuse the result of a tool that no message before it calls."""
    picture = {"type": "computer_screenshot", "image_url": "data:image/png;base64,QUJD"}
    for kind, output, text in (
        ("shell_call", "a.py", "[shell_call_output]\na.py"),
        ("computer_call", picture, "[computer_call_output]\n[image"),
        ("hover_call", None, "[hover_call_output]"),
    ):
        items = [
            *HELLO,
            {"type": kind, "call_id": "c1", "action": {"type": "exec"}},
            {"type": f"{kind}_output", "call_id": "c1", "output": output},
            {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c2", "output": "done"},
        ]
        messages = read({"model": "m", "input": items}).messages
        roles = [message.role for message in messages]
        assert roles == ["user", "assistant", "user", "assistant", "tool"]
        assert messages[2].content.startswith(text)
    left = [*HELLO, {"type": "function_call_output", "call_id": "gone", "output": "5"}]
    assert read({"model": "m", "input": left}).messages[-1].role == "user"
