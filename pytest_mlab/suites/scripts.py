"""A task's own scripts: the actions that the agents ``baseline`` and ``reference`` replay, and a
trivial predictor."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from pytest_mlab.core.actions import Action
from pytest_mlab.core.task import Task
from pytest_mlab.errors import SuiteError
from pytest_mlab.suites.problems import Problem, from_validation, render
from pytest_mlab.suites.schema import ActionsFile, ActionTable
from pytest_mlab.suites.toml import parse

ACTIONS_FILE = "actions.toml"


def scripted_actions(
    task: Task, which: Literal["baseline", "reference", "trivial"]
) -> list[Action]:
    """The actions of ``baseline/``, ``reference/`` or ``trivial/``, texts of files filled in.

    A task without a folder ``baseline/`` runs its starter script and submits. Raises SuiteError.
    """
    folder = task.folder / which
    if which == "baseline" and not folder.is_dir():
        return [
            Action("Execute Script", {"script_name": task.starter_script}),
            Action("Final Answer", {"final_answer": "the starter code as it is"}),
        ]
    return read_actions(folder)


def trivial_name(task: Task) -> str:
    """What the predictor under ``trivial/`` is called: its final answer; '' without one. Raises
    SuiteError."""
    if not (task.folder / "trivial").is_dir():
        return ""
    return (
        str(scripted_actions(task, "trivial")[-1].args.get("final_answer", ""))
        or "trivial predictor"
    )


def recorded_script(task: Task, variant: str) -> Literal["baseline", "trivial"]:
    """What has to be run to score the recorded baseline again: the starter, or the trivial
    predictor that beat it."""
    baseline = task.variants[variant].baseline
    trivial = trivial_name(task)
    return (
        "trivial"
        if trivial and baseline is not None and baseline.measured == trivial
        else "baseline"
    )


def read_actions(folder: Path) -> list[Action]:
    """The content of ``folder/actions.toml``. Raises SuiteError with file, line and key."""
    file = folder / ACTIONS_FILE
    try:
        text = file.read_text(encoding="utf-8")
        document = parse(text)
    except OSError as error:
        raise SuiteError(f"{file}: {error.strerror}") from None
    # UnicodeDecodeError is a ValueError, so it stands before the one that `parse` raises.
    except UnicodeDecodeError as error:
        raise SuiteError(f"{file}: not UTF-8 text at byte {error.start}") from None
    except ValueError as error:
        raise SuiteError(f"{file}:{error}") from None
    try:
        content = ActionsFile.model_validate(document)
    except ValidationError as error:
        raise SuiteError(render(from_validation(error, ActionsFile), file, text)) from None
    problems = [
        problem
        for index, item in enumerate(content.action)
        for problem in _problems(index, item, folder)
    ]
    if content.action[-1].name != "Final Answer":
        problems.append(
            Problem(("action", len(content.action) - 1), 'the last action must be "Final Answer"')
        )
    if problems:
        raise SuiteError(render(problems, file, text))
    return [Action(item.name, _args(item, folder)) for item in content.action]


def _problems(index: int, item: ActionTable, folder: Path) -> list[Problem]:
    path = ("action", index, "content_file")
    if not item.content_file:
        return []
    if "content" in item.args:
        return [Problem(path, "give content_file or args.content, not both")]
    if not (folder / item.content_file).is_file():
        return [
            Problem(
                path, f'"{item.content_file}" found, but there is no such file in {folder.name}/'
            )
        ]
    return []


def _args(item: ActionTable, folder: Path) -> dict[str, Any]:
    args = dict(item.args)
    if item.content_file:
        args["content"] = (folder / item.content_file).read_text(encoding="utf-8")
    return args
