"""A real OpenAI-compatible HTTP server on the loopback interface that answers by a script.

    with ScriptedServer(["first answer", rate_limited(retry_after=2), "second answer"]) as server:
        litellm.completion(
            model="openai/any", api_base=server.base_url, api_key="sk-test", messages=...
        )

A script is a list (one entry a request; when it is used up the server answers 400 and says so) or a
function from the request to an entry. An entry is a text (an ordinary answer) or one of the replies
below. Usage figures are computed from the texts (one token a word) and recorded, so that a test can
compare its own sums with :attr:`ScriptedServer.usage`."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Union

from pytest_mlab.core.budget import Usage

Entry = Union[str, "Reply"]
Script = Union[Sequence[Entry], Callable[["Request"], Entry]]


@dataclass(frozen=True)
class Request:
    """One request as it arrived; ``index`` counts from 0."""

    index: int
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def model(self) -> str:
        """The model's name as sent."""
        return str(self.body.get("model", ""))

    @property
    def prompt(self) -> str:
        """The contents of all messages, one after the other."""
        return "\n".join(_text(message.get("content")) for message in self.body.get("messages", ()))

    @property
    def key(self) -> str:
        """The API key that came with it."""
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass(frozen=True)
class Reply:
    """What the server does with a request. ``kind`` says how the connection ends."""

    kind: Literal["answer", "error", "raw", "hang", "drop"] = "answer"
    text: str | None = ""
    finish_reason: str = "stop"
    refusal: str | None = None
    usage: bool = True
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    tools: tuple[tuple[str, str], ...] = ()
    message: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the answer's message."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Mapping[str, Any] = field(default_factory=dict)
    raw: bytes = b""


def say(
    text: str,
    *,
    usage: bool = True,
    cached: int = 0,
    reasoning: int = 0,
    finish_reason: str = "stop",
) -> Reply:
    """An ordinary answer; ``cached`` and ``reasoning`` are the parts of prompt and completion
    tokens so reported."""
    return Reply(
        text=text,
        usage=usage,
        cached_tokens=cached,
        reasoning_tokens=reasoning,
        finish_reason=finish_reason,
    )


def call(*calls: tuple[str, Mapping[str, Any] | str], text: str | None = None) -> Reply:
    """An answer that calls tools: each by the name that the request gave it, with arguments (a str
    goes out as it is, so that it need not be JSON)."""
    tools = tuple(
        (name, args if isinstance(args, str) else json.dumps(args)) for name, args in calls
    )
    return Reply(text=text, tools=tools, finish_reason="tool_calls")


def empty(content: str | None = "") -> Reply:
    """An answer without text (``content`` None: the field is null)."""
    return Reply(text=content)


def refusal(words: str = "I'm sorry, I can't help with that.") -> Reply:
    """A refusal in OpenAI's own field, the content being null."""
    return Reply(text=None, refusal=words)


def unauthorized(status: int = 401, *, echo: str = "") -> Reply:
    """A refused key; ``echo`` is put into the message as some servers do."""
    message = (
        f"Incorrect API key provided: {echo or 'sk-te***'}. You can find your API key in your"
        " account settings."
    )
    return _error(status, message, "invalid_request_error", "invalid_api_key")


def rate_limited(retry_after: float | str | None = None) -> Reply:
    """429, with a Retry-After header unless None."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    message = "Rate limit reached for requests per minute (RPM): Limit 3, Used 3, Requested 1."
    return _error(429, message, "requests", "rate_limit_exceeded", headers)


def out_of_quota() -> Reply:
    """429 that waiting does not fix."""
    message = "You exceeded your current quota, please check your plan and billing details."
    return _error(429, message, "insufficient_quota", "insufficient_quota")


def server_error(status: int = 500) -> Reply:
    """5xx."""
    return _error(
        status, "The server had an error while processing your request.", "server_error", None
    )


def context_length(limit: int = 8192, found: int = 9001) -> Reply:
    """The prompt does not fit, in the words of OpenAI's API."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in"
        f" {found} tokens. Please reduce the length of the messages."
    )
    return _error(
        400, message, "invalid_request_error", "context_length_exceeded", param="messages"
    )


def bad_request(
    message: str = "Invalid value: 'oracle'.", param: str = "messages[0].role"
) -> Reply:
    """400: the request is malformed."""
    return _error(400, message, "invalid_request_error", "invalid_value", param=param)


def malformed() -> Reply:
    """200 with a body that is not JSON."""
    return Reply(kind="raw", raw=b'{"id": "chatcmpl-1", "choices": [{"mess')


def hang() -> Reply:
    """Nothing, until the client gives up or the server is closed."""
    return Reply(kind="hang")


def drop() -> Reply:
    """The connection is reset in the middle of the body."""
    return Reply(kind="drop", text="this answer never arrives whole")


def _error(
    status: int,
    message: str,
    kind: str,
    code: str | None,
    headers: Mapping[str, str] | None = None,
    param: str | None = None,
) -> Reply:
    error = {"message": message, "type": kind, "param": param, "code": code}
    return Reply(kind="error", status=status, error=error, headers=headers or {})


class ScriptedServer:
    """The server, as a context manager. ``key``, when given, is the only one it lets in."""

    def __init__(self, script: Script = (), *, key: str = "") -> None:
        self.script = script
        self.key = key
        self.requests: list[Request] = []
        self.answered: list[tuple[Request, Usage]] = []
        self._next = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.scripted = self
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}
        )

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL or ``api_base`` is to be."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def usage(self) -> Usage:
        """The sum of all usage figures that were reported to clients."""
        return sum((usage for _, usage in self.answered), Usage())

    def restart(self, script: Script, *, key: str = "") -> None:
        """Forget everything and answer by another script, at the same address."""
        with self._lock:
            self.script, self.key, self._next = script, key, 0
            self.requests.clear()
            self.answered.clear()
            self._closing.set()
            self._closing = threading.Event()

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def take(
        self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> tuple[Request, Reply, Any]:
        """Record a request and look up its entry; the third item is the event that ends a hang."""
        with self._lock:
            request = Request(len(self.requests), path, headers, body)
            self.requests.append(request)
            script, index, closing = self.script, self._next, self._closing
            if self.key and request.key != self.key:
                return request, unauthorized(), closing
            self._next += 1
        if callable(script):
            entry = script(request)
        elif index < len(script):
            entry = script[index]
        else:
            entry = bad_request(
                f"the script has {len(script)} entries, this is request {index + 1}"
            )
        return request, say(entry) if isinstance(entry, str) else entry, closing

    def record(self, request: Request, usage: Usage) -> None:
        """Remember what was reported to a client."""
        with self._lock:
            self.answered.append((request, usage))


class _Server(ThreadingHTTPServer):
    scripted: ScriptedServer
    daemon_threads = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that give up in the middle are part of the tests: say nothing."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request, reply, closing = self.server.scripted.take(self.path, headers, json.loads(raw))
        # Answers have the form of one API; errors and lost connections are the same for all.
        if reply.kind == "answer" and not self.path.endswith("/chat/completions"):
            reply = _error(404, f"Unknown path {self.path}", "invalid_request_error", None)
        if reply.kind == "hang":
            closing.wait()
        elif reply.kind == "raw":
            self._send(200, reply.raw)
        elif reply.kind == "error":
            self._send(
                reply.status, json.dumps({"error": reply.error}).encode(), headers=reply.headers
            )
        else:
            self._answer(request, reply)

    def _answer(self, request: Request, reply: Reply) -> None:
        usage = _usage(request, reply) if reply.usage else None
        stream = bool(request.body.get("stream"))
        if stream:
            body = b"".join(_stream(request, reply, usage))
        else:
            body = json.dumps(_completion(request, reply, usage)).encode()
        if reply.kind == "drop":
            self._drop(body)
            return
        if usage is not None:
            self.server.scripted.record(request, usage)
        self._send(200, body, "text/event-stream" if stream else "application/json")

    def _send(
        self,
        status: int,
        body: bytes,
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _drop(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        self.wfile.flush()
        # linger 0: close sends a reset in place of an orderly end
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return "" if content is None else str(content)


def _usage(request: Request, reply: Reply) -> Usage:
    return Usage(
        prompt_tokens=len(request.prompt.split()),
        completion_tokens=len(
            " ".join(
                [reply.text or reply.refusal or "", *(" ".join(tool) for tool in reply.tools)]
            ).split()
        )
        + reply.reasoning_tokens,
        cached_tokens=reply.cached_tokens,
        reasoning_tokens=reply.reasoning_tokens,
    )


def _usage_json(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
        },
    }


def _completion(request: Request, reply: Reply, usage: Usage | None) -> dict[str, Any]:
    said = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    message: dict[str, Any] = {**said, **reply.message}
    if reply.tools:
        message["tool_calls"] = _tool_calls(request, reply)
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": reply.finish_reason,
    }
    body = {**_head(request, "chat.completion"), "choices": [choice]}
    return body if usage is None else {**body, "usage": _usage_json(usage)}


def _stream(request: Request, reply: Reply, usage: Usage | None) -> Iterator[bytes]:
    head = _head(request, "chat.completion.chunk")
    pieces: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    pieces += [{"content": word} for word in (reply.text or "").splitlines(keepends=True)]
    pieces += [
        {"tool_calls": [{"index": i, **one}]} for i, one in enumerate(_tool_calls(request, reply))
    ]
    for piece in pieces:
        yield _event({**head, "choices": [{"index": 0, "delta": piece, "finish_reason": None}]})
    yield _event(
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish_reason}]}
    )
    if usage is not None and (request.body.get("stream_options") or {}).get("include_usage"):
        yield _event({**head, "choices": [], "usage": _usage_json(usage)})
    yield b"data: [DONE]\n\n"


def _tool_calls(request: Request, reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{request.index}_{i}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for i, (name, arguments) in enumerate(reply.tools)
    ]


def _event(data: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def _head(request: Request, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{request.index}",
        "object": kind,
        "created": 1_700_000_000,
        "model": request.model,
    }
