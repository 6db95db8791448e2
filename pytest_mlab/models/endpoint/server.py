"""The HTTP server on a Unix socket that a trial's program reaches its model by."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_mlab.core.model_api import Model, ModelReply
from pytest_mlab.errors import BadRequestError, ContextWindowError, MlabError
from pytest_mlab.models.endpoint import chat, messages, responses
from pytest_mlab.models.endpoint.asked import Asked
from pytest_mlab.models.endpoint.body import Refused
from pytest_mlab.models.endpoint.kept import Kept
from pytest_mlab.models.endpoint.roles import Names, role_of, shown
from pytest_mlab.models.tokens import prompt_tokens

MAX_BODY = 64 << 20
KEY = "mlab"
"""The key that programs are given, because providers' clients insist on one."""

Call = Callable[[Model], ModelReply]
Answerer = Callable[[Mapping[str, Any], Call], ModelReply]
"""Does a model call: takes the facts for the trace, which the call may complete, and the call. May
raise MlabError."""

_APIS: Mapping[str, ModuleType] = {
    "/chat/completions": chat,
    "/responses": responses,
    "/messages": messages,
}
_COUNT = "/messages/count_tokens"


class Endpoint:
    """Listens at ``path`` from the moment it is made; requests wait for :meth:`serve`.

    ``names`` are those of the trial's models, by their roles, the main model's first; any other
    name is answered as well, see :func:`pytest_mlab.models.endpoint.roles.role_of`. Every user of
    the machine may connect, because a container has a user of its own."""

    def __init__(self, path: Path, names: Names) -> None:
        self.path = path
        self.names = names
        self.models = shown(names)
        self.answerer: Answerer | None = None
        self.kept = Kept()
        self._server = _Server(path, self)

    @contextlib.contextmanager
    def serve(self, answerer: Answerer) -> Iterator[None]:
        """Answer requests by ``answerer``, each in a thread of its own, until the block is left."""
        self.answerer = answerer
        thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            thread.join()

    def variables(self, port: int) -> dict[str, str]:
        """The environment in which programs find the endpoint, at ``port`` of their loopback
        device."""
        base = f"http://127.0.0.1:{port}"
        return {
            "OPENAI_BASE_URL": f"{base}/v1",
            "OPENAI_API_BASE": f"{base}/v1",
            "OPENAI_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": base,
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_AUTH_TOKEN": KEY,
            # A proxy in the environment would otherwise get the requests to the loopback device.
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            "MLAB_MODEL": self.models[0],
        }

    def close(self) -> None:
        """Stop listening; a second time does nothing."""
        self._server.server_close()
        self.path.unlink(missing_ok=True)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path: Path, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._path = path
        super().__init__(str(path), _Handler)

    def server_bind(self) -> None:
        """Bind by way of the folder's descriptor: a socket's own path may have no more than 107
        bytes."""
        self._path.unlink(missing_ok=True)
        folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            self.socket.bind(f"/proc/self/fd/{folder}/{self._path.name}")
        finally:
            os.close(folder)
        # bind() makes the socket with the umask's mode, which would keep a container's user out.
        self._path.chmod(0o666)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a program that hangs up in the middle; all else goes to the trial's log."""
        if not isinstance(sys.exc_info()[1], (BrokenPipeError, ConnectionResetError, TimeoutError)):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 600.0

    def log_message(self, *_: object) -> None:
        """Nothing: the trace has it."""

    def do_GET(self) -> None:
        """The list of models, or one of them, in the form of the API that the headers show."""
        name = self._route()
        anthropic = "anthropic-version" in self.headers
        listed = [_model(model, anthropic) for model in self.server.endpoint.models]
        if name == "/models":
            self._reply(200, {"object": "list", "data": listed, "has_more": False})
        elif name.startswith("/models/"):
            self._reply(200, _model(self.server.endpoint.models[0], anthropic))
        else:
            self._refuse_path()

    def do_POST(self) -> None:
        """A completion, or a count of tokens."""
        name = self._route()
        api = messages if name == _COUNT else _APIS.get(name)
        if api is None:
            self._refuse_path()
            return
        try:
            asked = self._asked(api)
            if name == _COUNT:
                self._reply(200, {"input_tokens": prompt_tokens(asked.messages, asked.tools)})
                return
            reply = self._answer(name, asked)
        except Refused as error:
            self._refuse(api, 400, str(error))
        except ContextWindowError as error:
            self._refuse(api, 400, f"prompt is too long: {error}", "context_length_exceeded")
        except BadRequestError as error:
            self._refuse(api, 400, str(error))
        except MlabError as error:
            # Neither 429 nor 5xx: clients would ask again, and the trial is over.
            self._refuse(api, 403, str(error), "trial_over")
        else:
            if asked.stream:
                self._send(200, b"".join(api.stream(asked, reply)), "text/event-stream")
            else:
                self._reply(200, api.answer(asked, reply))

    def _asked(self, api: ModuleType) -> Asked:
        """The request, with what earlier ones of this trial have to do with it."""
        kept, fields = self.server.endpoint.kept, self._body()
        if api is responses:
            fields, kept_as = kept.continued(fields)
            keep = functools.partial(kept.keep, kept_as=kept_as)
            asked = replace(responses.read(fields), on_response=keep)
        else:
            asked = api.read(fields)
        return replace(
            asked,
            role=role_of(asked.model, self.server.endpoint.names),
            messages=kept.with_reasoning(asked.messages, signed=asked.thinks),
        )

    def _answer(self, name: str, asked: Asked) -> ModelReply:
        answerer = self.server.endpoint.answerer
        assert answerer is not None
        about: dict[str, Any] = {"api": name, "asked_for": asked.model, "role": asked.role}

        def call(model: Model) -> ModelReply:
            suited = asked.suited_to(model)
            if suited.left_out:
                # The step is recorded after its call.
                about["left_out"] = ", ".join(suited.left_out)
            return suited.complete(model)

        reply = answerer(about, call)
        self.server.endpoint.kept.learn(reply)
        return reply

    def _route(self) -> str:
        path = self.path.partition("?")[0].rstrip("/")
        return path.removeprefix("/v1") if path.startswith("/v1/") else path

    def _body(self) -> Any:
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal():
            raise Refused("a request needs a Content-Length")
        # The program is untrusted: without a bound it could make the harness read until memory
        # ends.
        if int(size) > MAX_BODY:
            raise Refused(f"a request of {size} bytes; at most {MAX_BODY} are accepted")
        try:
            return json.loads(self.rfile.read(int(size)))
        except (ValueError, RecursionError) as error:
            raise Refused(f"the request's body is not JSON: {error}") from None

    def _refuse_path(self) -> None:
        api = messages if "anthropic-version" in self.headers else chat
        known = ", ".join(("/models", *_APIS, _COUNT))
        self._refuse(api, 404, f"there is no {self.path} at this endpoint; it has {known}")

    def _refuse(self, api: ModuleType, status: int, message: str, code: str | None = None) -> None:
        self._reply(status, api.fault(status, message, code))

    def _reply(self, status: int, content: Any) -> None:
        self._send(status, json.dumps(content).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        if status >= 400:
            # The clients of OpenAI and Anthropic obey this header ahead of their own rules for a
            # status.
            self.send_header("X-Should-Retry", "false")
        self.end_headers()
        with contextlib.suppress(socket.timeout):
            self.wfile.write(body)


def _model(name: str, anthropic: bool) -> dict[str, Any]:
    if anthropic:
        return {
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "2020-01-01T00:00:00Z",
        }
    return {"id": name, "object": "model", "created": 0, "owned_by": "pytest-mlab"}
