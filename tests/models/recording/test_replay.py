"""A client that answers from a recording."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import Message, ModelFacts, ModelReply, ModelRequest, ToolCall
from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import ContextWindowError, ModelError, RateLimitError, ReplayError
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.models.recording.format import Header, RecordedError, read_recording
from pytest_mlab.models.recording.recorder import WORKSPACE, cleaner
from pytest_mlab.models.recording.replay import ReplayClient
from pytest_mlab.models.recording.writer import RecordingFile

FACTS = ModelFacts("m", False, 4096)
HEADER = Header(TrialId("t", "a", "m", 1), "", "", facts={"m": FACTS})
NAME = "recordings/t/a--m/1.jsonl"


def asking(text: str, model: str = "m") -> ModelRequest:
    return ModelRequest(model, (Message("user", text),))


def saying(text: str, seconds: float = 0.0) -> ModelReply:
    return ModelReply(text, "m", Usage(3, 4), 0.5, seconds)


class Replays:
    """Recordings of some calls, replayed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "1.jsonl"
        self.passed: list[float] = []

    def of(
        self,
        *calls: tuple[ModelRequest, ModelReply | RecordedError],
        end: bool = True,
        **settings: Any,
    ) -> ReplayClient:
        clean = cleaner(Redactor({}), ["/before/space"])
        file = RecordingFile(self.path, HEADER, clean)
        for request, outcome in calls:
            file.add(request, outcome, outcome.seconds if isinstance(outcome, ModelReply) else 2.5)
        if end:
            file.end()
        chosen: dict[str, Any] = {
            "name": NAME,
            "mode": "strict",
            "clean": cleaner(Redactor({}), ["/now/space"]),
            "workspace": "/now/space",
            "pass_time": self.passed.append,
        }
        return ReplayClient(read_recording(self.path), **(chosen | settings))


@pytest.fixture
def replays(tmp_path: Path) -> Replays:
    return Replays(tmp_path)


def test_replies_come_in_their_order_with_their_usage_and_time(replays: Replays) -> None:
    client = replays.of((asking("a"), saying("1", 1.5)), (asking("b"), saying("2", 60.0)))
    assert client.complete(asking("a")) == saying("1", 1.5)
    assert client.complete(asking("b")) == saying("2", 60.0)
    assert replays.passed == [1.5, 60.0]
    assert (client.fault, client.left_over) == ("", "")


def test_the_same_question_twice_gets_both_answers(replays: Replays) -> None:
    client = replays.of((asking("a"), saying("1")), (asking("a"), saying("2")))
    assert [client.complete(asking("a")).text for _ in range(2)] == ["1", "2"]


@pytest.mark.parametrize("kind", [RateLimitError, ContextWindowError])
def test_a_fault_is_met_again(replays: Replays, kind: type[ModelError]) -> None:
    client = replays.of((asking("a"), RecordedError(kind.__name__, "m: no", retries=3, waited=7.0)))
    with pytest.raises(kind, match="m: no") as caught:
        client.complete(asking("a"))
    assert (caught.value.retries, caught.value.waited, caught.value.seconds) == (3, 7.0, 2.5)
    assert replays.passed == [2.5]


def test_an_error_that_this_version_does_not_know_is_a_model_error(replays: Replays) -> None:
    client = replays.of(
        (asking("a"), RecordedError("SystemExit", "boom")), (asking("b"), RecordedError("New", "?"))
    )
    for text in "ab":
        with pytest.raises(ModelError):
            client.complete(asking(text))


def test_another_request_is_refused_with_a_diff_and_so_is_every_later_one(replays: Replays) -> None:
    client = replays.of(
        (asking("a"), saying("1")), (asking("one\ntwo"), saying("2")), since="the task has changed"
    )
    client.complete(asking("a"))
    with pytest.raises(ReplayError) as caught:
        client.complete(asking("one\n2"))
    assert str(caught.value).splitlines() == [
        f"the replay does not fit its recording: call 2 asks something else than call 2 of {NAME}",
        "  message 1 (user) (- recorded, + now):",
        "  @@ line 1",
        "   one",
        "  -two",
        "  +2",
        "  since the recording: the task has changed",
        (
            "  record again (--mlab-record), or let calls match by position"
            " (--mlab-replay-mode=lenient)"
        ),
    ]
    with pytest.raises(ReplayError, match="call 2 asks something else"):
        client.complete(asking("one\ntwo"))
    assert client.fault == str(caught.value)


def test_lenient_takes_an_equal_request_first_then_the_position(replays: Replays) -> None:
    calls = [(asking(text), saying(text.upper())) for text in "abcd"]
    client = replays.of(*calls, mode="lenient")
    assert [client.complete(asking(text)).text for text in ("x", "c", "y", "z")] == [
        "A",
        "C",
        "B",
        "D",
    ]


def test_lenient_prefers_the_same_model(replays: Replays) -> None:
    calls = [(asking("a", "fast"), saying("from fast")), (asking("b", "main"), saying("from main"))]
    client = replays.of(*calls, mode="lenient")
    assert client.complete(asking("x", "main")).text == "from main"
    assert client.complete(asking("x", "main")).text == "from fast"


@pytest.mark.parametrize("mode", ["strict", "lenient"])
@pytest.mark.parametrize(
    ("end", "why"), [(True, ";"), (False, " and no end: its trial was killed")]
)
def test_more_calls_than_recorded_are_refused(
    replays: Replays, mode: str, end: bool, why: str
) -> None:
    client = replays.of((asking("a"), saying("1")), mode=mode, end=end)
    client.complete(asking("a"))
    with pytest.raises(ReplayError, match=f"this is call 2, and {NAME} has 1{why}"):
        client.complete(asking("a"))


def test_calls_that_nobody_asked_for_are_counted(replays: Replays) -> None:
    client = replays.of(*((asking(text), saying(text)) for text in "abc"))
    client.complete(asking("b"))
    assert client.left_over == f"2 of the 3 calls of {NAME} were not asked for"


def test_threads_find_their_own_answers(replays: Replays) -> None:
    client = replays.of(*((asking(f"question {n}"), saying(f"answer {n}")) for n in range(40)))
    heard: dict[int, str] = {}

    def work(mine: range) -> None:
        for n in mine:
            heard[n] = client.complete(asking(f"question {n}")).text

    threads = [threading.Thread(target=work, args=(range(start, 40, 4),)) for start in range(4)]
    for thread in reversed(threads):
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {n: f"answer {n}" for n in range(40)}
    assert client.left_over == ""


def test_the_workspace_of_now_stands_where_that_of_then_did(replays: Replays) -> None:
    call = ToolCall("1", "Read File", '{"file_name": "/before/space/a"}')
    reply = ModelReply("see /before/space/b", "m", Usage(), None, 0.0, tool_calls=(call,))
    client = replays.of((asking("in /before/space"), reply))
    assert WORKSPACE in replays.path.read_text(encoding="utf-8")
    found = client.complete(asking("in /now/space"))
    assert found.text == "see /now/space/b"
    assert found.tool_calls[0].arguments == '{"file_name": "/now/space/a"}'
    block = {"type": "thinking", "thinking": "in /before/space\n\nhm", "signature": "c2ln"}
    client = replays.of((asking("x"), replace(reply, reasoning=(block,), fell_back=True)))
    found = client.complete(asking("x"))
    assert found.reasoning == ({**block, "thinking": "in /now/space\n\nhm"},)
    assert found.fell_back


def test_facts_are_the_recorded_ones(replays: Replays) -> None:
    client = replays.of()
    assert client.facts("m") == FACTS
    with pytest.raises(ReplayError, match="knows nothing of the model other, only of m"):
        client.facts("other")


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        ("gho_abcdefghij1234567890abcdefghij123456", "gho_abcdefghij1234567890abcdefghij123456"),
        ("set MYAPITOKEN=0123456789abcdef", "set MYAPITOKEN=0123456789abcdef"),
        ("use [key] here", "use sk-learn-style-2024-estimators-are-used here"),
        ("use [key] here", "use hf_model1_finetuned_on_dataset_v2_large here"),
    ],
)
def test_a_recording_that_was_cleaned_by_other_rules_replays(
    tmp_path: Path, recorded: str, asked: str
) -> None:
    file = RecordingFile(tmp_path / "1.jsonl", HEADER, str)
    file.add(asking(recorded), saying("yes"), 0.0)
    file.end()
    client = ReplayClient(
        read_recording(tmp_path / "1.jsonl"),
        name=NAME,
        mode="strict",
        clean=cleaner(Redactor({"MYAPITOKEN": "0123456789abcdef"}), []),
        workspace="",
    )
    assert client.complete(asking(asked)).text == "yes"
