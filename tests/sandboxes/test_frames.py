from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.sandboxes.frames import (
    MAX_REPLY_HEADER,
    MAX_REPLY_PAYLOAD,
    BadFrame,
    Decoder,
    End,
    Hello,
    Output,
    Pong,
    encode,
    parse,
)


def frame(header: Any, payload: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack(">II", len(text), len(payload)) + text + payload


END = {"type": "end", "id": 3, "status": 0, "signal": None, "killed_for": ""}


def test_replies_are_read_piece_by_piece() -> None:
    stream = (
        frame({"type": "hello", "id": 1, "protocol": 1, "pid": 7, "python": "3.11.7"})
        + frame({"type": "output", "id": 2}, b"\0\xff")
        + frame(END)
        + frame({"type": "pong", "id": 4})
    )
    decoder = Decoder()
    replies = [reply for byte in stream for reply in decoder.feed(bytes([byte]))]
    assert replies == [Hello(1, 7, "3.11.7"), Output(2, b"\0\xff"), End(3, 0, None, ""), Pong(4)]


def test_a_greeting_may_name_the_port_of_a_relay() -> None:
    hello = {"type": "hello", "id": 1, "protocol": 1, "pid": 7, "python": "3.11.7"}
    assert parse(json.dumps({**hello, "relay_port": 40123}).encode(), b"") == Hello(
        1, 7, "3.11.7", 40123
    )
    for port in (-1, 65536, "80", None, 1.5, True):
        with pytest.raises(BadFrame, match="relay_port"):
            parse(json.dumps({**hello, "relay_port": port}).encode(), b"")


def test_requests_are_bounded() -> None:
    with pytest.raises(ValueError, match="4194304"):
        encode({"argv": "x" * (5 << 20)})
    with pytest.raises(ValueError, match="67108864"):
        encode({}, bytes((64 << 20) + 1))


@pytest.mark.parametrize(
    "lengths", [(MAX_REPLY_HEADER + 1, 0), (2, MAX_REPLY_PAYLOAD + 1), (0xFFFFFFFF, 0xFFFFFFFF)]
)
def test_lengths_are_refused_before_anything_is_stored(lengths: tuple[int, int]) -> None:
    with pytest.raises(BadFrame, match="bytes"):
        list(Decoder().feed(struct.pack(">II", *lengths)))


@pytest.mark.parametrize(
    "header",
    [
        b"not json",
        b"[" * 60_000,
        b"\xff\xfe",
        b"[]",
        b"{}",
        json.dumps({"type": "output"}).encode(),
        json.dumps({"type": "output", "id": "1"}).encode(),
        json.dumps({"type": "output", "id": True}).encode(),
        json.dumps({"type": "output", "id": -1}).encode(),
        json.dumps({"type": "surprise", "id": 1}).encode(),
        json.dumps({"type": "hello", "id": 1, "protocol": 2, "pid": 7}).encode(),
        json.dumps({"type": "hello", "id": 1, "protocol": 1, "pid": 0}).encode(),
        *(
            json.dumps({**END, **change}).encode()
            for change in (
                {"status": 256},
                {"status": -1},
                {"status": 0.0},
                {"status": None},
                {"status": "0"},
                {"signal": 0},
                {"signal": [9]},
                {"killed_for": "fun"},
                {"killed_for": ["timeout"]},
                {"killed_for": "timeout"},
            )
        ),
    ],
)
def test_what_is_no_reply_is_refused(header: bytes) -> None:
    with pytest.raises(BadFrame):
        parse(header, b"")


@given(st.binary(max_size=400))
def test_garbage_is_refused_or_waited_for(garbage: bytes) -> None:
    decoder = Decoder()
    try:
        replies = list(decoder.feed(garbage))
    except BadFrame:
        return
    assert replies == []
