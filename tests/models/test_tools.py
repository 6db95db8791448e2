"""Tools and tool calls through the real litellm."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, ModelRequest, ToolCall
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.retry import Retry
from pytest_mlab.models.tools import as_openai_messages, as_openai_tools, called
from tests.support.scripted_server import ScriptedServer, call, say

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
EDIT = ActionSpec("Edit Script (AI)", "Rewrites a file.", SCHEMA, "a diff")


def test_a_call_comes_back_by_the_name_of_the_action(server: ScriptedServer) -> None:
    server.restart([call(("Edit_Script_AI", {"path": "a.py"}), ("Dance", "no JSON"))])
    reply = LitellmClient(Retry(attempts=1)).complete(
        ModelRequest("openai/m", (Message("user", "go"),), tools=(EDIT,), must_call=True)
    )
    assert reply.tool_calls == (
        ToolCall("call_0_0", "Edit Script (AI)", '{"path": "a.py"}'),
        ToolCall("call_0_1", "Dance", "no JSON"),
    )
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    [request] = server.requests
    [tool] = request.body["tools"]
    assert tool["function"] == {
        "name": "Edit_Script_AI",
        "description": "Rewrites a file. Gives: a diff",
        "parameters": SCHEMA,
    }
    assert request.body["tool_choice"] == "required"


@pytest.mark.parametrize(
    "name", ["functions.edit_script_ai", "Edit_Script_AI<|channel|>commentary"]
)
@pytest.mark.parametrize(
    "arguments", [{"path": "a.py"}, '{"path": "a.py"}', json.dumps('{"path": "a.py"}')]
)
def test_a_call_is_read_as_it_is_meant(name: str, arguments: object) -> None:
    function = SimpleNamespace(name=name, arguments=arguments)
    message = SimpleNamespace(tool_calls=[SimpleNamespace(id="c", function=function)])
    [found] = called(SimpleNamespace(message=message), (EDIT,))
    assert found == ToolCall("c", "Edit Script (AI)", '{"path": "a.py"}')


def test_a_conversation_with_calls_goes_out_as_the_provider_wants_it(
    server: ScriptedServer,
) -> None:
    server.restart([say("done")])
    asked = ToolCall("c1", "Edit Script (AI)", '{"path": "a.py"}')
    messages = (
        Message("user", "go"),
        Message("assistant", "", (asked,)),
        Message("tool", "ok", (), "c1"),
    )
    LitellmClient(Retry(attempts=1)).complete(ModelRequest("openai/m", messages, tools=(EDIT,)))
    _, assistant, tool = server.requests[0].body["messages"]
    assert assistant["tool_calls"][0]["function"] == {
        "name": "Edit_Script_AI",
        "arguments": '{"path": "a.py"}',
    }
    assert (tool["role"], tool["tool_call_id"], tool["content"]) == ("tool", "c1", "ok")
    assert "tool_choice" not in server.requests[0].body


def test_a_schema_for_the_answer(server: ScriptedServer) -> None:
    server.restart([say(json.dumps({"path": "x"}))])
    LitellmClient(Retry(attempts=1)).complete(
        ModelRequest("openai/m", (Message("user", "go"),), schema=SCHEMA)
    )
    assert server.requests[0].body["response_format"]["json_schema"]["schema"] == SCHEMA


def test_further_parameters_pass_through(server: ScriptedServer) -> None:
    server.restart([say("done")])
    LitellmClient(Retry(attempts=1)).complete(
        ModelRequest("openai/m", (Message("user", "go"),), extra={"top_p": 0.5})
    )
    assert server.requests[0].body["top_p"] == 0.5


def test_facts() -> None:
    client = LitellmClient(Retry(attempts=1))
    known, unknown = client.facts("gpt-4-turbo"), client.facts("openai/my-model")
    assert (known.name, known.native_tools, known.context) == ("gpt-4-turbo", True, 128_000)
    assert (unknown.native_tools, unknown.context) == (True, None)
    assert not client.facts("gpt-3.5-turbo-instruct").native_tools


def test_marks_and_parts_go_out_as_they_are() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    (tool,) = as_openai_tools([ActionSpec("Read", "reads", {}, marks=mark)])
    assert (tool["cache_control"], "cache_control" in tool["function"]) == (*mark.values(), False)
    part = {"type": "text", "text": "hi", **mark}
    assert as_openai_messages([Message("user", "hi", blocks=(part,))])[0]["content"] == [part]


def test_recordings_of_tools_without_marks_stay_what_they_were() -> None:
    tool = ActionSpec("Read", "reads", {"type": "object"}, "text")
    assert list(tool.as_json()) == ["name", "summary", "schema", "returns"]
    marked = replace(tool, marks={"cache_control": {}})
    assert ActionSpec(**marked.as_json()) == marked
