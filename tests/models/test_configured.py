"""A run's settings of a model in the requests that go out, and in what they cost."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import Message, ModelReply, ModelRequest
from pytest_mlab.core.model_settings import ModelSettings, TokenPrices
from pytest_mlab.models.configured import applied
from pytest_mlab.models.library import litellm
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.retry import Retry
from tests.support.scripted_server import ScriptedServer, bad_request, say

ASKED = ModelRequest("mine", (Message("user", "one two"),), temperature=0.7, max_tokens=100)


def complete(settings: ModelSettings, request: ModelRequest = ASKED) -> ModelReply:
    return LitellmClient(Retry(attempts=1), settings=lambda name: settings).complete(request)


def test_the_users_parameters_win_over_the_agents(server: ScriptedServer) -> None:
    server.restart(["ok"])
    params = {
        "temperature": 0,
        "max_tokens": 5,
        "top_p": 0.5,
        "reasoning_effort": "low",
        "extra_body": {"top_k": 3},
    }
    reply = complete(ModelSettings("mine", "openai/x", params))
    body = server.requests[0].body
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("x", 0, 5)
    assert (body["top_p"], body["reasoning_effort"], body["top_k"]) == (0.5, "low", 3)
    assert reply.model == "mine"


def test_what_the_user_does_not_set_is_the_agents(server: ScriptedServer) -> None:
    server.restart(["ok"])
    complete(ModelSettings("mine", "openai/x", {"seed": 1}))
    body = server.requests[0].body
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.7, 100, 1)


def test_the_newer_name_of_a_limit_takes_the_place_of_the_older() -> None:
    request = applied(ASKED, ModelSettings("mine", "openai/x", {"max_completion_tokens": 7}), {})
    assert (request.max_tokens, request.extra) == (None, {"max_completion_tokens": 7})


def test_a_timeout_is_that_of_an_attempt() -> None:
    assert applied(ASKED, ModelSettings("mine", "openai/x", {"timeout": 3}), {}).timeout == 3.0


@pytest.mark.parametrize("model", ["openai/gpt-5", "openai/o3-mini"])
def test_a_temperature_that_only_the_agent_wants_does_not_break_a_reasoning_model(
    server: ScriptedServer, model: str
) -> None:
    server.restart(["ok"])
    assert complete(ModelSettings("mine", model)).text == "ok"
    assert "temperature" not in server.requests[0].body


def test_a_temperature_that_an_unlisted_model_refuses_is_left_out(server: ScriptedServer) -> None:
    def answer(request: object) -> Any:
        refused = "temperature" in server.requests[-1].body
        return bad_request("Unsupported value: 'temperature'", "temperature") if refused else "ok"

    server.restart(answer)
    reply = complete(ModelSettings("mine", "openai/x"))
    assert (reply.text, reply.retries) == ("ok", 1)
    assert "temperature was left out" in reply.remark
    # a user who knows it saves the first request
    dropping = ModelSettings("mine", "openai/x", {"additional_drop_params": ["temperature"]})
    reply = complete(dropping)
    assert (reply.text, reply.retries) == ("ok", 0)


def test_another_server_and_another_key(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("MINE_API_KEY", "sk-mine")
    server.restart(["ok"], key="sk-mine")
    settings = ModelSettings(
        "mine", "openai/x", {"base_url": server.base_url}, api_key_env="MINE_API_KEY"
    )
    assert complete(settings).text == "ok"


def test_facts_are_the_users_first() -> None:
    def facts(settings: ModelSettings) -> tuple[str, bool, int | None]:
        found = LitellmClient(settings=lambda name: settings).facts("mine")
        return found.name, found.native_tools, found.context

    assert facts(ModelSettings("mine", "gpt-4-turbo")) == ("gpt-4-turbo", True, 128_000)
    assert facts(ModelSettings("mine", "gpt-4-turbo", tools="text", context=9)) == (
        "gpt-4-turbo",
        False,
        9,
    )
    assert facts(ModelSettings("mine", "gpt-3.5-turbo-instruct", tools="native"))[1]


def test_a_users_prices_with_cached_tokens(server: ScriptedServer) -> None:
    server.restart([say("a b c", cached=1, reasoning=2)])
    reply = complete(
        ModelSettings("mine", "openai/x", prices=TokenPrices(prompt=10, completion=100, cached=1))
    )
    assert reply.usage == Usage(2, 5, 1, 2)
    assert reply.cost == 1 * 10 + 1 * 1 + 5 * 100


def test_a_users_prices_win_over_the_list(server: ScriptedServer) -> None:
    server.restart(["a"])
    assert (
        complete(ModelSettings("mine", "gpt-4-turbo", prices=TokenPrices(1, 2, 1))).cost
        == 2 * 1 + 1 * 2
    )


@contextmanager
def anthropic(usage: dict[str, int]) -> Iterator[str]:
    """An address where Anthropic's API gives one answer with this ``usage``."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude",
                "stop_reason": "end_turn",
            }
            text = json.dumps(
                {**body, "content": [{"type": "text", "text": "ok"}], "usage": usage}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()
        thread.join()


def test_anthropics_cache_is_counted_and_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-x")
    priced = (
        "input_cost_per_token",
        "cache_read_input_token_cost",
        "cache_creation_input_token_cost",
    )
    name, entry = next(
        (name, entry)
        for name, entry in litellm().model_cost.items()
        if name.startswith("claude-")
        and entry["litellm_provider"] == "anthropic"
        and all(map(entry.get, priced))
    )
    counted = {
        "input_tokens": 10,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 200,
        "output_tokens": 5,
    }
    with anthropic(counted) as address:
        reply = complete(ModelSettings("mine", f"anthropic/{name}", {"base_url": address}))
    assert reply.text == "ok"
    assert reply.usage == Usage(prompt_tokens=1210, completion_tokens=5, cached_tokens=1000)
    plain, read, created = (entry[key] for key in priced)
    assert reply.cost == pytest.approx(
        10 * plain + 1000 * read + 200 * created + 5 * entry["output_cost_per_token"]
    )
