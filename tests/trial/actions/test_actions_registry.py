"""All actions: their schemas, and what wrong names and arguments get."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_mlab.core.actions import Action
from pytest_mlab.trial.actions import definitions
from pytest_mlab.trial.actions.base import shortened
from tests.trial.conftest import MakeTrial

OPTIONAL = {"arguments", "containing"}
SPECS = {name: definition.spec for name, definition in definitions().items()}
ARGUMENTS = {
    "List Files": ["dir_path"],
    "Read File": ["file_name"],
    "Write File": ["file_name", "content"],
    "Append File": ["file_name", "content"],
    "Copy File": ["source", "destination"],
    "Undo Edit Script": ["script_name"],
    "Execute Script": ["script_name", "arguments"],
    "Read Output": ["step_number", "start_character", "containing"],
    "Python REPL": ["command"],
    "Request Help": ["request"],
    "Final Answer": ["final_answer"],
    "Understand File": ["file_name", "things_to_look_for"],
    "Inspect Script Lines": ["script_name", "start_line_number", "end_line_number"],
    "Edit Script (AI)": ["script_name", "edit_instruction", "save_name"],
    "Edit Script Segment (AI)": [
        "script_name",
        "start_line_number",
        "end_line_number",
        "edit_instruction",
        "save_name",
    ],
    "Append Summary to Research Log": ["content"],
    "Retrieval from Research Log": ["current_plan"],
    "Reflection": ["things_to_reflect_on"],
}


def test_there_are_the_benchmarks_actions_with_its_arguments() -> None:
    assert {name: list(spec.schema["properties"]) for name, spec in SPECS.items()} == ARGUMENTS
    # The order is part of every prompt, and so of every recording.
    assert list(SPECS) == [
        "List Files",
        "Copy File",
        "Undo Edit Script",
        "Execute Script",
        "Read Output",
        "Request Help",
        "Final Answer",
        "Understand File",
        "Inspect Script Lines",
        "Edit Script (AI)",
        "Reflection",
        "Read File",
        "Write File",
        "Append File",
        "Python REPL",
        "Edit Script Segment (AI)",
        "Append Summary to Research Log",
        "Retrieval from Research Log",
    ]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_schema_is_closed_and_described(name: str) -> None:
    spec = SPECS[name]
    assert spec.schema["type"] == "object"
    assert spec.schema["additionalProperties"] is False
    assert spec.schema["required"] == [a for a in ARGUMENTS[name] if a not in OPTIONAL]
    assert all(
        p["type"] in ("string", "integer") and p["description"]
        for p in spec.schema["properties"].values()
    )
    assert spec.name == name
    assert spec.summary.endswith(".")
    assert spec.returns


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        ({}, "missing file_name, content"),
        ({"file_name": "a"}, "missing content"),
        ({"file_name": "a", "content": "b", "mode": "w"}, "unknown mode"),
        ({"file_name": "a", "text": "b"}, "missing content; unknown text"),
        ({"file_name": "a", "content": ["b"]}, "content is a list, expected text"),
        ({"file_name": "a", "content": None}, "content is a NoneType, expected text"),
    ],
)
def test_wrong_arguments_get_the_usage(
    make_trial: MakeTrial, args: dict[str, Any], fault: str
) -> None:
    seen = make_trial().do("Write File", **args)
    assert not seen.ok
    assert (
        seen.text == f"Write File: wrong arguments: {fault}. Usage: Write File "
        '{"file_name": "<a file of the workspace>", "content": "<the whole new content>"}'
    )


@pytest.mark.parametrize(
    ("asked", "first"),
    [("List Filse", "List Files"), ("Read Fil", "Read File"), ("Edit Scr", "Edit Script (AI)")],
)
def test_an_unknown_action_gets_all_names_nearest_first(
    make_trial: MakeTrial, asked: str, first: str
) -> None:
    seen = make_trial().do(asked)
    assert not seen.ok
    assert seen.text.startswith(f"There is no action {asked!r}. The actions are: {first}, ")
    assert all(name in seen.text for name in ARGUMENTS)


def test_an_action_is_done_and_written_down_as_it_is_meant(make_trial: MakeTrial) -> None:
    trial = make_trial()
    seen = trial.do("functions.write_file<|channel|>commentary", fileName="a.txt", content=3)
    assert seen.ok
    assert (trial.root / "a.txt").read_text() == "3"
    assert trial.env.history[-1].action == Action(
        "Write File", {"file_name": "a.txt", "content": "3"}
    )


def test_texts_are_cut_in_the_middle() -> None:
    assert shortened("abcdef", limit=6) == "abcdef"
    assert (
        shortened("abcdefg", "; see x", limit=4) == "ab\n[... 3 characters left out; see x ...]\nfg"
    )
