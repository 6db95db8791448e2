"""A file server for tests: knows ranges, and misbehaves as told, one instruction a request."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, NamedTuple


class Cut(NamedTuple):
    """Announce the whole length, send ``after`` bytes, drop the connection."""

    after: int


class Status(NamedTuple):
    """Answer with an error."""

    code: int


Trouble = Cut | Status | Literal["ignore-range", "wrong-range", "no-length"]


@dataclass
class FileServer:
    """``files`` by path, with a query or without; ``headers`` of answers by path, of errors by
    code; ``troubles`` are used up one a request, ``cut_once`` when the path is read; ``ranges`` are
    the Range headers that came."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    cut_once: dict[str, Cut] = field(default_factory=dict)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: FileServer

    def do_GET(self) -> None:
        self.state.ranges.append(self.headers.get("Range", ""))
        trouble = self.state.troubles.pop(0) if self.state.troubles else None
        if self.command == "GET":
            trouble = self.state.cut_once.pop(self.path, trouble)
        content = self.state.files.get(self.path, self.state.files.get(self.path.partition("?")[0]))
        if isinstance(trouble, Status) or content is None:
            self._empty(trouble.code if isinstance(trouble, Status) else 404)
            return
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked.group(1)) if asked and trouble != "ignore-range" else 0
        if start >= len(content) > 0:
            self._empty(416, f"bytes */{len(content)}")
            return
        self._send(content, start, trouble, partial=start > 0)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def _send(self, content: bytes, start: int, trouble: Trouble | None, *, partial: bool) -> None:
        body = content[start:]
        shown = start + 1 if trouble == "wrong-range" else start
        self.send_response(206 if partial else 200)
        if partial:
            self.send_header("Content-Range", f"bytes {shown}-{len(content) - 1}/{len(content)}")
        if trouble == "no-length":
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(body)))
        for name, value in self.state.headers.get(self.path, {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body[: trouble.after] if isinstance(trouble, Cut) else body)
        if isinstance(trouble, Cut) or trouble == "no-length":
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def _empty(self, code: int, content_range: str = "") -> None:
        self.send_response(code)
        if content_range:
            self.send_header("Content-Range", content_range)
        for name, value in self.state.headers.get(str(code), {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@contextmanager
def file_server() -> Iterator[FileServer]:
    """A server on a free port of this machine."""

    class Handler(_Handler):
        """One with a state of its own."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Handler.state = FileServer(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Handler.state
        finally:
            server.shutdown()
            thread.join()
