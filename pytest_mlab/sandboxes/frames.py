"""The supervisor's protocol, seen from the harness: whatever comes in is untrusted input.

A frame is two big-endian 32-bit lengths, a JSON header and a payload of those lengths (see
``pytest_mlab/sandboxes/inside/supervisor.py``). A length out of bounds, a header that is not a
JSON object, a field of another type or out of its range: each raises BadFrame, and the caller
starts another supervisor."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

PROTOCOL = 1
MAX_REQUEST_HEADER = 4 << 20
MAX_REQUEST_PAYLOAD = 64 << 20
MAX_REPLY_HEADER = 1 << 16
MAX_REPLY_PAYLOAD = 1 << 20
_LENGTHS = struct.Struct(">II")

KilledFor = Literal["", "timeout", "memory", "pids", "disk", "cancelled", "signal"]


class BadFrame(Exception):
    """The other side does not speak the protocol."""


@dataclass(frozen=True)
class Hello:
    """The supervisor is ready; ``pid``, ``python`` and ``relay_port`` (0: no relay) are as seen
    inside."""

    id: int
    pid: int
    python: str
    relay_port: int = 0


@dataclass(frozen=True)
class Output:
    """A piece of a command's output."""

    id: int
    data: bytes


@dataclass(frozen=True)
class End:
    """A command ended."""

    id: int
    status: int | None
    signal: int | None
    killed_for: KilledFor


@dataclass(frozen=True)
class Pong:
    """The supervisor lives."""

    id: int


Reply = Hello | Output | End | Pong


def encode(header: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """A request as bytes. Raises ValueError when it is larger than the supervisor accepts."""
    text = json.dumps(header).encode()
    if len(text) > MAX_REQUEST_HEADER:
        raise ValueError(f"arguments of {len(text)} bytes; a command may have {MAX_REQUEST_HEADER}")
    if len(payload) > MAX_REQUEST_PAYLOAD:
        raise ValueError(
            f"standard input of {len(payload)} bytes; a command may have {MAX_REQUEST_PAYLOAD}"
        )
    return _LENGTHS.pack(len(text), len(payload)) + text + payload


class Decoder:
    """Turns a stream of bytes into replies; holds at most one incomplete frame."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Reply]:
        """The replies that ``data`` completes. Raises BadFrame."""
        self._buffer += data
        position = 0
        try:
            while len(self._buffer) - position >= _LENGTHS.size:
                header_size, payload_size = _LENGTHS.unpack_from(self._buffer, position)
                if header_size > MAX_REPLY_HEADER or payload_size > MAX_REPLY_PAYLOAD:
                    raise BadFrame(f"a frame of {header_size} + {payload_size} bytes")
                start = position + _LENGTHS.size
                end = start + header_size + payload_size
                if len(self._buffer) < end:
                    return
                header = bytes(self._buffer[start : start + header_size])
                payload = bytes(self._buffer[start + header_size : end])
                position = end
                yield parse(header, payload)
        finally:
            del self._buffer[:position]


def parse(header: bytes, payload: bytes) -> Reply:
    """A reply from its parts. Raises BadFrame."""
    try:
        fields = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"a header that is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BadFrame(f"a header that is not an object but {type(fields).__name__}")
    kind = fields.get("type")
    number = _integer(fields, "id", 0, 1 << 53)
    if kind == "output":
        return Output(number, payload)
    if kind == "end":
        return _end(number, fields)
    if kind == "pong":
        return Pong(number)
    if kind == "hello":
        if fields.get("protocol") != PROTOCOL:
            raise BadFrame(f"protocol {fields.get('protocol')!r}, not {PROTOCOL}")
        pid, port = (
            _integer(fields, "pid", 1, 1 << 31),
            _integer({"relay_port": 0, **fields}, "relay_port", 0, 65535),
        )
        return Hello(number, pid, str(fields.get("python"))[:40], port)
    raise BadFrame(f"a reply of type {kind!r}"[:100])


def _end(number: int, fields: Mapping[str, Any]) -> End:
    killed_for = fields.get("killed_for")
    if killed_for not in get_args(KilledFor):
        raise BadFrame(f"killed for {killed_for!r}"[:100])
    status = None if fields.get("status") is None else _integer(fields, "status", 0, 255)
    signal = None if fields.get("signal") is None else _integer(fields, "signal", 1, 255)
    if (status is None) != bool(killed_for):
        raise BadFrame(f"status {status} of a command that was killed for {killed_for!r}")
    return End(number, status, signal, cast("KilledFor", killed_for))


def _integer(fields: Mapping[str, Any], name: str, low: int, high: int) -> int:
    value = fields.get(name)
    # JSON's true would pass for 1: a bool is an int.
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise BadFrame(f"{name} is {value!r}"[:100])
    return value
