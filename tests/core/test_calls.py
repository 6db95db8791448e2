"""Calls as models write them: what is meant, and what is nobody's to guess."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.core.actions import Action, ActionSpec
from pytest_mlab.core.calls import action_name, argument_object, fitting, read_call, unknown

NAMES = ("List Files", "Edit Script (AI)", "Edit Script Segment (AI)", "Execute Script")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "file_name": {"type": "string"},
        "line": {"type": "integer"},
        "rate": {"type": "number"},
        "force": {"type": "boolean"},
        "names": {"type": "array"},
        "more": {"type": ["object", "null"]},
    },
    "required": ["file_name"],
    "additionalProperties": False,
}
READ = ActionSpec("Read File", "Reads.", SCHEMA)


@pytest.mark.parametrize(
    "written",
    [
        "List Files",
        "list_files",
        "LIST-FILES",
        "listFiles",
        " `List_Files` ",
        '"List Files"',
        "functions.List_Files",
        "functions.list_files:0",
        "tool.list_files",
        "tools/list files",
        "default_api.List_Files",
        "List_Files<|channel|>commentary",
        "functions.List_Files<|channel|>commentary json",
        "<|channel|>commentary to=functions.List_Files",
        "List_Files()",
    ],
)
def test_a_name_is_what_it_means(written: str) -> None:
    assert action_name(written, NAMES) == "List Files"


@pytest.mark.parametrize(
    "written", ["", "List", "Edit", "List Filse", "functions.", "<|channel|>", "()", "x" * 999]
)
def test_other_names_are_nobodys(written: str) -> None:
    assert action_name(written, NAMES) is None


def test_an_equal_name_comes_first_and_a_name_of_two_is_neither() -> None:
    names = ["read", "Read", "functions.go", "go"]
    assert action_name("Read", names) == "Read"
    assert action_name("functions.go", names) == "functions.go"
    assert action_name("READ", names) is None
    assert action_name("edit_script", NAMES) == "Edit Script (AI)"
    assert action_name("edit_script", ["Edit Script (AI)", "Edit Script (old)"]) is None


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        (json.dumps('{"a": 1}'), {"a": 1}),
        (json.dumps(json.dumps('{"a": 1}')), {"a": 1}),
        ('{"a": "x\ny"}', {"a": "x\ny"}),
        ('{"a": 1}<|call|>', {"a": 1}),
        ([{"a": 1}], {"a": 1}),
        ("", {}),
        ("null", {}),
        (None, {}),
    ],
)
def test_arguments_are_an_object_in_any_wrapping(written: Any, found: dict[str, Any]) -> None:
    assert argument_object(written) == found


@pytest.mark.parametrize(
    "written", ["[1]", "3", 3, '{"a": ', '{"a": 1} and more', '"text"', [1, 2]]
)
def test_what_is_no_object_is_said(written: Any) -> None:
    assert isinstance(argument_object(written), str)


@pytest.mark.parametrize(
    ("name", "written", "taken"),
    [
        ("line", 3, 3),
        ("line", "3", 3),
        ("line", " 12 ", 12),
        ("line", 3.0, 3),
        ("line", "3.0", 3),
        ("line", "-1", -1),
        ("rate", "0.5", 0.5),
        ("rate", 1, 1),
        ("force", "True", True),
        ("force", "false", False),
        ("names", '["a"]', ["a"]),
        ("more", '{"a": 1}', {"a": 1}),
        ("more", None, None),
        ("fileName", "a.py", "a.py"),
        ("file_name", 3, "3"),
    ],
)
def test_a_value_is_of_the_type_that_is_wanted(name: str, written: Any, taken: Any) -> None:
    args = {"file_name": "x", name: written} if name != "fileName" else {name: written}
    meant = name if name != "fileName" else "file_name"
    assert fitting(READ, args) == {"file_name": "x", meant: taken}


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        ({"line": 1}, "missing file_name"),
        ({"file_name": None}, "file_name is a NoneType, expected text"),
        ({"file_name": ["a"]}, "file_name is a list, expected text"),
        ({"file_name": "a", "mode": "w"}, "unknown mode"),
        *(
            ({"file_name": "a", "line": bad}, "expected a whole number")
            for bad in (1.5, "x", True, [1], "1e9", "9" * 40, float("nan"))
        ),
        ({"file_name": "a", "force": "perhaps"}, "expected true or false"),
        ({"file_name": "a", "rate": "fast"}, "expected a number"),
        ({"file_name": "a", "names": "a, b"}, "expected a list"),
        ([1], "arguments are an object, not a list"),
    ],
)
def test_other_arguments_get_the_fault_and_the_usage(args: Any, fault: str) -> None:
    found = fitting(READ, args)
    assert isinstance(found, str)
    assert fault in found
    assert "Usage: Read File" in found


def test_null_is_left_out_where_an_argument_is_optional() -> None:
    assert fitting(READ, {"file_name": "a", "line": None}) == {"file_name": "a"}


def test_a_whole_call_in_place_of_its_arguments_is_unwrapped() -> None:
    whole = {"name": "Read_File", "arguments": '{"file_name": "a"}'}
    assert fitting(READ, whole) == {"file_name": "a"}


def test_a_call_is_an_action_or_a_sentence() -> None:
    actions = {"Read File": READ}
    assert read_call(actions, "functions.read_file", '{"file_name": "a"}') == Action(
        "Read File", {"file_name": "a"}
    )
    assert "There is no action 'Fly'" in str(read_call(actions, "Fly", "{}"))
    assert "no JSON object" in str(read_call(actions, "Read File", "{broken"))
    assert "missing file_name" in str(read_call(actions, "Read File", "{}"))


def test_a_very_long_unknown_name_is_cut() -> None:
    assert len(unknown("x" * 10_000, ["A"])) < 200


values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@given(values)
def test_whatever_a_model_writes_is_an_action_or_a_sentence(value: Any) -> None:
    actions = {"Read File": READ}
    assert isinstance(read_call(actions, str(value), value), (Action, str))
    assert isinstance(read_call(actions, "Read File", value), (Action, str))
    found = fitting(READ, {"file_name": value, "line": value, "more": value})
    if isinstance(found, dict):
        assert isinstance(found["file_name"], str)
        assert fitting(READ, found) == found
