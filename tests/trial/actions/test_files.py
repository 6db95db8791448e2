"""List, Read, Write, Append, Copy, Inspect."""

from __future__ import annotations

import pytest

from pytest_mlab.trial.actions import files
from pytest_mlab.trial.actions.base import SHOWN
from tests.trial.conftest import MakeTrial


def test_listing_marks_folders(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"train.py": b"", "lib/a.py": b""})
    (trial.root / "empty").mkdir()
    assert trial.do("List Files", dir_path=".").text == "empty/\nlib/\ntrain.py"
    assert trial.do("List Files", dir_path="lib").text == "a.py"
    assert trial.do("List Files", dir_path="").text.startswith("empty/")
    assert trial.do("List Files", dir_path="empty").text == "(the folder is empty)"
    missing = trial.do("List Files", dir_path="nowhere")
    assert not missing.ok
    assert missing.text == "List Files: nowhere does not exist; List Files shows what there is"


def test_a_giant_folder_is_cut(make_trial: MakeTrial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_LISTED", 3)
    trial = make_trial(env={f"{k}": b"" for k in range(5)})
    assert trial.do("List Files", dir_path=".").text == "0\n1\n2\n[... 2 more names ...]"


def test_reading(make_trial: MakeTrial) -> None:
    trial = make_trial(
        env={"a.txt": "grüße\n".encode(), "empty": b"", "bin": b"\x00\x01", "latin": b"gr\xfc"}
    )
    assert trial.do("Read File", file_name="a.txt").text == "grüße\n"
    assert trial.do("Read File", file_name="empty").text == "(the file is empty)"
    assert trial.do("Read File", file_name="latin").text == "gr\ufffd"
    binary = trial.do("Read File", file_name="bin")
    assert not binary.ok
    assert "binary file of 2 bytes" in binary.text
    assert not trial.do("Read File", file_name="../trial/trace.jsonl").ok


@pytest.mark.parametrize("limit", [files.TEXT_LIMIT, 50_000])
def test_a_long_file_is_cut_in_the_middle(
    make_trial: MakeTrial, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(files, "TEXT_LIMIT", limit)  # below: only the two ends are read
    trial = make_trial(env={"long": b"A" * 50_000 + b"B" * 50_000})
    text = trial.do("Read File", file_name="long").text
    assert text.startswith("AAA")
    assert text.endswith("BBB")
    assert "left out; Inspect Script Lines shows parts" in text
    assert len(text) < SHOWN + 200


def test_writing_and_adding(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a.txt": b"old and long"})
    assert (
        trial.do("Write File", file_name="a.txt", content="nü").text
        == "a.txt has been written (2 characters)."
    )
    assert trial.do("Append File", file_name="a.txt", content="!").ok
    assert trial.do("Append File", file_name="new/b.txt", content="b").ok
    assert (trial.root / "a.txt").read_text() == "nü!"
    assert (trial.root / "new" / "b.txt").read_text() == "b"


def test_copying(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a.txt": b"a", "d/x": b"x"})
    assert trial.do("Copy File", source="a.txt", destination="b.txt").ok
    assert trial.do("Copy File", source="a.txt", destination="d").ok
    assert trial.do("Copy File", source="a.txt", destination="e/f").ok
    assert all((trial.root / p).read_bytes() == b"a" for p in ("b.txt", "d/a.txt", "e/f"))
    for source, destination, said in (
        ("nowhere", "c", "nowhere does not exist"),
        ("d", "c", "d is not a file"),
        ("a.txt", "./d/../a.txt", "the same file"),
        ("a.txt", "../c", "leads out"),
        ("../trial/trace.jsonl", "c", "leads out"),
    ):
        seen = trial.do("Copy File", source=source, destination=destination)
        assert not seen.ok
        assert said in seen.text
    assert (trial.root / "a.txt").read_bytes() == b"a"
    assert not (trial.root / "c").exists()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("Write File", {"file_name": "train.csv", "content": "x"}),
        ("Append File", {"file_name": "train.csv", "content": "x"}),
        ("Append File", {"file_name": "eval.py", "content": "x"}),
        ("Copy File", {"source": "free.py", "destination": "train.csv"}),
        ("Copy File", {"source": "free.py", "destination": "./eval.py"}),
        (
            "Edit Script (AI)",
            {"script_name": "free.py", "edit_instruction": "x", "save_name": "eval.py"},
        ),
        ("Undo Edit Script", {"script_name": "eval.py"}),
        (
            "Edit Script Segment (AI)",
            {
                "script_name": "free.py",
                "start_line_number": 1,
                "end_line_number": 1,
                "edit_instruction": "x",
                "save_name": "train.csv",
            },
        ),
    ],
)
def test_read_only_files_are_protected(
    make_trial: MakeTrial, name: str, args: dict[str, object]
) -> None:
    trial = make_trial(
        env={"eval.py": b"e", "free.py": b"f"}, public={"train.csv": b"t"}, read_only=("eval.py",)
    )
    seen = trial.do(name, **args)
    assert not seen.ok
    assert "is read-only" in seen.text
    assert (trial.root / "eval.py").read_bytes() == b"e"
    assert (trial.root / "train.csv").read_bytes() == b"t"
    assert trial.model.asked == []


def test_inspecting_lines(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a.py": b"".join(b"line %d\n" % k for k in range(1, 301))})

    def inspect(first: object, last: object) -> tuple[bool, str]:
        seen = trial.do(
            "Inspect Script Lines",
            script_name="a.py",
            start_line_number=first,
            end_line_number=last,
        )
        return seen.ok, seen.text

    assert inspect(2, 3) == (True, "Lines 2 to 3 of a.py, which has 300 lines:\n\nline 2\nline 3")
    assert inspect("299", "390")[1].endswith("line 299\nline 300")
    assert inspect(201, 300)[0]
    for first, last, said in (
        (200, 300, "at most 100"),
        (0, 5, "not a range"),
        (5, 4, "not a range"),
        (301, 302, "has 300 lines"),
    ):
        ok, text = inspect(first, last)
        assert not ok
        assert said in text


def test_lines_end_where_python_ends_them(make_trial: MakeTrial) -> None:
    code = "a\r\n\x0c\nb\u2028\u2029\x85\x1c\nc\n".encode()
    trial = make_trial(env={"a.py": code, "old.py": b"# coding: latin-1\nx = '\xe9'\n"})

    def inspect(name: str, first: int, last: int) -> str:
        return trial.do(
            "Inspect Script Lines", script_name=name, start_line_number=first, end_line_number=last
        ).text

    assert inspect("a.py", 1, 1).endswith(" has 4 lines:\n\na")
    assert inspect("a.py", 2, 4).endswith(":\n\n\x0c\nb\u2028\u2029\x85\x1c\nc")
    assert inspect("old.py", 2, 2).endswith("x = 'é'")


def test_inspecting_binary_or_giant_files(
    make_trial: MakeTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.read_bytes, "__defaults__", (100,))
    trial = make_trial(env={"bin": b"\0", "long": b"x\n" * 60})
    for name, said in (("bin", "binary"), ("long", "more than 100 bytes")):
        seen = trial.do(
            "Inspect Script Lines", script_name=name, start_line_number=1, end_line_number=1
        )
        assert not seen.ok
        assert said in seen.text
