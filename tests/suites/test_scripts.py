"""The scripts of the control agents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_mlab.core.actions import Action
from pytest_mlab.errors import SuiteError
from pytest_mlab.suites.loader import load_task
from pytest_mlab.suites.scripts import read_actions, recorded_script, scripted_actions, trivial_name
from tests.suites.folders import ACTIONS_TOML, edit, toy_task


def test_a_files_text_becomes_the_argument_content(tmp_path: Path) -> None:
    task = load_task(toy_task(tmp_path), "lab")
    assert scripted_actions(task, "reference") == [
        Action("Write File", {"file_name": "train.py", "content": "print('better')\n"}),
        Action("Final Answer", {"final_answer": "done"}),
    ]


def test_the_baseline_is_the_starter_script_as_it_is(tmp_path: Path) -> None:
    folder = toy_task(tmp_path)
    (folder / "env" / "train.py").rename(folder / "env" / "main.py")
    edit(folder / "task.toml", "[metric]", 'starter_script = "main.py"\n[metric]')
    actions = scripted_actions(load_task(folder, "lab"), "baseline")
    assert [action.name for action in actions] == ["Execute Script", "Final Answer"]
    assert actions[0].args == {"script_name": "main.py"}


def test_a_hidden_filled_starter_is_the_baseline_where_there_is_one(tmp_path: Path) -> None:
    folder = toy_task(tmp_path)
    (folder / "baseline").mkdir()
    (folder / "baseline" / "actions.toml").write_text(ACTIONS_TOML)
    (folder / "baseline" / "train.py").write_text("print('filled')\n")
    edit(folder / "task.toml", 'measured = "starter"', 'measured = "filled-starter"')
    assert (
        scripted_actions(load_task(folder, "lab"), "baseline")[0].args["content"]
        == "print('filled')\n"
    )


@pytest.mark.parametrize(("measured", "script"), [("starter", "baseline"), ("done", "trivial")])
def test_a_trivial_predictor_is_called_by_its_final_answer(
    tmp_path: Path, measured: str, script: str
) -> None:
    folder = toy_task(tmp_path)
    edit(folder / "task.toml", 'measured = "starter"', f'measured = "{measured}"')
    assert trivial_name(load_task(folder, "lab")) == ""
    assert recorded_script(load_task(folder, "lab"), "mini") == "baseline"
    (folder / "trivial").mkdir()
    (folder / "trivial" / "actions.toml").write_text(ACTIONS_TOML)
    (folder / "trivial" / "train.py").write_text("print('guess')\n")
    task = load_task(folder, "lab")
    assert trivial_name(task) == "done"
    assert recorded_script(task, "mini") == script
    assert recorded_script(task, "full") == "baseline"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            'content_file = "train.py"',
            'content_file = "gone.py"',
            ':3: action[0].content_file: "gone.py" found, but',
        ),
        (
            'content_file = "train.py"',
            'content_file = "../env/train.py"',
            "must be a relative path",
        ),
        (
            "content_file",
            "contentfile",
            ":3: action[0].contentfile: unknown key; nearest: content_file; keys of",
        ),
        ('file_name = "train.py"', 'content = "x"', "give content_file or args.content, not both"),
        (
            'name = "Final Answer"',
            'name = "List Files"',
            ':7: action[1]: the last action must be "Final Answer"',
        ),
        ('name = "Final Answer"\n', "", ":7: action[1].name: is missing"),
        ("[[action]]", "[[action]", "actions.toml:1: not valid TOML"),
    ],
)
def test_a_wrong_script_is_refused_when_the_task_is_loaded(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    folder = toy_task(tmp_path)
    edit(folder / "reference" / "actions.toml", old, new)
    with pytest.raises(SuiteError, match=re.escape(expected)):
        load_task(folder, "lab")


def test_a_missing_or_binary_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"actions\.toml: No such file"):
        read_actions(tmp_path)
    (tmp_path / "actions.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SuiteError, match=r"actions\.toml: not UTF-8 text at byte 0"):
        read_actions(tmp_path)
