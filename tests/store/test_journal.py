"""The trace: appended, torn, read lazily and from its end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_mlab.core.budget import Budget, Ledger
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId
from pytest_mlab.errors import StoreError
from pytest_mlab.store import journal as module
from pytest_mlab.store.events import AgentEnded, Note, StepDone, TrialFinished, TrialStarted
from pytest_mlab.store.journal import MAX_LINE, Journal, read_events, read_last_event


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.jsonl"


def note(number: int, text: str = "x") -> Note:
    return Note(t=1.5, kind="n", data={"number": number, "text": text})


def test_events_come_back_equal_and_in_order(path: Path) -> None:
    events = [
        TrialStarted(
            t=0.0,
            trial=TrialId("t", "a", "", 1),
            pid=1,
            sandbox="local",
            budget=Budget(max_seconds=float("inf")),
            task_digest="d",
            data="mini",
            data_digest="d",
            agent_digest="d",
            machine="m",
            starter="s",
        ),
        StepDone(
            t=1.0,
            index=1,
            action="List Files",
            args={"dir_path": "."},
            observation="ä\n",
            ok=True,
            seconds=0.1,
            snapshot="s",
            set={"a": "b"},
            deleted=["c"],
            ledger=Ledger(steps=1),
        ),
        AgentEnded(t=2.0, ended_by=EndedBy.SUBMITTED, ledger=Ledger(steps=1)),
        TrialFinished(t=3.0, outcome=Outcome.SUCCESS),
    ]
    with Journal(path) as journal:
        for event in events:
            journal.write(event)  # type: ignore[arg-type]
    assert list(read_events(path)) == events
    assert read_last_event(path) == events[-1]


def test_a_missing_trace_has_no_events(path: Path) -> None:
    assert list(read_events(path)) == []
    assert read_last_event(path) is None


@pytest.mark.parametrize("torn", [b"{", b'{"v":1,"t":1.0,"type":"no', b"\xff\xfe"])
def test_a_torn_last_line_is_left_out_and_dropped_by_the_next_writer(
    path: Path, torn: bytes
) -> None:
    with Journal(path) as journal:
        journal.write(note(1))
    with open(path, "ab") as file:
        file.write(torn)
    assert list(read_events(path)) == [note(1)]
    assert read_last_event(path) == note(1)
    with Journal(path) as journal:
        journal.write(note(2))
    assert list(read_events(path)) == [note(1), note(2)]


def test_a_trace_of_nothing_but_a_torn_line_starts_afresh(path: Path) -> None:
    path.write_bytes(b'{"v":')
    assert read_last_event(path) is None
    with Journal(path) as journal:
        journal.write(note(1))
    assert list(read_events(path)) == [note(1)]


def test_a_damaged_line_in_the_middle_is_named(path: Path) -> None:
    with Journal(path) as journal:
        journal.write(note(1))
    with open(path, "ab") as file:
        file.write(b"rubbish\n")
    with pytest.raises(StoreError, match=r"trace\.jsonl, line 2: no event"):
        list(read_events(path))
    with pytest.raises(StoreError, match="last line"):
        read_last_event(path)


def test_a_newer_version_is_named(path: Path) -> None:
    path.write_text(note(1).model_copy(update={"v": 99}).model_dump_json() + "\n")
    with pytest.raises(StoreError, match="event version 99"):
        list(read_events(path))


def test_fields_of_later_versions_are_ignored(path: Path) -> None:
    path.write_text(note(1).model_dump_json()[:-1] + ',"later":[1]}\n')
    assert list(read_events(path)) == [note(1)]


def test_reading_is_lazy(path: Path) -> None:
    with Journal(path) as journal:
        journal.write(note(1))
    with open(path, "ab") as file:
        file.write(b"rubbish\n")
    events = read_events(path)
    assert next(events) == note(1)
    events.close()  # type: ignore[attr-defined]


def test_the_last_event_is_found_behind_a_long_line(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TAIL", 64)
    with Journal(path) as journal:
        journal.write(note(1))
        journal.write(note(2, "y" * 1000))
    assert read_last_event(path) == note(2, "y" * 1000)


def test_giant_texts_are_cut_and_say_so(path: Path) -> None:
    with Journal(path) as journal:
        journal.write(note(1, "a" * (3 * MAX_LINE) + "b"))
    assert path.stat().st_size <= MAX_LINE
    event = read_last_event(path)
    assert isinstance(event, Note)
    text = event.data["text"]
    assert text.startswith("aaa")
    assert text.endswith("ab")
    assert "characters left out of the trace" in text


def test_many_long_texts_are_cut_until_the_line_fits(path: Path) -> None:
    with Journal(path) as journal:
        journal.write(Note(t=0.0, kind="n", data={str(i): "ä" * 5000 for i in range(1000)}))
    assert path.stat().st_size <= MAX_LINE
    assert read_last_event(path) is not None


def test_an_event_that_cannot_fit_is_an_error(path: Path) -> None:
    with Journal(path) as journal, pytest.raises(StoreError, match="too large"):
        journal.write(Note(t=0.0, kind="n", data={str(i): i for i in range(200_000)}))
    assert path.stat().st_size == 0


def test_lone_surrogates_do_not_break_a_line(path: Path) -> None:
    with Journal(path) as journal:
        journal.write(note(1, "a\ud800b"))
    event = read_last_event(path)
    assert isinstance(event, Note)
    assert event.data["text"] == "a?b"


def test_writes_interrupted_half_way_are_completed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    with Journal(path) as journal:
        monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))
        journal.write(note(1))
    assert list(read_events(path)) == [note(1)]


def test_a_full_disk_is_a_store_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with Journal(path) as journal:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(StoreError, match=r"takes no more events.*No space"):
            journal.write(note(1))


def test_a_closed_journal_takes_nothing(path: Path) -> None:
    journal = Journal(path)
    journal.close()
    journal.close()
    with pytest.raises(StoreError, match="closed"):
        journal.write(note(1))
