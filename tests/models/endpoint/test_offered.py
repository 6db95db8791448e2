"""Tools of all kinds, by example."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_mlab.models.endpoint.body import Refused
from pytest_mlab.models.endpoint.offered import arguments_of, choose, input_of, read_tools

FUNCTION = {"type": "function", "name": "run", "parameters": {"type": "object"}}
HOSTED = [
    {"type": "web_search"},
    {"type": "web_search_preview_2025_03_11"},
    {"type": "code_interpreter", "container": {"type": "auto"}},
    {"type": "file_search", "vector_store_ids": ["v"]},
    {"type": "image_generation"},
    {"type": "computer_use_preview", "display_width": 1},
    {"type": "mcp", "server_label": "deepwiki", "server_url": "https://x"},
    {"type": "namespace", "name": "multi_agent_v1", "tools": []},
    {"type": "a_kind_of_next_year", "name": "n"},
]
OF_ANTHROPIC = [
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "bash_20250124", "name": "bash"},
    {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
]


@pytest.mark.parametrize("one", HOSTED, ids=lambda one: one["type"])
def test_hosted_tools_are_left_out_and_said(one: dict[str, Any]) -> None:
    found = read_tools([FUNCTION, one], "responses")
    assert [tool.name for tool in found.tools] == ["run"]
    assert found.left_out[0].startswith(f"tool {one['type']}")
    assert str(one.get("name") or one.get("server_label") or "") in found.left_out[0]


@pytest.mark.parametrize("one", OF_ANTHROPIC, ids=lambda one: one["type"])
def test_anthropics_own_tools(one: dict[str, Any]) -> None:
    found = read_tools([{"name": "run", "input_schema": {}}, one], "messages")
    assert [tool.name for tool in found.tools] == ["run"]
    assert found.left_out == (f"tool {one['type']} {one['name']}",)


def test_custom_tools_are_functions_with_one_text() -> None:
    form = {"type": "grammar", "syntax": "lark", "definition": "start: PATCH"}
    fields = {"name": "apply_patch", "description": "Patches.", "format": form}
    for api, one in (
        ("responses", {"type": "custom", **fields}),
        ("chat", {"type": "custom", "custom": fields}),
    ):
        found = read_tools([one], api)  # type: ignore[arg-type]
        assert found.kinds == {"apply_patch": "custom"}
        assert found.tools[0].schema["required"] == ["input"]
        assert found.tools[0].summary.startswith("Patches.")
        assert "lark grammar:\nstart: PATCH" in found.tools[0].summary


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (arguments_of("*** Begin\n"), "*** Begin\n"),
        ('{"patch": "x"}', "x"),
        ('"x"', "x"),
        ("*** Begin Patch", "*** Begin Patch"),
        ("", ""),
        ('{"input": {"a": 1}}', '{"a": 1}'),
        ('{"a": 1, "b": 2}', '{"a": 1, "b": 2}'),
    ],
)
def test_the_input_of_a_custom_call(arguments: str, text: str) -> None:
    assert input_of(arguments) == text


def test_choices() -> None:
    two = read_tools([FUNCTION, {**FUNCTION, "name": "look"}], "responses")
    named = {"type": "function", "name": "look"}
    must_call, extra, left = choose({"type": "allowed_tools", "tools": [named]}, two)
    assert (must_call, extra, [tool.name for tool in left.tools]) == (False, {}, ["look"])
    assert choose(named, two)[1]["tool_choice"]["function"] == {"name": "look"}
    assert choose("required", read_tools([{"type": "web_search"}], "responses"))[0] is False
    with pytest.raises(Refused, match=r"names 'web_search', which .* to fix: send 'auto'"):
        choose({"type": "web_search"}, two)


def test_a_function_needs_a_name() -> None:
    with pytest.raises(Refused, match="a tool needs a name, not None"):
        read_tools([{"type": "function"}], "responses")
