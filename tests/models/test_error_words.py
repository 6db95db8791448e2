"""Faults in the shapes of several providers, through the real litellm: what is said of them, and
how long a provider asks to wait."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_mlab.core.model_api import Message, ModelRequest
from pytest_mlab.errors import BadRequestError, ModelError, ProviderDownError, RateLimitError
from pytest_mlab.models.error_words import words
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.retry import Retry
from tests.models.conftest import KEY
from tests.support import scripted_server as script
from tests.support.scripted_server import ScriptedServer

MODELS = (
    "openai/my-model",  # by OpenAI's package; the others by litellm's own HTTP client
    "anthropic/claude-sonnet-4-5",
    "gemini/gemini-2.5-flash",
    "mistral/mistral-large-latest",
    "cohere_chat/command-r",
    "groq/llama-3.1-8b-instant",
    "openrouter/x",
    "ollama_chat/llama3",
    "hosted_vllm/my-model",
)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("ANTHROPIC", "GEMINI", "MISTRAL", "COHERE", "GROQ", "OPENROUTER"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)


def _fails(server: ScriptedServer, model: str, *entries: script.Reply) -> tuple[Any, list[float]]:
    """The error of a call, and the waits between its attempts."""
    waits: list[float] = []
    client = LitellmClient(
        Retry(attempts=len(entries)), sleep=waits.append, clock=lambda: 0.0, random=lambda: 0.0
    )
    server.restart(list(entries))
    request = ModelRequest(
        model, (Message("user", "hello"),), extra={"api_base": server.base_url.removesuffix("/v1")}
    )
    with pytest.raises(ModelError) as caught:
        client.complete(request)
    assert len(server.requests) == len(entries)  # none is repeated inside litellm
    return caught.value, waits


@pytest.mark.parametrize("model", MODELS)
def test_every_provider_is_waited_for_as_long_as_it_asks(
    server: ScriptedServer, model: str
) -> None:
    busy = script.rate_limited(retry_after=17)
    overloaded = script.Reply(
        kind="error", status=529, headers={"Retry-After": "23"}, error={"message": "overloaded"}
    )
    error, waits = _fails(server, model, busy, overloaded, script.drop(), script.drop())
    # 4 seconds are our own wait after a third attempt; the cut connections ask for none
    assert waits == [17.0, 23.0, 4.0]
    assert isinstance(error, ProviderDownError)
    assert error.retries == 3


def test_a_wait_that_stands_in_the_error_itself(server: ScriptedServer) -> None:
    busy = script.Reply(
        kind="error",
        status=429,
        error={
            "message": "Resource has been exhausted",
            "details": [
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}
            ],
        },
    )
    error, waits = _fails(server, MODELS[2], busy, busy)
    assert isinstance(error, RateLimitError)
    assert waits == [17.5]


@pytest.mark.parametrize("model", MODELS)
def test_a_refusal_is_told_in_the_provider_s_own_words(server: ScriptedServer, model: str) -> None:
    refused = script.Reply(kind="error", status=422, error={"message": "the moon is\nfull"})
    error, _ = _fails(server, model, refused)
    assert isinstance(error, BadRequestError)
    assert str(error) == f"{model}: the provider refused the request (422): the moon is full"


@pytest.mark.parametrize("model", MODELS)
def test_an_unreadable_answer_is_no_traceback_and_no_refusal(
    server: ScriptedServer, model: str
) -> None:
    for raw in (b"{}", b'{"choices": [{"message": null}], "usage": {}}', b"<html>", b'{"id": "ch'):
        error, _ = _fails(server, model, script.Reply(kind="raw", raw=raw))
        assert isinstance(error, ProviderDownError), raw
        for noise in ("Traceback", "litellm.", 'File "', "site-packages"):
            assert noise not in str(error), raw


SAID: list[tuple[str, str]] = [
    ("litellm.BadRequestError: OpenAIException - no such thing", "no such thing"),
    ("litellm.BadRequestError: GeminiException BadRequestError - no", "no"),
    ('litellm.APIError: AnthropicException - b\'{"error": {"message": "no"}}\'', "no"),
    ("BadRequestError: Error code: 400 - {'error': {'message': \"it's no\"}}", "it's no"),
    ('{"detail": [{"loc": ["body", "seed"], "msg": "not permitted"}]}', "body.seed: not permitted"),
    ('{"error": "no"}', "no"),
    ('{"errors": [{"message": "one"}, {"message": "two"}]}', "one; two"),
    (
        json.dumps(
            {
                "error": {
                    "message": "Provider returned error",
                    "metadata": {"raw": '{"error": {"message": "stop is not supported"}}'},
                }
            }
        ),
        "Provider returned error: stop is not supported",
    ),
    ("litellm.Timeout: APITimeoutError - took {5} seconds", "took {5} seconds"),
    ('{"unknown": 1}', '{"unknown": 1}'),
    ("failed.. Handle with `litellm.InternalServerError`.", "failed."),
    (
        "litellm.APIConnectionError: no\nTraceback (most recent call last):\n"
        '  File "x.py", line 1, in f\n    g()\nKeyError: 1\n\nDuring handling of the above'
        " exception, another exception occurred:\n\nTraceback (most recent call last):\n"
        '  File "y.py", line 2\nValueError: two\n',
        "its answer cannot be read (ValueError: two)",
    ),
    ("litellm.InternalServerError: OpenAIException -", "it says nothing more"),
    ("", "it says nothing more"),
]


@pytest.mark.parametrize(("raised", "said"), SAID)
def test_words(raised: str, said: str) -> None:
    assert words(Exception(raised), lambda text: text) == said


def test_words_are_redacted_before_they_are_cut() -> None:
    text = f"{'x' * 590} {KEY}"
    assert KEY[:4] not in words(Exception(text), lambda text: text.replace(KEY, "[key]"))


def test_a_call_in_the_handler_of_another_one_s_failure_has_its_own_headers(
    server: ScriptedServer,
) -> None:
    request = ModelRequest(
        MODELS[1], (Message("user", "hello"),), extra={"api_base": server.base_url[:-3]}
    )
    server.restart([script.rate_limited(retry_after=17)])
    try:
        LitellmClient(Retry(attempts=1)).complete(request)
    except RateLimitError:
        _, waits = _fails(server, MODELS[1], script.server_error(), script.server_error())
    assert waits == [1.0]
