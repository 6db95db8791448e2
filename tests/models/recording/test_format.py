"""The file of a recording: what is written is read back, sizes stay small, torn and damaged files
are told apart."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import Message, ModelFacts, ModelReply, ModelRequest, ToolCall
from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import ReplayError
from pytest_mlab.models.recording.format import (
    FORMAT,
    Header,
    RecordedError,
    file_of,
    read_header,
    read_recording,
)
from pytest_mlab.models.recording.writer import RecordingFile, pieces

TRIAL = TrialId("house-price", "research", "openai/gpt-5", 2)
HEADER = Header(
    TRIAL,
    "task digest",
    "agent digest",
    settings={"data": "mini", "max_steps": 50},
    facts={
        "openai/gpt-5": ModelFacts("openai/gpt-5", True, 128_000),
        "unlisted": ModelFacts("unlisted", True, None),
    },
    by="pytest-mlab 0",
)
TOOL = ActionSpec(
    "Read File", "Reads.", {"type": "object", "properties": {"name": {"type": "string"}}}, "A text."
)
CALL = ToolCall("call_1", "Read File", '{"name": "a.py"}')
ASKED = ModelRequest(
    "openai/gpt-5",
    (
        Message("system", "Be brief."),
        Message("user", "Read a.py.\n\nThen stop."),
        Message("assistant", "", (CALL,)),
        Message("tool", "print(1)\n", tool_call_id="call_1"),
    ),
    temperature=0.0,
    max_tokens=100,
    stop=("Observation:",),
    tools=(TOOL,),
    must_call=True,
    schema={"type": "object"},
    extra={"top_p": 0.5},
)
ANSWER = ModelReply(
    text="two\nlines",
    model="openai/gpt-5",
    usage=Usage(10, 5, 3, 2),
    cost=0.0,
    seconds=1.25,
    retries=1,
    waited=0.5,
    finish_reason="tool_calls",
    tool_calls=(replace(CALL, id="call_2"),),
    remark="tools by text",
)


def as_it_is(text: str) -> str:
    return text


def write(
    path: Path, *calls: tuple[ModelRequest, ModelReply | RecordedError], end: bool = True
) -> Path:
    file = RecordingFile(path, HEADER, as_it_is)
    for request, outcome in calls:
        file.add(request, outcome, 1.25)
    if end:
        file.end()
    return path


def asking(text: str) -> ModelRequest:
    return ModelRequest("m", (Message("user", text),))


def saying(text: str) -> ModelReply:
    return ModelReply(text, "m", Usage(), None, 0.0)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    failed = RecordedError(
        "RateLimitError", "m: the provider limits the rate", retries=2, waited=1.5
    )
    found = read_recording(
        write(
            tmp_path / "1.jsonl", (ASKED, ANSWER), (asking("x"), failed), (asking("y"), saying(""))
        )
    )
    assert found.header == HEADER
    assert found.whole
    assert [call.number for call in found.calls] == [1, 2, 3]
    assert (found.calls[0].request, found.calls[0].outcome, found.calls[0].seconds) == (
        ASKED,
        ANSWER,
        1.25,
    )
    assert (found.calls[1].request, found.calls[1].outcome, found.calls[1].seconds) == (
        asking("x"),
        failed,
        1.25,
    )
    assert (found.calls[2].request, found.calls[2].outcome) == (asking("y"), saying(""))


def test_reasoning_is_written_and_read_back(tmp_path: Path) -> None:
    blocks = (
        {"type": "thinking", "thinking": 'a\n\n"b" ü', "signature": "c2ln"},
        {"type": "reasoning", "summary": [{"text": "c"}], "encrypted_content": "enc"},
    )
    said = Message("assistant", "", (CALL,), reasoning=blocks)
    request, reply = replace(ASKED, messages=(said,)), replace(ANSWER, reasoning=blocks)
    [call] = read_recording(write(tmp_path / "1.jsonl", (request, reply))).calls
    assert (call.request, call.outcome) == (request, reply)


def test_a_fall_back_is_known_from_the_remark_of_earlier_versions(tmp_path: Path) -> None:
    remark = "asked by text from now on, since tools were refused: m: no"
    reply = replace(ANSWER, remark=remark)
    [call] = read_recording(write(tmp_path / "1.jsonl", (ASKED, reply))).calls
    assert call.outcome == replace(reply, fell_back=True)


def test_a_file_of_an_earlier_version_is_read() -> None:
    """Written by the version at 54b19e3; while :data:`FORMAT` stays, so does what it means."""
    found = read_recording(Path(__file__).with_name("data") / "before.jsonl")
    failed = RecordedError("RateLimitError", "m: the provider limits the rate", 2, 1.5)
    assert (found.header, found.whole) == (HEADER, True)
    assert [(call.request, call.outcome, call.seconds) for call in found.calls] == [
        (ASKED, ANSWER, 1.25),
        (asking("x"), failed, 1.25),
        (asking("y \ud800 ä"), saying(""), 0.0),
    ]


def test_every_line_is_json_and_a_line_of_text_is_a_line_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "1.jsonl", (asking("first line\nsecond line"), saying("an answer")))
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["recording"] == FORMAT
    assert [line for line in lines if isinstance(line, str)] == [
        "first line",
        "second line",
        "an answer",
    ]


@given(st.lists(st.text(st.characters(exclude_categories=()))))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("any") / "1.jsonl"
    found = read_recording(write(path, *((asking(text), saying(text)) for text in texts)))
    assert [call.request for call in found.calls] == [asking(text) for text in texts]
    assert [call.outcome for call in found.calls] == [saying(text) for text in texts]


@given(st.text(st.sampled_from("ab\n"), max_size=2000))
def test_pieces_are_the_text(text: str) -> None:
    assert "\n\n".join(pieces(text)) == text


def test_a_history_that_grows_is_stored_once(tmp_path: Path) -> None:
    messages: list[Message] = [Message("system", "rules " * 1000)]
    calls = []
    for n in range(50):
        messages.append(Message("user", f"observation {n} " + f"word{n} " * 200))
        calls.append((ModelRequest("m", tuple(messages)), saying(f"answer {n}")))
    texts = sum(len(message.content) for message in messages)
    assert write(tmp_path / "1.jsonl", *calls).stat().st_size < texts + 150_000


def test_a_window_that_slides_is_stored_once(tmp_path: Path) -> None:
    head = "\n\n".join(
        ["rules " * 500, "short", "Task: " + "text " * 300, "These are your last steps:"]
    )
    steps = [
        f"Thought: number {n}\nObservation:\n```\n" + f"output{n} " * 300 + "\n```"
        for n in range(50)
    ]
    calls = [
        (asking("\n\n".join([head, *steps[max(0, n - 3) : n]])), saying("next")) for n in range(50)
    ]
    assert (
        write(tmp_path / "1.jsonl", *calls).stat().st_size
        < len(head) + sum(map(len, steps)) + 20_000
    )


def test_a_new_recording_replaces_an_old_one(tmp_path: Path) -> None:
    write(tmp_path / "1.jsonl", (asking("old"), saying("old")))
    assert read_recording(write(tmp_path / "1.jsonl", (asking("new"), saying("new")))).calls[
        0
    ].request == asking("new")


def test_calls_of_several_threads_do_not_mix(tmp_path: Path) -> None:
    file = RecordingFile(tmp_path / "1.jsonl", HEADER, as_it_is)

    def work(who: int) -> None:
        for n in range(20):
            file.add(asking(f"{who} asks {n}\n\n" + "x" * 300), saying(f"{who} hears {n}"), 0.0)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file.end()
    file.add(asking("too late"), saying("too late"), 0.0)
    found = read_recording(tmp_path / "1.jsonl")
    assert found.whole
    assert [call.number for call in found.calls] == list(range(1, 81))
    for call in found.calls:
        assert isinstance(call.outcome, ModelReply)
        who, n = call.outcome.text.split(" hears ")
        assert call.request.messages[0].content.startswith(f"{who} asks {n}\n")


def test_a_file_cut_anywhere_gives_its_whole_calls(tmp_path: Path) -> None:
    path = write(tmp_path / "1.jsonl", (asking("one"), saying("1\n2")), (ASKED, ANSWER))
    whole = path.read_bytes()
    begin = whole.index(b"\n") + 1
    counts = set()
    for end in range(begin, len(whole)):
        path.write_bytes(whole[:end])
        found = read_recording(path)
        assert not found.whole
        assert [call.request for call in found.calls] == [asking("one"), ASKED][: len(found.calls)]
        counts.add(len(found.calls))
    assert counts == {0, 1, 2}


def test_a_recording_without_an_end_is_not_whole(tmp_path: Path) -> None:
    assert not read_recording(write(tmp_path / "1.jsonl", (ASKED, ANSWER), end=False)).whole


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not begin as a recording does"),
        (b"hello\n", "does not begin as a recording does .found b'hello"),
        (b'{"format": 1}\n', "does not begin as a recording does"),
        (b"[1]\n", "does not begin as a recording does"),
        (b'{"recording": 99, "by": "pytest-mlab 9.9"}\n', "format 99.*reads 1.*pytest-mlab 9.9"),
    ],
)
def test_what_is_not_a_recording_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "house-price" / "research" / "1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for read in (read_header, read_recording):
        with pytest.raises(ReplayError, match=f"house-price/research/1.jsonl.*{message}"):
            read(path)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=r"1\.jsonl cannot be read: No such file"):
        read_recording(tmp_path / "1.jsonl")


@pytest.mark.parametrize(
    "damage",
    [
        b"<<<<<<< HEAD",
        b'{"text": "ab", "lines": 2}',
        b'{"reply": 1}',
        b'"a line of nothing"',
        b'{"call": 9}',
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, damage: bytes) -> None:
    path = write(tmp_path / "1.jsonl", (asking("one"), saying("1")))
    header, *rest = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([header, damage, *rest]))
    with pytest.raises(ReplayError, match=r"1\.jsonl:\d+: "):
        read_recording(path)


def test_every_trial_has_a_file_of_its_own() -> None:
    assert file_of(Path("r"), TRIAL) == Path("r/house-price/research--openai-gpt-5/2.jsonl")
