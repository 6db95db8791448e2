"""The scripted server: a plain HTTP client gets the answers of its script."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from pytest_mlab.core.budget import Usage
from tests.support.scripted_server import (
    ScriptedServer,
    context_length,
    drop,
    hang,
    rate_limited,
    refusal,
    say,
    server_error,
    unauthorized,
)


def post(
    server: ScriptedServer, content: str = "hello there", timeout: float = 30, **more: Any
) -> Any:
    """Status, headers and body of one chat completion."""
    url = urlsplit(server.base_url)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=timeout)
    body = {"model": "m", "messages": [{"role": "user", "content": content}], **more}
    try:
        connection.request(
            "POST",
            url.path + "/chat/completions",
            json.dumps(body),
            {"Authorization": "Bearer sk-abc", "Content-Type": "application/json"},
        )
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def test_answers_in_order_and_records_usage() -> None:
    with ScriptedServer(["one two three", say("four", cached=1, reasoning=2)]) as server:
        _, _, first = post(server, "a b")
        _, _, second = post(server, "c")
    assert json.loads(first)["choices"][0]["message"]["content"] == "one two three"
    assert json.loads(first)["usage"]["prompt_tokens"] == 2
    assert json.loads(second)["usage"]["completion_tokens_details"]["reasoning_tokens"] == 2
    assert server.usage == Usage(3, 6, 1, 2)
    assert [request.prompt for request in server.requests] == ["a b", "c"]
    assert server.requests[0].key == "sk-abc"


def test_a_function_may_be_the_script() -> None:
    with ScriptedServer(lambda request: request.prompt.upper()) as server:
        _, _, body = post(server, "shout")
    assert json.loads(body)["choices"][0]["message"]["content"] == "SHOUT"


def test_a_used_up_script_is_a_bad_request() -> None:
    with ScriptedServer([]) as server:
        status, _, body = post(server)
    assert status == 400
    assert b"script has 0 entries" in body


def test_faults() -> None:
    script = [
        rate_limited(7),
        server_error(503),
        unauthorized(echo="sk-abc"),
        context_length(),
        refusal("no"),
    ]
    with ScriptedServer(script) as server:
        limited, failed, refused, long, declined = (post(server) for _ in script)
    assert (limited[0], limited[1]["Retry-After"]) == (429, "7")
    assert failed[0] == 503
    assert (refused[0], b"sk-abc" in refused[2]) == (401, True)
    assert json.loads(long[2])["error"]["code"] == "context_length_exceeded"
    message = json.loads(declined[2])["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "no")


def test_a_dropped_connection_loses_half_of_the_body() -> None:
    with (
        ScriptedServer([drop()]) as server,
        pytest.raises((ConnectionError, http.client.IncompleteRead)),
    ):
        post(server)
    assert server.usage == Usage()


def test_a_hang_ends_with_the_server() -> None:
    with ScriptedServer([hang(), "after"]) as server:
        with pytest.raises(TimeoutError):
            post(server, timeout=0.05)
        status, _, _ = post(server)
    assert status == 200


def test_the_wrong_key_is_refused_without_using_the_script_up() -> None:
    with ScriptedServer(["in"], key="sk-other") as server:
        assert post(server)[0] == 401
        server.key = "sk-abc"
        assert post(server)[0] == 200


def test_streams_as_server_sent_events() -> None:
    with ScriptedServer(["a\nb"]) as server:
        _, headers, body = post(server, stream=True, stream_options={"include_usage": True})
    assert headers["Content-Type"] == "text/event-stream"
    events = [
        json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: {")
    ]
    text = "".join(
        choice["delta"].get("content", "") for event in events for choice in event["choices"]
    )
    assert text == "a\nb"
    assert events[-1]["usage"]["total_tokens"] == server.usage.total == 4
