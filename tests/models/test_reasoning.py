"""Reasoning through the real litellm and back: each provider gets what it gave."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agents.tools import ToolsAgent
from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, ModelReply, ModelRequest
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.reasoning import put_back
from pytest_mlab.models.retry import Retry
from pytest_mlab.models.text_tools import TextTools
from tests.support.fake_environment import FakeEnvironment, FakeModel
from tests.support.scripted_server import Reply, Request, ScriptedServer, bad_request, call

Json = dict[str, Any]
TOOL = ActionSpec("List Files", "Lists.", {"type": "object", "properties": {}})
GO = Message("user", "go")
SIGNED = [
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "enc"},
]
DETAILS = [{"type": "reasoning.encrypted", "data": "enc", "format": "x", "index": 0}]
ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "encrypted_content": "enc",
    "summary": [{"type": "summary_text", "text": "I look"}],
}
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
GOOGLE = {"google": {"thought_signature": "sig"}}


class Upstream:
    """A server that gives ``answer`` to everything and keeps what it was asked."""

    def __init__(self) -> None:
        self.answer: Json = {}
        self.asked: list[Json] = []

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None: ...

            def do_POST(this) -> None:
                body = this.rfile.read(int(this.headers["Content-Length"]))
                self.asked.append(json.loads(body))
                data = json.dumps(self.answer).encode()
                this.send_response(200)
                this.send_header("Content-Type", "application/json")
                this.send_header("Content-Length", str(len(data)))
                this.end_headers()
                this.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    found = Upstream()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.02,))
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


def chat(*, more: Mapping[str, Any] | None = None, **message: Any) -> Json:
    call = {"id": "c1", "type": "function", "function": {"name": "List_Files", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "tool_calls": [{**call, **(more or {})}]}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {**said, **message}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def claude() -> Json:
    use = {"type": "tool_use", "id": "toolu_1", "name": "List_Files", "input": {}}
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [*SIGNED, {"type": "text", "text": "ok"}, use],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def response() -> Json:
    call = {"type": "function_call", "id": "fc", "call_id": "c1", "name": "List_Files"}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": "completed",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": [ITEM, {**call, "arguments": "{}", "status": "completed"}],
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    }


class Talk:
    """One model at the upstream server, asked in turn."""

    def __init__(self, upstream: Upstream, model: str, **extra: Any) -> None:
        self.upstream, self.model = upstream, model
        self.extra = {"base_url": upstream.address, "api_key": "k", **extra}
        self.client = LitellmClient(Retry(attempts=1))

    def ask(self, answer: Json, *messages: Message) -> ModelReply:
        self.upstream.answer = answer
        request = ModelRequest(self.model, (GO, *messages), tools=(TOOL,), extra=self.extra)
        return self.client.complete(request)

    def sent_back(self, answer: Json, *, lost: bool = False) -> tuple[ModelReply, list[Json]]:
        """The reply, and the conversation as the server gets it afterwards."""
        reply = self.ask(answer)
        thought = () if lost else reply.reasoning
        said = Message("assistant", reply.text, reply.tool_calls, reasoning=thought)
        self.ask(answer, said, Message("tool", "a.py", (), reply.tool_calls[0].id))
        asked = self.upstream.asked[-1]
        return reply, asked.get("messages") or asked["input"]


TEXT = ({"type": "thinking", "thinking": "why"},)


@pytest.mark.parametrize(
    ("model", "fields", "reasoning"),
    [
        ("openai/a", {"reasoning_content": "why"}, TEXT),
        ("openai/a", {"reasoning_content": ""}, ({"type": "thinking", "thinking": ""},)),
        ("openai/a", {"reasoning": "why"}, TEXT),
        ("hosted_vllm/a", {"reasoning": "why"}, TEXT),
        ("deepseek/deepseek-reasoner", {"reasoning_content": "why"}, TEXT),
        ("openrouter/a/b", {"reasoning": "why", "reasoning_details": DETAILS}, (*TEXT, *DETAILS)),
    ],
)
def test_text_goes_back_under_the_name_that_the_provider_gave(
    upstream: Upstream, model: str, fields: Json, reasoning: tuple[Json, ...]
) -> None:
    reply, messages = Talk(upstream, model).sent_back(chat(**fields))
    assert reply.reasoning == reasoning
    assert reply.text == ""
    names = ("reasoning", "reasoning_content", "reasoning_details", "thinking_blocks")
    assert {k: v for k, v in messages[1].items() if k in names} == fields


def test_signed_blocks_go_back_as_they_came(upstream: Upstream) -> None:
    talk = Talk(upstream, "anthropic/claude-sonnet-4-5", **THINKING)
    reply, messages = talk.sent_back(claude())
    assert list(reply.reasoning) == SIGNED
    assert messages[1]["content"][:2] == SIGNED
    assert [block["type"] for block in messages[1]["content"][2:]] == ["text", "tool_use"]


def test_encrypted_items_of_the_responses_api_go_back(upstream: Upstream) -> None:
    reply, items = Talk(upstream, "openai/responses/gpt-5").sent_back(response())
    assert reply.reasoning == (ITEM,)
    assert [item["type"] for item in items[1:3]] == ["reasoning", "function_call"]
    assert {name: items[1][name] for name in ITEM} == ITEM


def test_what_signs_a_call_goes_back_in_the_call(upstream: Upstream) -> None:
    reply, messages = Talk(upstream, "openai/g").sent_back(chat(more={"extra_content": GOOGLE}))
    assert reply.reasoning == ({"type": "tool_call", "id": "c1", "extra_content": GOOGLE},)
    assert messages[1]["tool_calls"][0]["extra_content"] == GOOGLE


def test_a_provider_that_thinks_gets_its_field_also_where_the_thoughts_are_lost(
    upstream: Upstream,
) -> None:
    # DeepSeek refuses a call without the field, and takes it empty.
    _, messages = Talk(upstream, "openai/a").sent_back(chat(reasoning_content="why"), lost=True)
    assert messages[1]["reasoning_content"] == ""
    _, messages = Talk(upstream, "openai/b").sent_back(chat(), lost=True)
    assert "reasoning_content" not in messages[1]


def test_a_provider_that_refuses_the_text_is_asked_without_it(server: ScriptedServer) -> None:
    def answer(request: Request) -> Reply:
        if any("reasoning_content" in message for message in request.body["messages"]):
            return bad_request(
                "messages.1: property 'reasoning_content' is unsupported", "messages"
            )
        return call(("List_Files", {}), text="<think>I wonder.</think>\n")

    server.restart(answer)
    client = LitellmClient(Retry(attempts=1))
    reply = client.complete(ModelRequest("openai/strict", (GO,), tools=(TOOL,)))
    assert [block["thinking"] for block in reply.reasoning] == ["I wonder."]
    said = Message("assistant", "", reply.tool_calls, reasoning=reply.reasoning)
    messages = (GO, said, Message("tool", "a.py", (), reply.tool_calls[0].id))
    for _ in range(2):
        client.complete(ModelRequest("openai/strict", messages, tools=(TOOL,)))
    assert len(server.requests) == 4


def test_the_tools_agent_keeps_a_provider_content_that_wants_its_reasoning_back(
    server: ScriptedServer,
) -> None:
    """As DeepSeek's API in thinking mode: a call without its reasoning is a fault (400)."""

    def answer(request: Request) -> Reply:
        calls = [message for message in request.body["messages"] if "tool_calls" in message]
        if any("reasoning_content" not in message for message in calls):
            words = "Missing `reasoning_content` field in the assistant message with tool calls."
            return bad_request(words, "messages")
        done = ("Final_Answer", {"final_answer": "x"})
        return replace(
            call(("List_Files", {"dir_path": "."}) if len(calls) < 3 else done),
            message={"reasoning_content": "I look."},
        )

    server.restart(answer)
    client = TextTools(LitellmClient(Retry(attempts=1)))

    class Direct(FakeModel):
        def complete(self, prompt: Any, **options: Any) -> ModelReply:
            return client.complete(ModelRequest("openai/deep", tuple(prompt), **options))

    env = FakeEnvironment(Direct())
    ToolsAgent().run(env)
    assert [action.name for action in env.executed] == [*["List Files"] * 3, "Final Answer"]
    assert all("tools" in request.body for request in server.requests)


def test_thoughts_in_the_text_are_no_text(upstream: Upstream) -> None:
    talk = Talk(upstream, "openai/a")
    reply = talk.ask(chat(content="I think.\n</think>\n\nI look.", reasoning_content="First."))
    assert reply.text == "I look."
    assert [block["thinking"] for block in reply.reasoning] == ["First.", "I think."]
    cut = chat(content="<think>I wonder <think>and</think> won")
    cut["choices"][0]["finish_reason"] = "length"
    assert talk.ask(cut).text == ""


def test_several_thoughts_are_one_text() -> None:
    plain: Json = {"role": "assistant", "content": ""}
    put_back(plain, ({"type": "thinking", "thinking": "a"}, *SIGNED), "")
    assert plain == {
        "role": "assistant",
        "content": "",
        "reasoning_content": "a\nhm",
        "thinking_blocks": SIGNED,
    }
