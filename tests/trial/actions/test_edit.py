"""Edits by a model, their backups, and taking them back."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.errors import BadRequestError, ConfigError, ContextWindowError
from pytest_mlab.trial.actions.edit import MAX_TOKENS, unfenced
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
    assert "```\n2\n3\n\n```" in prompt
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


@pytest.mark.parametrize(
    ("reply", "content"),
    [
        ("plain\ntext", "plain\ntext\n"),
        ("```\na\n```", "a\n"),
        ("```python\na\n\nb\n```\n", "a\n\nb\n"),
        ("Sure:\n```py\nx\n```\nand\n```\nlonger one\n```", "longer one\n"),
        ("```python\nnever closed", "never closed\n"),
        ("a `b` c", "a `b` c\n"),
        ("", ""),
    ],
)
def test_code_is_taken_out_of_its_fence(reply: str, content: str) -> None:
    assert unfenced(reply) == content


@given(
    st.text(alphabet="ab \n#`", max_size=30).filter(
        lambda t: "```" not in t and t.strip() and t[-1] == "\n"
    )
)
def test_any_code_in_a_fence_comes_out_as_it_was(code: str) -> None:
    assert unfenced(f"Here it is:\n```python\n{code}```\nDone") == code
