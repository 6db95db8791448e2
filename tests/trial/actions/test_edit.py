"""Edits by a model, their backups, and taking them back."""

from __future__ import annotations

import errno
import os

import pytest

from pytest_mlab.errors import BadRequestError, ConfigError, ContextWindowError
from pytest_mlab.trial.actions.edit import MAX_TOKENS
from tests.trial.conftest import FakeModel, MakeTrial, Trial


def edit(trial: Trial, name: str = "a.py", save: str = "a.py") -> tuple[bool, str]:
    seen = trial.do("Edit Script (AI)", script_name=name, edit_instruction="Do it.", save_name=save)
    return seen.ok, seen.text


def undo(trial: Trial, name: str = "a.py") -> tuple[bool, str]:
    seen = trial.do("Undo Edit Script", script_name=name)
    return seen.ok, seen.text


def test_the_edit_model_rewrites_a_file(make_trial: MakeTrial) -> None:
    trial = make_trial(
        env={"a.py": b"one\ntwo\n"}, model=FakeModel(["Here:\n```python\none\nthree\n```\nDone."])
    )
    ok, text = edit(trial)
    assert ok
    assert (trial.root / "a.py").read_text() == "one\nthree\n"
    assert "--- a.py (before)\n+++ a.py (after)\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n" in text
    ((role, prompt),) = trial.model.asked
    assert role == "edit"
    assert "one\ntwo\n" in prompt
    assert "Do it." in prompt
    assert trial.model.max_tokens == [MAX_TOKENS]


def test_a_missing_file_starts_empty_and_undoing_removes_it(make_trial: MakeTrial) -> None:
    trial = make_trial(model=FakeModel(["```\nnew\n```"]))
    assert edit(trial)[0]
    assert (trial.root / "a.py").read_text() == "new\n"
    ok, text = undo(trial)
    assert ok
    assert "has been removed" in text
    assert not (trial.root / "a.py").exists()


def test_edits_are_undone_one_by_one_and_file_by_file(make_trial: MakeTrial) -> None:
    trial = make_trial(
        env={"a.py": b"0\n", "a.py.bak": b"other\n"}, model=FakeModel(["1", "2", "x", "3"])
    )
    edit(trial)
    edit(trial)
    edit(trial, "a.py.bak", "a.py.bak")
    edit(trial, "./a.py", "./a.py")
    assert (trial.root / "a.py").read_text() == "3\n"
    for content in ("2\n", "1\n", "0\n"):
        ok, text = undo(trial)
        assert ok
        assert text == f"The last edit of a.py has been undone. The file now is:\n\n{content}"
        assert (trial.root / "a.py").read_text() == content
    ok, text = undo(trial)
    assert not ok
    assert "no edit of a.py to undo (files with edits to undo: a.py.bak)" in text
    assert (trial.root / "a.py.bak").read_text() == "x\n"
    assert sorted(os.listdir(trial.root)) == ["a.py", "a.py.bak"]
    assert sorted(os.listdir(trial.dir.backups)) == ["0001", "0002", "0003", "0004"]


def test_saving_elsewhere_leaves_the_file_alone_and_backs_up_what_it_replaces(
    make_trial: MakeTrial,
) -> None:
    trial = make_trial(env={"a.py": b"a\n", "b.py": b"b\n"}, model=FakeModel(["new"]))
    assert edit(trial, "a.py", "b.py")[0]
    assert (trial.root / "a.py").read_text() == "a\n"
    assert (trial.root / "b.py").read_text() == "new\n"
    assert not undo(trial, "a.py")[0]
    assert undo(trial, "b.py")[0]
    assert (trial.root / "b.py").read_text() == "b\n"


def test_an_edit_that_changes_nothing_says_so(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a.py": b"a\n"}, model=FakeModel(["a"]))
    assert edit(trial) == (True, "The edit changed nothing; a.py has the content of a.py.")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("", "gave no content"),
        ("```\n```", "gave no content"),
        ("I cannot do that.", "without a code block"),
        (ContextWindowError("8192 tokens"), "too long for the model (8192 tokens)"),
        (BadRequestError("bad"), "the model refused the request (bad)"),
        (ConfigError("no model for edit"), "no model for edit"),
    ],
)
def test_a_model_that_fails_changes_nothing(
    make_trial: MakeTrial, reply: str | Exception, said: str
) -> None:
    trial = make_trial(env={"a.py": b"a\n"}, model=FakeModel([reply]))
    ok, text = edit(trial)
    assert not ok
    assert said in text
    assert (trial.root / "a.py").read_text() == "a\n"
    assert not undo(trial)[0]


def test_an_answer_cut_at_the_limit_changes_nothing(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a.py": b"a\n"}, model=FakeModel(["half a fi"], finish_reason="length"))
    ok, text = edit(trial)
    assert not ok
    assert "4000 tokens, so nothing was changed" in text
    assert (trial.root / "a.py").read_text() == "a\n"


def test_without_a_model_the_action_says_what_is_missing(make_trial: MakeTrial) -> None:
    ok, text = edit(make_trial(env={"a.py": b"a\n"}, no_model=True))
    assert not ok
    assert "--mlab-model" in text


def segment(trial: Trial, first: int, last: int, name: str = "a.py") -> tuple[bool, str]:
    seen = trial.do(
        "Edit Script Segment (AI)",
        script_name=name,
        start_line_number=first,
        end_line_number=last,
        edit_instruction="Do it.",
        save_name=name,
    )
    return seen.ok, seen.text


def test_a_segment_is_replaced(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a.py": b"1\n2\n3\n4\n"}, model=FakeModel(["```\n    two\n```"]))
    ok, text = segment(trial, 2, 3)
    assert ok
    assert (trial.root / "a.py").read_text() == "1\n    two\n4\n"
    assert "-2\n-3\n+    two\n" in text
    prompt = trial.model.asked[0][1]
    assert "```\n2\n3\n```\n" in prompt
    assert "lines 2 to 3" in prompt
    assert undo(trial)[0]
    assert (trial.root / "a.py").read_text() == "1\n2\n3\n4\n"


@pytest.mark.parametrize(("first", "last"), [(0, 1), (3, 2), (4, 5), (9, 9)])
def test_a_range_that_is_none_asks_no_model(make_trial: MakeTrial, first: int, last: int) -> None:
    trial = make_trial(env={"a.py": b"1\n2\n3\n4\n"})
    ok, text = segment(trial, first, last)
    assert not ok
    assert "a.py, which has 4 lines" in text
    assert trial.model.asked == []


def test_a_segment_of_a_missing_file_starts_it(make_trial: MakeTrial) -> None:
    trial = make_trial(model=FakeModel(["new"]))
    assert segment(trial, 1, 1)[0]
    assert (trial.root / "a.py").read_text() == "new\n"


def test_binary_and_giant_files_are_not_given_to_the_model(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"bin": b"\0", "big": b"x" * 300_000})
    for name, said in (("bin", "binary"), ("big", "more than 200000 bytes")):
        ok, text = edit(trial, name, name)
        assert not ok
        assert said in text
    assert trial.model.asked == []


DOC = b'"""Usage:\n\n```\npython doc.py\n```\n"""\nprint("hello")\n'


def test_the_model_gets_a_fence_that_the_file_does_not_have(make_trial: MakeTrial) -> None:
    bye = DOC.replace(b"hello", b"bye")
    answer = f"Here it is:\n````python\n{bye.decode()}````\n```\nDone\n```"
    trial = make_trial(env={"doc.txt": DOC}, model=FakeModel([answer]))
    assert edit(trial, "doc.txt", "doc.txt")[0]
    assert (trial.root / "doc.txt").read_bytes() == bye
    prompt = trial.model.asked[0][1]
    assert f"````\n{DOC.decode()}````\n" in prompt
    assert "begins and ends with a line of ````" in prompt


@pytest.mark.parametrize(
    ("file", "line", "answer", "after"),
    [
        # A fence in the content, and a model that takes the short one all the same.
        (DOC, 7, 'print("bye")', DOC.replace(b"hello", b"bye")),
        (b"import os\r\n\r\nLR = 1\r\n", 3, "LR = 2", b"import os\r\n\r\nLR = 2\r\n"),
        (b"N = 'caf\xe9'\nLR = 1\nx\n", 2, "LR = 2", b"N = 'caf\xe9'\nLR = 2\nx\n"),
        (
            b"a\n\x0c\nb\x1c\xc2\x85\xe2\x80\xa8\nc\n",
            4,
            "C",
            b"a\n\x0c\nb\x1c\xc2\x85\xe2\x80\xa8\nC\n",
        ),
        (b"\xef\xbb\xbfa\nb", 2, "B", b"\xef\xbb\xbfa\nB"),
        (b"\xef\xbb\xbfa\nb", 1, "A", b"\xef\xbb\xbfA\nb"),
    ],
)
def test_what_an_edit_does_not_mean_stays_byte_for_byte(
    make_trial: MakeTrial, file: bytes, line: int, answer: str, after: bytes
) -> None:
    model = FakeModel([f"```python\n{answer}\n```"])
    trial = make_trial(env={"a.py": file}, model=model)
    (trial.root / "a.py").chmod(0o755)
    (trial.root / "link.py").symlink_to("a.py")
    ok, text = segment(trial, line, line, "link.py")
    assert ok, text
    assert (trial.root / "a.py").read_bytes() == after
    assert (trial.root / "link.py").is_symlink()
    assert os.stat(trial.root / "a.py").st_mode & 0o777 == 0o755
    (trial.root / "a.py").unlink()
    assert undo(trial)[0]
    assert (trial.root / "a.py").read_bytes() == file
    assert os.access(trial.root / "a.py", os.X_OK)


@pytest.mark.parametrize("prose", ["", "Sure, here is the file:\n\n"])
def test_a_whole_file_with_a_short_fence_inside_a_short_fence(
    make_trial: MakeTrial, prose: str
) -> None:
    bye = DOC.replace(b"hello", b"bye")
    trial = make_trial(
        env={"doc.py": DOC}, model=FakeModel([f"{prose}```python\n{bye.decode()}```"])
    )
    assert edit(trial, "doc.py", "new.py")[0]
    assert (trial.root / "new.py").read_bytes() == bye


def test_bytes_of_an_unknown_encoding_are_not_given_to_the_model(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a.py": b"x = 1\nN = 'caf\xe9'\n"}, model=FakeModel(["y = 'é'"]))
    ok, text = edit(trial)
    assert not ok
    assert "line 2 of a.py is not UTF-8 (its byte 9 is 0xe9)" in text
    assert trial.model.asked == []
    ok, text = segment(trial, 1, 1)
    assert not ok
    assert "line 1 of the new text has 'é'" in text
    assert (trial.root / "a.py").read_bytes() == b"x = 1\nN = 'caf\xe9'\n"


@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk_does_not_take_the_file(
    make_trial: MakeTrial, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    trial = make_trial(env={"a.py": b"x = 1\n"} if there else {}, model=FakeModel(["x = 2"]))

    def full(rel: str, *_: object, **__: object) -> None:
        (trial.root / rel).write_bytes(b"x")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(trial.workspace, "write", full)
    ok, text = edit(trial)
    assert not ok
    assert "No space left" in text
    assert [p.read_bytes() for p in trial.root.iterdir()] == ([b"x = 1\n"] if there else [])
    assert not undo(trial)[0]


def test_a_copy_of_an_executable_file_is_one(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a.sh": b"true\n"}, model=FakeModel(["false"]))
    (trial.root / "a.sh").chmod(0o755)
    assert edit(trial, "a.sh", "b.sh")[0]
    assert trial.do("Copy File", source="a.sh", destination="c.sh").ok
    assert all(os.access(trial.root / name, os.X_OK) for name in ("b.sh", "c.sh"))
