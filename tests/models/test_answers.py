"""Answers with odd usages and contents reach the caller through the real litellm."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from pytest_mlab.core.model_api import Message, ModelRequest
from pytest_mlab.models.answers import readable, with_whole_counts
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.retry import Retry
from tests.support import scripted_server as script
from tests.support.scripted_server import ScriptedServer

FOUND = {"prompt_tokens": 5, "completion_tokens": 3}

ODD_USAGES: list[Any] = [
    "x",
    [],
    5,
    {"prompt_tokens": "abc", "completion_tokens": 3},
    {"prompt_tokens": 1.5, "completion_tokens": 2.7},
    {"prompt_tokens": math.nan, "completion_tokens": 3},
    {"prompt_tokens": -math.inf, "completion_tokens": 3},
    {"prompt_tokens": [1], "completion_tokens": {}},
    {"prompt_tokens": 10**30, "completion_tokens": True},
    {**FOUND, "prompt_tokens_details": "x"},
    {**FOUND, "prompt_tokens_details": {"cached_tokens": "abc"}},
    {**FOUND, "prompt_tokens_details": {"cached_tokens": 1e30}},
    {**FOUND, "prompt_tokens_details": {"cached_tokens": -50}},
    {**FOUND, "prompt_tokens_details": {"audio_tokens": -50}},
    {**FOUND, "completion_tokens_details": {"reasoning_tokens": "x"}},
    {**FOUND, "cache_read_input_tokens": "abc"},
]


def _answer(content: Any = "fine, thanks", usage: Any = None) -> script.Reply:
    message = {"role": "assistant", "content": content}
    body = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": usage,
    }
    return script.Reply(kind="raw", raw=json.dumps(body).encode())


@pytest.fixture(autouse=True)
def _other_client(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """hosted_vllm/ goes by litellm's own HTTP client, openai/ by OpenAI's package."""
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", server.base_url)


def _ask(model: str) -> Any:
    request = ModelRequest(model, (Message("user", "hello there"),))
    return LitellmClient(Retry(attempts=1)).complete(request)


def test_an_answer_is_not_lost_for_its_usage(
    server: ScriptedServer, capfd: pytest.CaptureFixture[str]
) -> None:
    for model in ("openai/gpt-4-turbo", "hosted_vllm/my-model"):
        server.restart([_answer(usage=usage) for usage in ODD_USAGES])
        for usage in ODD_USAGES:
            reply = _ask(model)
            assert reply.text == "fine, thanks", usage
            assert reply.usage.prompt_tokens in (2, 5, 10), usage
            assert reply.usage.completion_tokens in (3, 4), usage
            assert "the provider" in reply.remark, usage
            assert reply.cost is None or 0 < reply.cost < 1e-3
    assert capfd.readouterr() == ("", "")


CONTENTS: list[tuple[Any, str]] = [
    ([{"type": "text", "text": "one "}, {"type": "text", "text": "two"}], "one two"),
    ([{"type": "output_text", "text": "one"}], "one"),
    (["one ", "two"], "one two"),
    ({"type": "text", "text": "one"}, "one"),
    ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "one"}], "one"),
    ([{"type": "refusal", "refusal": "no way"}], "no way"),
    ([], ""),
    (5, "5"),
]


def test_content_in_parts_is_joined(server: ScriptedServer) -> None:
    for model in ("openai/my-model", "hosted_vllm/my-model"):
        server.restart([_answer(content, FOUND) for content, _ in CONTENTS])
        assert [_ask(model).text for _ in CONTENTS] == [text for _, text in CONTENTS]


def test_thinking_in_parts_becomes_the_reasoning() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "first this"}]},
        {"type": "text", "text": "then that"},
    ]
    [choice] = readable({"choices": [{"message": {"content": parts}}]})["choices"]
    assert choice["message"] == {"content": "then that", "reasoning_content": "first this"}


@pytest.mark.parametrize(
    "response",
    [None, [], {"error": {"message": "no"}}, {"choices": None}, {"choices": [None, "x", {}]}],
)
def test_what_is_not_an_answer_stays_as_it_is(response: Any) -> None:
    assert readable(response) == response


def test_an_ordinary_answer_stays_as_it_is() -> None:
    usage = {**FOUND, "total_tokens": 8, "prompt_tokens_details": None, "cost": 0.5}
    response = {"choices": [{"message": {"content": "x", "tool_calls": []}}], "usage": usage}
    assert readable(response) == response


TEXT = "fine, thanks"
ANTHROPIC = {"type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
OTHERS: list[tuple[str, dict[str, Any]]] = [
    *(
        (
            "anthropic/claude-sonnet-4-5",
            {**ANTHROPIC, "content": [{"type": "text", "text": TEXT}], "usage": usage},
        )
        for usage in (
            None,
            "x",
            {"input_tokens": None, "output_tokens": None},
            {"input_tokens": 1.5, "output_tokens": 3, "cache_creation_input_tokens": "x"},
            {"input_tokens": -5, "output_tokens": 3, "cache_read_input_tokens": -500},
            {"input_tokens": "x", "cache_creation": {"ephemeral_5m_input_tokens": "x"}},
        )
    ),
    *(
        (
            "gemini/gemini-2.5-flash",
            {
                "candidates": [
                    {
                        "content": {"parts": [{"text": TEXT}], "role": "model"},
                        "finishReason": "STOP",
                    }
                ],
                "usageMetadata": usage,
            },
        )
        for usage in (None, {"promptTokenCount": "x", "candidatesTokenCount": None})
    ),
    (
        "ollama_chat/llama3",
        {
            "message": {"role": "assistant", "content": TEXT},
            "done": True,
            "prompt_eval_count": None,
            "eval_count": 2.5,
        },
    ),
]


def test_nor_with_the_apis_of_other_providers(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
    monkeypatch.setenv("GEMINI_API_KEY", "sk-none")
    base = {"api_base": server.base_url.removesuffix("/v1")}
    for model, body in OTHERS:
        server.restart([script.Reply(kind="raw", raw=json.dumps(body).encode())])
        request = ModelRequest(model, (Message("user", "hello there"),), extra=base)
        reply = LitellmClient(Retry(attempts=1)).complete(request)
        assert reply.text == TEXT, body
        assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (10, 3), body
        assert "the provider" in reply.remark, body
        assert reply.cost is None or 0 < reply.cost < 1e-3


@pytest.mark.parametrize(
    "response",
    [
        None,
        [1.5],
        {"text": "x", "input_tokens": 5},
        {"usage": {"input_tokens": 5, "output_tokens": 3, "service_tier": "standard"}},
        {"usageMetadata": {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 5}]}},
        {"choices": [], "usage": {"prompt_tokens": "x"}},
    ],
)
def test_sound_counts_stay_as_they_are(response: Any) -> None:
    assert with_whole_counts(response) == response
