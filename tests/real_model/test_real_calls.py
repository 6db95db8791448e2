"""Single calls of a real model through the real litellm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import Message, ModelRequest
from pytest_mlab.core.model_settings import ModelSettings, TokenPrices
from pytest_mlab.errors import ContextWindowError
from pytest_mlab.models.library import litellm
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.text_tools import OPEN, TextTools
from tests.models.test_tokens import REAL, calls
from tests.support.chat_template import answer_text, prompt_text
from tests.support.llama_server import CONTEXT, NAME, Counted, LlamaServer

MODEL = f"openai/{NAME}"
PRICES = TokenPrices(prompt=1e-6, completion=2e-6, cached=1e-7)
SETTINGS = ModelSettings(
    "small", MODEL, {"max_tokens": 48, "seed": 7, "temperature": 0}, prices=PRICES
)
QUESTION = ModelRequest("small", (Message("user", "What is the capital of France?"),))
SAYING = {"const": "one, two and three"}
"""What a model can only answer with these words: their choice is nothing to count on from machine
to machine."""

LIST = ActionSpec(
    "List Files",
    "Lists a folder.",
    {"type": "object", "properties": {"dir_path": {"type": "string"}}},
    "names",
)


@pytest.fixture
def client() -> LitellmClient:
    return LitellmClient(settings=lambda name: replace(SETTINGS, name=name))


@contextmanager
def counting(model: LlamaServer) -> Iterator[list[Counted]]:
    """What the server counts meanwhile, in the list when it is over."""
    before = model.counted()
    found: list[Counted] = []
    yield found
    found.append(model.counted() - before)


def as_counted(usage: Usage) -> Counted:
    """Reported tokens as the server counts them."""
    return Counted(usage.prompt_tokens - usage.cached_tokens, usage.completion_tokens)


def test_an_answer_and_its_price(model: LlamaServer, client: LitellmClient) -> None:
    with counting(model) as counted:
        reply = client.complete(QUESTION)
    assert reply.text
    usage = reply.usage
    assert counted == [as_counted(usage)]
    assert usage.prompt_tokens > model.tokens(QUESTION.messages[0].content)
    paid = (usage.prompt_tokens - usage.cached_tokens) * 1e-6 + usage.cached_tokens * 1e-7
    assert reply.cost == pytest.approx(paid + usage.completion_tokens * 2e-6)


def test_cached_tokens_are_told_apart(model: LlamaServer, client: LitellmClient) -> None:
    first = client.complete(QUESTION)
    with counting(model) as counted:
        again = client.complete(QUESTION)
    assert again.usage.prompt_tokens == first.usage.prompt_tokens
    assert again.usage.cached_tokens > 0
    assert counted == [as_counted(again.usage)]
    assert (
        again.cost or 0
    ) < again.usage.prompt_tokens * 1e-6 + again.usage.completion_tokens * 2e-6


def test_an_answer_that_is_cut(model: LlamaServer, client: LitellmClient) -> None:
    request = ModelRequest(
        "small", (Message("user", "Tell me a long story about a snail."),), max_tokens=400
    )
    reply = client.complete(request)
    assert (reply.finish_reason, reply.usage.completion_tokens) == ("length", 48)


def test_a_stop_sequence(model: LlamaServer, client: LitellmClient) -> None:
    reply = client.complete(replace(QUESTION, schema=SAYING, stop=(" and",)))
    assert (reply.text, reply.finish_reason) == ('"one, two', "stop")


@pytest.mark.filterwarnings(
    "ignore:Accessing the 'model_:DeprecationWarning"
)  # litellm's own, when it streams
def test_a_streamed_answer(model: LlamaServer) -> None:
    with counting(model) as counted:
        chunks = list(
            litellm().completion(
                model=MODEL,
                messages=[{"role": "user", "content": QUESTION.messages[0].content}],
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": SAYING},
                },
                stream=True,
                stream_options={"include_usage": True},
                max_tokens=48,
            )
        )
    pieces = [
        chunk.choices[0].delta.content
        for chunk in chunks
        if chunk.choices and chunk.choices[0].delta.content
    ]
    assert "".join(pieces) == '"one, two and three"'
    assert len(pieces) > 1
    usage = chunks[-1].usage
    cached = usage.prompt_tokens_details.cached_tokens
    assert counted == [Counted(usage.prompt_tokens - cached, usage.completion_tokens)]


def test_a_prompt_that_does_not_fit(model: LlamaServer, client: LitellmClient) -> None:
    long = replace(QUESTION, messages=(Message("user", "word " * (CONTEXT + 100)),))
    with (
        counting(model) as counted,
        pytest.raises(ContextWindowError, match="does not fit the model's context window"),
    ):
        client.complete(long)
    assert counted == [Counted(0, 0)]


def test_a_schema_forces_even_this_model(model: LlamaServer, client: LitellmClient) -> None:
    schema = {
        "type": "object",
        "properties": {
            "action": {"enum": ["List Files", "Execute Script"]},
            "times": {"type": "integer"},
        },
        "required": ["action", "times"],
        "additionalProperties": False,
    }
    request = ModelRequest("small", (Message("user", "Sing a song."),), schema=schema)
    found = json.loads(client.complete(request).text)
    assert found["action"] in ("List Files", "Execute Script")
    assert isinstance(found["times"], int)


def test_tools_by_text(model: LlamaServer, client: LitellmClient) -> None:
    by_text = TextTools(
        LitellmClient(settings=lambda name: replace(SETTINGS, name=name, tools="text"))
    )
    request = ModelRequest(
        "small", (Message("user", "List the files of the folder src."),), tools=(LIST,)
    )
    with counting(model) as counted:
        reply = by_text.complete(request)
    assert counted == [as_counted(reply.usage)]
    assert reply.usage.prompt_tokens > model.tokens(LIST.summary) + 100  # the tools are told
    # Whatever it says, nothing of it is lost: a call, or text without one.
    assert reply.text or reply.tool_calls
    assert OPEN not in reply.text or not reply.tool_calls


@pytest.mark.parametrize("name", REAL)
def test_the_counts_that_estimates_are_compared_with(model: LlamaServer, name: str) -> None:
    assert [
        (model.tokens(prompt_text(request)), model.tokens(answer_text(reply)))
        for request, reply in calls(name)
    ] == REAL[name]
