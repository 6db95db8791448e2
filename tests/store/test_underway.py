"""What a trial does at this moment, as its file says it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_mlab.store.underway import FILE, Activity, UnderWay, read


def test_what_began_last_is_shown_and_then_the_agents_own_code(tmp_path: Path) -> None:
    moments = iter(range(1, 9))
    activity = Activity(tmp_path, now=lambda: float(next(moments)))
    assert read(tmp_path) is None
    with activity.doing("a program with a name much longer than what comes next", 1):
        with activity.doing("a call", 2):
            assert read(tmp_path) == UnderWay("a call", 2.0, 2)
        shown = read(tmp_path)
        assert shown is not None
        assert (shown.what[:9], shown.since) == ("a program", 1.0)
    assert read(tmp_path) == UnderWay("", 3.0, 1)
    activity.close()
    activity.close()
    assert read(tmp_path) == UnderWay("", 3.0, 1)
    # Another process goes on with a shorter text, and leaves no file behind.
    with Activity(tmp_path, now=lambda: 5.0).doing("b"):
        assert read(tmp_path) == UnderWay("b", 5.0, None)
    assert not (tmp_path / FILE).exists()


def test_a_change_is_one_write_to_an_open_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    activity = Activity(tmp_path)
    with activity.doing("first", 1):
        monkeypatch.setattr(os, "open", None)  # a second opening would be a TypeError
        with activity.doing("second", 1):
            pass
    activity.close()


def test_a_folder_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    with Activity(tmp_path / "gone").doing("x", 1):
        assert read(tmp_path / "gone") is None
