"""The endpoint's HTTP, spoken to byte by byte over its Unix socket; what answers is a stand-in for
a trial."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import Model, ModelReply, ToolCall
from pytest_mlab.errors import AuthError
from pytest_mlab.models.endpoint.server import MAX_BODY, Endpoint
from tests.support.fake_environment import FakeModel

HELLO = [{"role": "user", "content": "hello"}]


class Trial:
    """Answers by ``replies``, each a text, tool calls or an exception."""

    def __init__(self) -> None:
        self.replies: list[Any] = []
        self.about: list[Mapping[str, Any]] = []
        self.hold = threading.Event()
        self.hold.set()

    def answer(self, about: Mapping[str, Any], call: Callable[[Model], ModelReply]) -> ModelReply:
        self.about.append(about)
        assert self.hold.wait(60)
        return call(FakeModel([self.replies.pop(0)], fast=lambda prompt: "from the fast one"))


@pytest.fixture
def trial() -> Trial:
    return Trial()


@pytest.fixture
def endpoint(tmp_path: Path, trial: Trial) -> Iterator[Endpoint]:
    folder = tmp_path / ("long" * 30)  # a path that fits into no socket's address
    folder.mkdir()
    found = Endpoint(folder / "endpoint.socket", {"main": ["the-model"]})
    with found.serve(trial.answer):
        yield found
    found.close()
    found.close()
    assert list(folder.iterdir()) == []


def connect(endpoint: Endpoint) -> socket.socket:
    folder = os.open(endpoint.path.parent, os.O_PATH)
    try:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(60)
        client.connect(f"/proc/self/fd/{folder}/{endpoint.path.name}")
    finally:
        os.close(folder)
    return client


def send(endpoint: Endpoint, request: bytes) -> tuple[int, str, bytes]:
    """Status, head and body of the answer to ``request``."""
    with connect(endpoint) as client:
        client.sendall(request)
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body


def post(endpoint: Endpoint, path: str, body: Any, *headers: str) -> tuple[int, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = "\r\n".join(
        [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(raw)}", *headers]
    )
    status, head, answer = send(endpoint, head.encode() + b"\r\n\r\n" + raw)
    assert "Connection: close" in head
    assert ("X-Should-Retry: false" in head) == (status >= 400)
    return status, json.loads(answer)


def test_others_may_connect(endpoint: Endpoint) -> None:
    assert stat.S_IMODE(endpoint.path.stat().st_mode) == 0o666


def test_a_socket_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    first = Endpoint(tmp_path / "s", {"main": ["m"]})
    second = Endpoint(tmp_path / "s", {"main": ["m"]})
    first._server.server_close()  # as when its process dies: the file stays
    second.close()
    assert list(tmp_path.iterdir()) == []


def test_the_environment_of_programs(endpoint: Endpoint) -> None:
    found = endpoint.variables(4711)
    assert found["OPENAI_BASE_URL"] == found["OPENAI_API_BASE"] == "http://127.0.0.1:4711/v1"
    assert found["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:4711"
    assert {
        found[f"{name}"] for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    } == {"mlab"}
    assert found["MLAB_MODEL"] == "the-model"


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/chat/completions", "/v1/chat/completions?api-version=1"]
)
def test_paths_of_chat(endpoint: Endpoint, trial: Trial, path: str) -> None:
    trial.replies = ["hi"]
    status, answer = post(
        endpoint, path, {"model": "x", "messages": HELLO, "user": "me", "seed": 3}
    )
    assert (status, answer["choices"][0]["message"]["content"]) == (200, "hi")
    assert trial.about == [
        {"api": "/chat/completions", "asked_for": "x", "role": "main", "left_out": "user"}
    ]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/chat/completions", b"{'no': json", "not JSON"),
        ("/v1/chat/completions", b"\xff\xfe", "not JSON"),
        ("/v1/chat/completions", b"[" * 100_000, "not JSON"),
        ("/v1/chat/completions", [], "must be a JSON object"),
        ("/v1/chat/completions", {"messages": HELLO}, "'model' is missing"),
        ("/v1/chat/completions", {"model": 3, "messages": HELLO}, "'model' must be a string"),
        (
            "/v1/chat/completions",
            {"model": "x", "messages": "hello"},
            "'messages' must be a list of objects",
        ),
        (
            "/v1/chat/completions",
            {"model": "x", "messages": [{"role": "oracle"}]},
            "messages[0].role is 'oracle'",
        ),
        (
            "/v1/chat/completions",
            {"model": "x", "messages": HELLO, "temperature": "hot"},
            "must be a number",
        ),
        (
            "/v1/chat/completions",
            {"model": "x", "messages": HELLO, "stop": [1]},
            "a list of strings",
        ),
        (
            "/v1/chat/completions",
            {"model": "x", "messages": HELLO, "tools": [{"type": "function"}]},
            "tools[0]: a tool of the type 'function' needs its function",
        ),
        (
            "/v1/chat/completions",
            {
                "model": "x",
                "messages": HELLO,
                "tool_choice": {"type": "function", "function": {"name": "f"}},
            },
            "names 'f', which is none of the request's tools",
        ),
        (
            "/v1/chat/completions",
            {"model": "x", "messages": HELLO, "response_format": {"type": "xml"}},
            "not available",
        ),
        ("/v1/responses", {"model": "x", "input": []}, "'input' is missing or empty"),
        (
            "/v1/responses",
            {"model": "x", "input": "y", "previous_response_id": "resp_of_another_trial"},
            "to fix: send the whole conversation as 'input'",
        ),
        (
            "/v1/messages",
            {"model": "x", "max_tokens": 9, "messages": []},
            "'messages' is missing or empty",
        ),
        (
            "/v1/messages",
            {"model": "x", "max_tokens": True, "messages": HELLO},
            "'max_tokens' must be a number",
        ),
    ],
)
def test_what_is_wrong_is_said_and_costs_nothing(
    endpoint: Endpoint, trial: Trial, path: str, body: Any, words: str
) -> None:
    status, answer = post(endpoint, path, body)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert words in answer["error"]["message"]
    assert ("type" in answer) == (path == "/v1/messages")
    assert trial.about == []


def test_a_body_must_say_its_length_and_be_bounded(endpoint: Endpoint) -> None:
    start = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\n"
    status, _, body = send(endpoint, start + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert (status, b"Content-Length" in body) == (400, True)
    status, _, body = send(endpoint, start + f"Content-Length: {MAX_BODY + 1}\r\n\r\n".encode())
    assert (status, str(MAX_BODY).encode() in body) == (400, True)


def test_unknown_paths(endpoint: Endpoint) -> None:
    status, answer = post(endpoint, "/v1/embeddings", {})
    assert (status, "it has /models, /chat/completions" in answer["error"]["message"]) == (
        404,
        True,
    )
    status, answer = post(endpoint, "/v1/files", {}, "anthropic-version: 2023-06-01")
    assert (status, answer["error"]["type"]) == (404, "not_found_error")
    status, _, body = send(endpoint, b"GET /favicon.ico HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (status, b"there is no /favicon.ico" in body) == (404, True)
    status, _, body = send(endpoint, b"GET /v1/models/whatever HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (status, json.loads(body)["id"]) == (200, "the-model")


def test_the_end_of_a_trial_is_no_error_to_repeat(endpoint: Endpoint, trial: Trial) -> None:
    trial.replies = [AuthError("the key is refused")] * 2
    status, answer = post(endpoint, "/v1/chat/completions", {"model": "x", "messages": HELLO})
    assert (status, answer["error"]["code"], answer["error"]["message"]) == (
        403,
        "trial_over",
        "the key is refused",
    )
    status, answer = post(
        endpoint, "/v1/messages", {"model": "x", "max_tokens": 9, "messages": HELLO}
    )
    assert (status, answer["error"]["type"]) == (403, "permission_error")


def test_arguments_that_are_no_json_stay_what_they_are(endpoint: Endpoint, trial: Trial) -> None:
    calls = (ToolCall("1", "f", '{"a": '),)
    trial.replies = [calls, calls]
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    _, answer = post(
        endpoint, "/v1/messages", {"model": "x", "max_tokens": 9, "messages": HELLO, "tools": tools}
    )
    assert answer["content"] == [
        {"type": "tool_use", "id": "1", "name": "f", "input": {"unparsed": '{"a": '}}
    ]
    tools = [{"type": "function", "function": {"name": "f"}}]
    _, answer = post(
        endpoint, "/v1/chat/completions", {"model": "x", "messages": HELLO, "tools": tools}
    )
    assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"a": '


def test_a_program_that_hangs_up_is_no_matter(
    endpoint: Endpoint, trial: Trial, capfd: pytest.CaptureFixture[str]
) -> None:
    trial.replies = ["x" * (8 << 20), "hi"]
    trial.hold.clear()
    raw = json.dumps({"model": "x", "messages": HELLO}).encode()
    with connect(endpoint) as client:
        client.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw
        )
    trial.hold.set()
    status, _ = post(endpoint, "/v1/chat/completions", {"model": "x", "messages": HELLO})
    assert status == 200
    assert "Traceback" not in capfd.readouterr().err


def test_usage_is_the_models(endpoint: Endpoint, trial: Trial) -> None:
    class Counting(FakeModel):
        def complete(self, *args: Any, **options: Any) -> ModelReply:
            return ModelReply("hi", "m", Usage(10, 5, 4, 2), 0.0, 0.0, finish_reason="stop")

    trial.answer = lambda about, call: call(Counting())  # type: ignore[method-assign]
    endpoint.answerer = trial.answer
    _, answer = post(endpoint, "/v1/messages", {"model": "x", "max_tokens": 9, "messages": HELLO})
    assert answer["usage"] == {
        "input_tokens": 6,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 0,
        "output_tokens": 5,
    }


def test_a_response_is_continued_by_its_id(endpoint: Endpoint, trial: Trial) -> None:
    """And a call whose reasoning the program drops gets it back."""
    thought = ({"type": "thinking", "thinking": "Hm."},)
    calls = (ToolCall("c", "f", "{}"),)
    first = ModelReply("", "m", Usage(), 0.0, 0.0, tool_calls=calls, reasoning=thought)
    trial.replies = [first, "done", "done"]
    tools = [{"type": "function", "name": "f"}]
    _, answer = post(endpoint, "/v1/responses", {"model": "x", "input": "hi", "tools": tools})
    output = {"type": "function_call_output", "call_id": "c", "output": "a"}
    body = {"model": "x", "previous_response_id": answer["id"], "input": [output], "stream": True}
    asked: list[Any] = []

    def seen(about: Mapping[str, Any], call: Callable[[Model], ModelReply]) -> ModelReply:
        model = FakeModel([trial.replies.pop(0)])
        reply = call(model)
        asked.append(model.asked[-1].messages)
        return reply

    endpoint.answerer = seen
    raw = json.dumps(body).encode()
    head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: {len(raw)}\r\n\r\n"
    assert send(endpoint, head.encode() + raw)[0] == 200
    spoken = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}
    post(endpoint, "/v1/chat/completions", {"model": "x", "messages": [*HELLO, spoken]})
    assert [message.role for message in asked[0]] == ["user", "assistant", "tool"]
    assert asked[0][1].reasoning == asked[1][1].reasoning == thought
