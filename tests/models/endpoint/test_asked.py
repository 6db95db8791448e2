"""Programs' requests, read, suited to a model and sent by the real litellm to a local server that
speaks Anthropic's or OpenAI's API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

import pytest

from pytest_mlab.core.model_api import ModelReply, ModelRequest
from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.errors import BadRequestError
from pytest_mlab.models.endpoint import chat, messages, responses
from pytest_mlab.models.endpoint.asked import Asked
from pytest_mlab.models.endpoint.body import Refused
from pytest_mlab.models.endpoint.kept import Kept
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.retry import Retry
from pytest_mlab.models.text_tools import TextTools
from tests.support.fake_environment import FakeModel

Json = dict[str, Any]

CLAUDE, ADAPTIVE = "anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-6"
BLIND, SEEING = "openai/small", "openai/gpt-4o"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
MARK = {"type": "ephemeral"}
THOUGHT = {"type": "thinking", "thinking": "Let me think.", "signature": "c2ln"}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
RULE = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`"


class Provider(ThreadingHTTPServer):
    """Answers both APIs; ``bodies`` is what came. Where a request thinks, Anthropic's rule about
    thinking blocks holds."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[Json] = []
        self.message: Json = {}
        self.refusal = ""


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        anthropic = self.path.endswith("/messages")
        refusal = self.server.refusal or (anthropic and _breaks_the_rule(body))
        if refusal:
            error = {"type": "invalid_request_error", "message": refusal}
            self._send(400, {"type": "error", "error": error})
        else:
            self._send(200, _of_anthropic(body) if anthropic else _of_openai(self.server.message))

    def _send(self, status: int, content: Json) -> None:
        raw = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def _breaks_the_rule(body: Json) -> str:
    thinks = body.get("thinking", {}).get("type") in ("enabled", "adaptive")
    for message in body["messages"]:
        blocks = message["content"]
        if thinks and message["role"] == "assistant" and isinstance(blocks, list):
            kinds = [block["type"] for block in blocks]
            if "tool_use" in kinds and not kinds[0].endswith("thinking"):
                return RULE
    return ""


def _of_anthropic(body: Json) -> Json:
    thinks = body.get("thinking", {}).get("type") in ("enabled", "adaptive")
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}
    done = any(message["role"] == "assistant" for message in body["messages"])
    said = [{"type": "text", "text": "done"}] if done or not body.get("tools") else [call]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [*([THOUGHT] if thinks else []), *said],
        "stop_reason": "end_turn" if done else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 3},
    }


def _of_openai(message: Json) -> Json:
    said = {"role": "assistant", "content": "done"} | message
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    }


@pytest.fixture(scope="module")
def served() -> Iterator[Provider]:
    with Provider() as server, pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            patch.setenv(name, "sk-none-none-none")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def provider(served: Provider) -> Provider:
    served.bodies, served.message, served.refusal = [], {}, ""
    return served


class OneModel:
    """The trial's model, without a trial."""

    def __init__(self, provider: Provider, name: str, images: bool | None) -> None:
        host = f"http://127.0.0.1:{provider.server_address[1]}"
        params = {"api_base": host if name.startswith("anthropic/") else f"{host}/v1"}
        settings = ModelSettings("m", name, params, images=images)
        self.client = TextTools(LitellmClient(Retry(attempts=1), lambda _: settings))

    def complete(self, prompt: Any, *, role: str = "main", **options: Any) -> ModelReply:
        return self.client.complete(ModelRequest("m", tuple(prompt), **options))

    def facts(self, role: str = "main") -> Any:
        return self.client.facts("m")


def ask(
    provider: Provider, api: ModuleType, name: str, body: Json, *, images: bool | None = None
) -> tuple[Asked, Json, Json]:
    """The request as it was suited, the provider's last body, and the answer for the program."""
    model: Any = OneModel(provider, name, images)
    asked = api.read(body).suited_to(model)
    reply = asked.complete(model)
    return asked, provider.bodies[-1], api.answer(asked, reply)


# --- Anthropic's messages ---

TOOLS = [{"name": "read", "description": "Reads.", "input_schema": SCHEMA}]


def claude_code(**more: Any) -> Json:
    return {
        "model": "claude",
        "max_tokens": 4000,
        "tools": TOOLS,
        "messages": [{"role": "user", "content": "hi"}],
        **more,
    }


@pytest.mark.parametrize(
    ("name", "options", "sent", "left_out"),
    [
        (CLAUDE, {"thinking": {"type": "enabled", "budget_tokens": 2000}}, 2000, ""),
        (
            CLAUDE,
            {
                "thinking": {"type": "enabled", "budget_tokens": 2000},
                "output_config": {"effort": "high"},
            },
            2000,
            "effort (thinking has a budget)",
        ),
        (ADAPTIVE, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, 0, ""),
    ],
)
def test_claude_code_keeps_its_tools_when_it_thinks(
    provider: Provider, name: str, options: Json, sent: int, left_out: str
) -> None:
    asked, first, answer = ask(provider, messages, name, claude_code(**options))
    assert first["thinking"].get("budget_tokens", 0) == sent
    assert ("output_config" in first) == (sent == 0)
    assert ", ".join(asked.left_out) == left_out
    assert [block["type"] for block in answer["content"]] == ["thinking", "tool_use"]
    assert answer["content"][0] == THOUGHT

    said = [
        *claude_code()["messages"],
        {"role": "assistant", "content": answer["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]},
    ]
    _, second, answer = ask(provider, messages, name, claude_code(**options, messages=said))
    assert second["messages"][1]["content"][0] == THOUGHT
    assert second["tools"]
    assert len(provider.bodies) == 2
    assert answer["content"][1]["text"] == "done"


def test_effort_without_thinking_does_not_begin_to_think(provider: Provider) -> None:
    body = claude_code(output_config={"effort": "high"})
    asked, sent, _ = ask(provider, messages, CLAUDE, body)
    assert sent.get("thinking", {"type": "disabled"}) == {"type": "disabled"}
    assert asked.left_out == ("effort (no thinking is asked for)",)
    _, sent, _ = ask(provider, messages, "openai/gpt-5", {**body, "tools": []})
    assert (sent["reasoning_effort"], "thinking" in sent) == ("high", False)


def test_a_refused_request_fails_and_keeps_its_protocol(provider: Provider) -> None:
    """The words of the provider reach the program; nothing is asked again by text."""
    provider.refusal = "tools are not supported by this model"
    with pytest.raises(BadRequestError, match="tools are not supported"):
        ask(provider, messages, BLIND, claude_code())
    assert len(provider.bodies) == 1


def test_marks_reach_a_provider_that_takes_them(provider: Provider) -> None:
    body = claude_code(
        system=[{"type": "text", "text": "one"}, {"type": "text", "text": "two", **marked()}],
        tools=[{**TOOLS[0], **marked()}],
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "hi", **marked()}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "t", "name": "read", "input": {}, **marked()}
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": "a", **marked()}
                ],
            },
        ],
    )
    asked, sent, _ = ask(provider, messages, CLAUDE, body)
    assert asked.left_out == ("cache_control of messages[1].content[0]",)
    assert [block.get("cache_control") for block in sent["system"]] == [None, MARK]
    assert sent["tools"][0]["cache_control"] == MARK
    assert sent["messages"][0]["content"][0]["cache_control"] == MARK
    assert json.dumps(sent["messages"][2]).count("ephemeral") == 1

    asked, sent, _ = ask(provider, messages, BLIND, body)
    assert "ephemeral" not in json.dumps(sent)
    assert asked.left_out == (
        "cache_control of messages[1].content[0]",
        "cache_control of system[1]",
        "cache_control of messages[0].content[0]",
        "cache_control of messages[2].content[0]",
        "cache_control of tools[0]",
    )


def marked() -> Json:
    return {"cache_control": MARK}


def picture() -> Json:
    """Claude Code after its Read tool has looked at a picture."""
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    result = {
        "type": "tool_result",
        "tool_use_id": "t",
        "content": [{"type": "image", "source": source}],
    }
    call = {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "plot.png"}}
    return claude_code(
        messages=[
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    )


def test_images_travel_to_a_model_that_takes_them(provider: Provider) -> None:
    said = "[image/png, 45 bytes: this model takes no images]"
    asked, sent, _ = ask(provider, messages, BLIND, picture())
    assert asked.left_out == ("images of messages[2].content[0][0]",)
    assert sent["messages"][2] == {"role": "tool", "tool_call_id": "t", "content": said}

    asked, sent, _ = ask(provider, messages, CLAUDE, picture())
    assert asked.left_out == ()
    assert sent["messages"][2]["content"][0]["content"][0]["source"]["data"] == PNG

    # What the user says about a model that litellm does not know.
    _, sent, _ = ask(provider, messages, BLIND, picture(), images=True)
    assert PNG in json.dumps(sent)

    _, sent, _ = ask(provider, messages, SEEING, picture())
    assert [message["role"] for message in sent["messages"][2:]] == ["tool", "user"]
    assert sent["messages"][2]["content"] == "[image/png, 45 bytes]"
    assert sent["messages"][3]["content"][1]["image_url"]["url"].endswith(PNG)


# --- OpenAI's two APIs ---


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_plain_reasoning_goes_back_by_every_api(provider: Provider, field: str) -> None:
    call = _call("read", '{"path": "a"}')
    provider.message = {field: "Let me think.", "content": None, "tool_calls": [call]}
    hello = [{"role": "user", "content": "hi"}]
    function = {"name": "read", "parameters": SCHEMA}
    tools = [{"type": "function", "function": function}]

    body = {"model": "x", "messages": hello, "tools": tools}
    _, _, answer = ask(provider, chat, BLIND, body)
    message = answer["choices"][0]["message"]
    assert message["reasoning_content"] == "Let me think."
    result = {"role": "tool", "tool_call_id": "call_1", "content": "a"}
    body = {**body, "messages": [*hello, message, result]}
    _, sent, _ = ask(provider, chat, BLIND, body)
    assert sent["messages"][1]["reasoning_content"] == "Let me think."

    body = {"model": "x", "input": hello, "tools": [{"type": "function", **function}]}
    _, _, answer = ask(provider, responses, BLIND, body)
    assert [item["type"] for item in answer["output"]] == ["reasoning", "function_call"]
    assert answer["output"][0]["summary"][0]["text"] == "Let me think."
    output = {"type": "function_call_output", "call_id": "call_1", "output": "a"}
    body = {**body, "input": [*hello, *answer["output"], output]}
    _, sent, _ = ask(provider, responses, BLIND, body)
    assert sent["messages"][1]["reasoning_content"] == "Let me think."
    assert sent["messages"][1]["tool_calls"][0]["id"] == "call_1"

    _, _, answer = ask(provider, messages, BLIND, claude_code())
    said = [*hello, {"role": "assistant", "content": answer["content"]}]
    _, sent, _ = ask(provider, messages, BLIND, claude_code(messages=said))
    assert sent["messages"][1]["reasoning_content"] == "Let me think."


def _call(name: str, arguments: str) -> Mapping[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": "call_1", "type": "function", "function": function}


# --- bodies of a wrong form ---

BLOCK = {"type": "image", "source": {"type": "base64", "data": "a"}, "cache_control": MARK}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": [BLOCK], "cache_control": MARK}
BODIES: list[tuple[ModuleType, Json]] = [
    (
        chat,
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": [BLOCK],
                    "tool_calls": [_call("f", "")],
                    "thinking_blocks": [THOUGHT],
                }
            ],
            "tools": [{"type": "custom", "custom": {"name": "f", "format": {"grammar": {}}}}],
            "tool_choice": {"type": "custom", "custom": {"name": "f"}},
            "response_format": {"type": "json_schema", "json_schema": {"schema": {}}},
            "stream_options": {},
            "stop": ["a"],
        },
    ),
    (
        messages,
        {
            "max_tokens": 9,
            "system": [BLOCK],
            "messages": [{"role": "user", "content": [RESULT]}],
            "tools": TOOLS,
            "tool_choice": {"type": "tool", "name": "read"},
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "low", "format": {"schema": {}}},
        },
    ),
    (messages, {"max_tokens": 9, "messages": [{"role": "assistant", "content": [THOUGHT]}]}),
    (
        responses,
        {
            "input": [{"type": "custom_tool_call", "call_id": 1, "input": 1}],
            "tools": [{"type": "custom", "name": "f", "format": {"type": "grammar"}}],
            "tool_choice": {"type": "allowed_tools", "tools": [{"type": "custom", "name": "f"}]},
            "text": {"format": {"type": "text"}},
            "reasoning": {"effort": "low"},
            "include": ["a"],
            "additional_tools": [{"type": "mcp"}],
            "conversation": {"id": "c"},
        },
    ),
    (responses, {"input": [{"type": "reasoning", "summary": [{"text": "a"}]}]}),
    (responses, {"input": [{"type": "local_shell_call", "action": {"command": ["a"]}}]}),
    (responses, {"input": [{"type": "item_reference", "id": "a"}]}),
]


def test_no_body_makes_the_endpoint_fail() -> None:
    """Every field with values of other types: answered, or refused with a sentence."""
    ended = [
        answer_to(api, {"model": "x", **changed})
        for api, body in BODIES
        for changed in variants(body)
        if isinstance(changed, dict)
    ]
    assert ended.count(True) > 100
    assert ended.count(False) > 100


def answer_to(api: ModuleType, body: Json) -> bool:
    """Whether the request is answered, and not refused."""
    model = FakeModel(["hi"])
    try:
        fields: Any = Kept().continued(body)[0] if api is responses else body
        asked = api.read(fields).suited_to(model)
    except Refused:
        return False
    reply = asked.complete(model)
    assert json.dumps(api.answer(asked, reply))
    return bool(b"".join(api.stream(asked, reply)))


def variants(value: Any) -> Iterator[Any]:
    """``value`` with each of its parts replaced by values of other types."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from ({**value, name: one} for one in variants(inner))
    elif isinstance(value, list):
        yield from ([one] for one in variants(value[0]))
    yield from ("text", 7, ["a"], {"a": 1}, [{"type": "image"}], [{"type": 1}])
