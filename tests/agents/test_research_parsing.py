"""Replies and arguments as models really write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.research_parsing import FIELDS, clean_action, parse_reply, read_arguments, unmarked
from tests.support.research_replies import research_reply


def test_a_reply_in_form() -> None:
    fields, problem = parse_reply(research_reply("Execute Script", {"script_name": "train.py"}))
    assert problem == ""
    assert tuple(fields) == FIELDS
    assert fields["Action"] == "Execute Script"
    assert fields["Action Input"] == '{"script_name": "train.py"}'


def test_fields_may_have_many_lines() -> None:
    fields, problem = parse_reply(
        research_reply("X", {}, plan="\n1. a\n  - Status: open\n2. b", thought="one\ntwo")
    )
    assert problem == ""
    assert fields["Research Plan and Status"] == "1. a\n  - Status: open\n2. b"
    assert fields["Thought"] == "one\ntwo"


def test_bold_headings_and_other_letters() -> None:
    text = research_reply("Execute Script", {"a": 1})
    for field in FIELDS:
        text = text.replace(f"\n{field}:", f"\n**{field.lower()}:**")
    fields, problem = parse_reply(text)
    assert problem == ""
    assert fields["Action"] == "Execute Script"


def test_what_a_model_makes_up_after_its_answer_is_cut() -> None:
    fields, _ = parse_reply(
        research_reply("X", {"a": 1}) + "Observation: it worked!\nReflection: great\n"
    )
    assert fields["Action Input"] == '{"a": 1}'


@pytest.mark.parametrize("field", FIELDS)
def test_each_missing_field_is_named(field: str) -> None:
    text = "\n".join(
        line
        for line in research_reply("X", {"a": 1}).splitlines()
        if not line.startswith(f"{field}:")
    )
    fields, problem = parse_reply(text)
    assert problem == f"it lacks {field}"
    assert field not in fields


def test_fields_in_another_order_are_missing() -> None:
    _, problem = parse_reply("Action: X\nAction Input: {}\nThought: t\n")
    assert "Action" in problem


@given(st.text())
def test_any_text_parses_or_says_what_is_missing(text: str) -> None:
    fields, problem = parse_reply(text)
    assert bool(problem) == (set(fields) != set(FIELDS))


@pytest.mark.parametrize(
    "name",
    [
        "Execute Script",
        " Execute Script ",
        "`Execute Script`",
        "**Execute Script**.",
        "[Execute Script]\nnow",
    ],
)
def test_action_names(name: str) -> None:
    assert clean_action(name) == "Execute Script"


def test_marks_of_what_is_new_are_removed() -> None:
    assert unmarked("```\n1. look: **done**\n2. **act**\n```") == "1. look: done\n2. act"


ARGUMENTS: list[tuple[str, str, dict[str, Any], str]] = [
    ("plain", '{"file_name": "a.py", "n": 3}', {"file_name": "a.py", "n": 3}, "as is"),
    ("fence", '```json\n{"file_name": "a.py"}\n```', {"file_name": "a.py"}, "sanitised"),
    ("words around", 'Here: {"file_name": "a.py"} That is it.', {"file_name": "a.py"}, "sanitised"),
    ("raw line break", '{"file_name": "a\nb"}', {"file_name": "a\nb"}, "sanitised"),
    ("last comma", '{"file_name": "a.py",}', {"file_name": "a.py"}, "sanitised"),
    ("no end", '{"file_name": "a.py"', {"file_name": "a.py"}, "sanitised"),
    ("python", "{'file_name': 'a.py', 'n': None}", {"file_name": "a.py", "n": None}, "sanitised"),
    ("no braces", '"file_name": "a.py"', {"file_name": "a.py"}, "by names"),
    ("no comma", '{"file_name": "a.py"\n "n": 3}', {"file_name": "a.py", "n": 3}, "by names"),
    (
        "bare quotes",
        '{"file_name": "a.py", "n": "print("hi")\\nx"}',
        {"file_name": "a.py", "n": 'print("hi")\nx'},
        "by names",
    ),
    ("yaml", "file_name: a.py", {"file_name": "a.py"}, "by names"),
]


@pytest.mark.parametrize(
    ("text", "expected", "how"), [a[1:] for a in ARGUMENTS], ids=[a[0] for a in ARGUMENTS]
)
def test_arguments_are_rescued(text: str, expected: dict[str, Any], how: str) -> None:
    assert read_arguments(text, ["file_name", "n"]) == (expected, how)


@pytest.mark.parametrize("text", ["", "train.py", "[1, 2]", '"just a text"', "{{{{", "None"])
def test_what_cannot_be_read(text: str) -> None:
    assert read_arguments(text, ["file_name"]) == (None, "")


@given(st.text())
def test_any_text_is_read_or_not_without_an_error(text: str) -> None:
    arguments, how = read_arguments(text, ["file_name", "content"])
    assert (arguments is None) == (how == "")
