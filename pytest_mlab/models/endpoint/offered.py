"""The tools that a program offers, of all kinds of the three APIs.

Functions stay what they are. A ``custom`` tool, whose argument is a text, becomes a function with
the one argument ``input``, and ``local_shell`` one with its ``command``; calls of both go back in
their own form. Tools that a provider runs or describes by itself are left out, since the trial's
model does not know them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.models.endpoint.body import Json, Refused, inner, objects
from pytest_mlab.models.endpoint.content import MARK
from pytest_mlab.models.tools import wire_name

Kind = Literal["function", "custom", "local_shell"]

_FUNCTIONS = {"chat": ("function",), "responses": ("function",), "messages": ("custom",)}
_CUSTOM = {"chat": ("custom",), "responses": ("custom",), "messages": ()}
_SHELL = "local_shell"
_INPUT = "input"


@dataclass(frozen=True)
class Offered:
    """``kinds`` names the tools that are no functions in the program's eyes; ``left_out`` says
    which tools the model does not get."""

    tools: tuple[ActionSpec, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def only(self, names: Sequence[str]) -> Offered:
        """Those of ``names``."""
        return replace(self, tools=tuple(one for one in self.tools if one.name in names))


def read_tools(found: Sequence[Json], api: Literal["chat", "responses", "messages"]) -> Offered:
    """The tools of a request. Raises Refused for a function without a name."""
    tools: list[ActionSpec] = []
    kinds: dict[str, Kind] = {}
    left_out: list[str] = []
    for number, one in enumerate(found):
        # The inner object is chat completions' form.
        kind = str(one.get("type") or ("custom" if api == "messages" else "function"))
        found_in = inner(one, kind) if api == "chat" else one
        if kind in _FUNCTIONS[api] and found_in:
            spec = _function(found_in)
        elif kind in _CUSTOM[api] and found_in:
            spec = _custom(found_in)
            kinds[spec.name] = "custom"
        elif kind == _SHELL and api == "responses":
            spec = _shell()
            kinds[spec.name] = "local_shell"
        elif kind in _FUNCTIONS[api]:
            raise Refused(f"tools[{number}]: a tool of the type 'function' needs its function")
        else:
            left_out.append(f"tool {_called(one, kind)}")
            continue
        if isinstance(mark := one.get(MARK) or found_in.get(MARK), dict):
            spec = replace(spec, marks={MARK: mark})
        tools.append(spec)
    return Offered(tuple(tools), kinds, tuple(left_out))


def choose(choice: Any, offered: Offered) -> tuple[bool, Json, Offered]:
    """Whether a tool must be called, ``tool_choice`` where there is more to it, and the tools that
    the choice allows. Raises Refused."""
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        allowed = inner(choice, "allowed_tools") or choice
        names = [_name(one) for one in objects(allowed.get("tools") or [], "allowed_tools")]
        must_call, extra, _ = choose(allowed.get("mode"), offered)
        return must_call, extra, offered.only(names)
    if isinstance(choice, dict):
        name = _name(choice)
        if name not in {tool.name for tool in offered.tools}:
            raise Refused(
                f"'tool_choice' names {name!r:.60}, which is none of the request's tools that are"
                " available here; to fix: send 'auto'"
            )
        if len(offered.tools) == 1:
            return True, {}, offered
        wire = {"type": "function", "function": {"name": wire_name(name)}}
        return False, {"tool_choice": wire}, offered
    if choice in (None, "auto", "required"):
        return choice == "required" and bool(offered.tools), {}, offered
    if choice == "none":
        return False, {"tool_choice": "none"} if offered.tools else {}, offered
    raise Refused(
        f"'tool_choice' is {choice!r:.60}; available are auto, none, required and a function"
    )


def input_of(arguments: str) -> str:
    """The text in the arguments of a custom tool's call; the arguments themselves where the model
    wrote the text without an object around it."""
    try:
        found = json.loads(arguments or "{}")
    except ValueError:
        return arguments
    if not isinstance(found, dict):
        return found if isinstance(found, str) else arguments
    text = found.get(_INPUT, next(iter(found.values()), "") if len(found) <= 1 else arguments)
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


def arguments_of(text: Any) -> str:
    """The other way: the arguments of a call whose input was ``text``."""
    return json.dumps({_INPUT: "" if text is None else text}, ensure_ascii=False)


def _function(found: Json) -> ActionSpec:
    name = found.get("name")
    if not isinstance(name, str) or not name:
        raise Refused(f"a tool needs a name, not {name!r:.60}")
    schema = found.get("parameters", found.get("input_schema"))
    if schema is not None and not isinstance(schema, dict):
        raise Refused(f"the schema of the tool {name!r} must be an object")
    return ActionSpec(
        name, str(found.get("description") or ""), schema or {"type": "object", "properties": {}}
    )


def _custom(found: Json) -> ActionSpec:
    form = inner(found, "format")
    grammar = inner(form, "grammar") or form
    what = "the tool's whole input, as plain text"
    summary = str(found.get("description") or "")
    if grammar.get("definition"):
        syntax = grammar.get("syntax") or ""
        summary += f"\n\nThe input follows this {syntax} grammar:\n{grammar['definition']}"
    schema = {
        "type": "object",
        "properties": {_INPUT: {"type": "string", "description": what}},
        "required": [_INPUT],
    }
    return _function({"name": found.get("name"), "description": summary, "parameters": schema})


def _shell() -> ActionSpec:
    properties = {
        "command": {"type": "array", "items": {"type": "string"}, "description": "argv"},
        "timeout_ms": {"type": "integer"},
        "working_directory": {"type": "string"},
    }
    schema = {"type": "object", "properties": properties, "required": ["command"]}
    return ActionSpec(_SHELL, "Runs a command on this machine and gives its output.", schema)


def _called(one: Json, kind: str) -> str:
    name = _name(one)
    return f"{kind} {name}"[:80] if name and name != kind else kind[:80]


def _name(found: Json) -> str:
    kind = str(found.get("type"))
    named = inner(found, kind) or found
    return str(named.get("name") or named.get("server_label") or kind)
