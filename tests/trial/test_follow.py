"""Following a trace that grows."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.store.events import Event, Note
from pytest_mlab.store.journal import Journal
from pytest_mlab.trial.follow import Follower, LogFollower

KEY = "sk-not-a-real-key-0123456789"


def note(number: int) -> Note:
    return Note(t=float(number), kind="test", data={"number": number})


def test_each_event_comes_once_and_in_order(tmp_path: Path) -> None:
    seen: list[Event] = []
    follower = Follower(tmp_path / "trace", seen.append)
    follower.catch_up()
    with Journal(tmp_path / "trace") as journal:
        follower.catch_up()
        for number in range(3):
            journal.write(note(number))
        follower.catch_up()
        follower.catch_up()
        journal.write(note(3))
    follower.catch_up()
    assert seen == [note(number) for number in range(4)]


def test_a_torn_line_waits_and_is_cut_off_by_the_next_writer(tmp_path: Path) -> None:
    seen: list[Event] = []
    follower = Follower(tmp_path / "trace", seen.append)
    with Journal(tmp_path / "trace") as journal:
        journal.write(note(0))
    line = (tmp_path / "trace").read_bytes()
    with open(tmp_path / "trace", "ab") as file:
        file.write(line[:10])
    follower.catch_up()
    assert seen == [note(0)]
    with Journal(tmp_path / "trace") as journal:
        journal.write(note(1))
    follower.catch_up()
    assert seen == [note(0), note(1)]


def test_a_damaged_line_is_left_out(tmp_path: Path) -> None:
    seen: list[Event] = []
    (tmp_path / "trace").write_bytes(b"nonsense\n")
    with Journal(tmp_path / "trace") as journal:
        journal.write(note(1))
    Follower(tmp_path / "trace", seen.append).catch_up()
    assert seen == [note(1)]


def test_what_the_callback_raises_passes_and_its_event_does_not_come_again(tmp_path: Path) -> None:
    seen: list[Event] = []

    def fail_once(event: Event) -> None:
        seen.append(event)
        if len(seen) == 1:
            raise KeyError("mine")

    follower = Follower(tmp_path / "trace", fail_once)
    with Journal(tmp_path / "trace") as journal:
        journal.write(note(0))
        journal.write(note(1))
    with pytest.raises(KeyError, match="mine"):
        follower.catch_up()
    follower.catch_up()
    assert seen == [note(0), note(1)]


def test_a_log_comes_in_whole_lines_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    seen: list[str] = []
    follower = LogFollower(tmp_path / "agent.log", seen.append)
    follower.catch_up()
    with open(tmp_path / "agent.log", "a", encoding="utf-8", buffering=1) as file:
        file.write(f"caf\u00e9\nmy key is {KEY[:9]}")
        file.flush()
        follower.catch_up()
        assert seen == ["caf\u00e9\n"]
        file.write(f"{KEY[9:]}, and")
        file.flush()
        follower.catch_up()
    follower.catch_up(ended=True)
    assert seen[1:] == ["my key is [OPENAI_API_KEY], and"]
