"""Calls of actions as models write them, read as actions where their meaning is unique.

One home for names (``functions.list_files`` is ``List Files``) and arguments (``"1.0"`` is 1 where
a whole number is wanted), for native calls, for tools by text and for actions of agents."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pytest_mlab.core.actions import Action, ActionSpec

_PREFIX = re.compile(
    r"^(?:functions?|tools?|actions?|default_api|multi_tool_use|mlab)\s*(?:\.|:+|/|__)\s*",
    re.IGNORECASE,
)
_RECIPIENT = re.compile(r"\bto\s*=\s*(\S+)")
_WHOLE = re.compile(r"[+-]?\d{1,18}(?:\.0*)?", re.ASCII)
_JSON = json.JSONDecoder(strict=False)  # raw line breaks in strings are harmless
_MOST_LAYERS = 3
_WRAPPERS = ("arguments", "args", "parameters", "input")


# --- names ---


def action_name(written: str, names: Iterable[str]) -> str | None:
    """The one of ``names`` that a model means by ``written``, None when it is none or several.

    An equal name comes first. Then case, blanks, punctuation, quotation marks, a prefix such as
    ``functions.`` and special tokens such as ``<|channel|>commentary`` do not count; nor does what
    stands in brackets at last."""
    known = list(names)
    if written in known:
        return written
    # Whole names before those without what stands in brackets: Edit Script (AI), Edit Script.
    for shown in (str, _unbracketed):
        folded: dict[str, list[str]] = {}
        for name in known:
            folded.setdefault(_folded(shown(name)), []).append(name)
        for form in _forms(written):
            found = folded.get(_folded(form), [])
            if len(found) == 1:
                return found[0]
    return None


def _forms(written: str) -> Iterable[str]:
    """What ``written`` may say, nearest first."""
    text = str(written)[:400]
    recipient = _RECIPIENT.search(text)
    if recipient:
        text = recipient[1]
    text = re.sub(r"^(?:\s*<\|[^|>]*\|>)+", "", text).partition("<|")[0].strip(" \t\r\n\"'`*[]")
    text = re.sub(r"(?:\(\)|:\d+)$", "", text)  # a call of Python, the number of a call
    yield text
    bare = _PREFIX.sub("", text)
    if bare != text:
        yield bare


def _unbracketed(name: str) -> str:
    return re.sub(r"\s*\([^()]*\)", "", name)


def _folded(name: str) -> str:
    letters = "".join(c for c in name.casefold() if c.isalnum())
    return letters or name


# --- arguments ---


def argument_object(written: Any) -> dict[str, Any] | str:
    """The arguments in ``written`` (an object, or its JSON, also encoded twice), or a text with
    what is wrong. Nothing at all is an empty object."""
    value = written
    for _ in range(_MOST_LAYERS):
        if not isinstance(value, str):
            break
        text = value.strip()
        if not text:
            return {}
        try:
            value = _decoded(text)
        except (ValueError, RecursionError) as error:
            return str(error)
    if value is None:
        return {}
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        value = value[0]
    if not isinstance(value, Mapping):
        return f"it is a {type(value).__name__}"
    return {str(name): inner for name, inner in value.items()}


def _decoded(text: str) -> Any:
    value, end = _JSON.raw_decode(text)
    rest = text[end:].strip()
    if rest and not rest.startswith("<|"):
        raise ValueError(f"Extra data after the object: {rest[:40]!r}")
    return value


def fitting(spec: ActionSpec, args: Any) -> dict[str, Any] | str:
    """``args`` as ``spec`` wants them, or a text with the fault and the usage.

    Names of arguments count without case and punctuation. Digits become numbers, numbers become
    text, ``"true"`` becomes true, and null is left out where the argument is optional."""
    if not isinstance(args, Mapping):
        return _wrong(spec, f"arguments are an object, not a {type(args).__name__}")
    properties = spec.schema.get("properties", {})
    required = spec.schema.get("required", ())
    named = _named(_unwrapped(args, properties), properties)
    found = {
        name: value
        for name, value in named.items()
        if value is not None or name in required or _takes_null(properties.get(name))
    }
    missing = [name for name in required if name not in found]
    extra = [str(name)[:80] for name in found if name not in properties]
    if spec.schema.get("additionalProperties", True) is not False:
        extra = []
    if missing or extra:
        faults = [f"missing {', '.join(missing)}"] if missing else []
        faults += [f"unknown {', '.join(extra)}"] if extra else []
        return _wrong(spec, "; ".join(faults))
    for name, value in found.items():
        if name not in properties:
            continue
        try:
            found[name] = _fitted(value, properties[name])
        except _Unfit as fault:
            return _wrong(spec, f"{name} is {fault}")
    return found


def _unwrapped(args: Mapping[Any, Any], properties: Mapping[str, Any]) -> Mapping[Any, Any]:
    """The arguments inside a whole call, which some models write in their place."""
    inner = [name for name in _WRAPPERS if name in args and name not in properties]
    others = [name for name in args if name not in (*inner, "name", "type", "id")]
    if len(inner) != 1 or others:
        return args
    found = argument_object(args[inner[0]])
    return args if isinstance(found, str) else found


def _named(args: Mapping[Any, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for written, value in args.items():
        name = str(written)
        if name not in properties:
            meant = action_name(name, properties)
            name = meant if meant is not None and meant not in args else name
        found.setdefault(name, value)
    return found


class _Unfit(Exception):
    """A value that is not what the schema wants; the text says what it is and what is wanted."""


def _kinds(schema: Any) -> tuple[str, ...]:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return tuple(kind) if isinstance(kind, list) else (kind,) if isinstance(kind, str) else ()


def _takes_null(schema: Any) -> bool:
    return "null" in _kinds(schema) or not _kinds(schema)


def _fitted(value: Any, schema: Any) -> Any:
    """``value`` as one of the schema's types; as it is when there are none. Raises _Unfit."""
    if value is None and _takes_null(schema):
        return None
    attempts = [_attempt(kind, value) for kind in _kinds(schema) if kind in _READ]
    for found, fault in attempts:
        if fault is None:
            return found
    if attempts:
        raise attempts[0][1] or _Unfit()
    return value


def _attempt(kind: str, value: Any) -> tuple[Any, _Unfit | None]:
    try:
        return _READ[kind](value), None
    except _Unfit as fault:
        return None, fault


def _text(value: Any) -> str:
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if not isinstance(value, str):
        raise _Unfit(f"a {type(value).__name__}, expected text")
    return value.encode("utf-8", "replace").decode()  # lone surrogates fit in no file


def _integer(value: Any) -> int:
    # In Python, True is an int.
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value.strip().partition(".")[0])
    raise _Unfit(f"{value!r:.80}, expected a whole number")


def _number(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    try:
        found = _JSON.decode(value.strip()) if isinstance(value, str) else None
    except ValueError:
        found = None
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return found
    raise _Unfit(f"{value!r:.80}, expected a number")


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise _Unfit(f"{value!r:.80}, expected true or false")


def _container(kind: type, wanted: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        found = value
        if isinstance(value, str):
            try:
                found = _JSON.decode(value.strip())
            except (ValueError, RecursionError):
                found = None
        if not isinstance(found, kind):
            raise _Unfit(f"{value!r:.80}, expected {wanted}")
        return found

    return read


_READ: Mapping[str, Callable[[Any], Any]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _container(list, "a list"),
    "object": _container(dict, "an object"),
}


# --- calls ---


def read_call(actions: Mapping[str, ActionSpec], name: str, arguments: Any = None) -> Action | str:
    """The action that a model calls by ``name`` with ``arguments`` (an object or its JSON), or a
    text for the model with what is wrong: the call cannot be done as it is written."""
    known = action_name(name, actions)
    if known is None:
        return unknown(name, list(actions))
    given = argument_object(arguments)
    if isinstance(given, str):
        return _wrong(actions[known], f"they are no JSON object ({given})")
    found = fitting(actions[known], given)
    return found if isinstance(found, str) else Action(known, found)


def unknown(name: str, names: list[str]) -> str:
    """The answer to an action that does not exist: all names, the nearest first."""
    # The name is whatever a model wrote, so it may have any type and any length.
    folded = {n.casefold(): n for n in names}
    asked = str(name).casefold()[:400]
    begun = [n for n in names if asked and n.casefold().startswith(asked)]
    near = begun + [
        folded[n]
        for n in difflib.get_close_matches(asked, list(folded), n=3)
        if folded[n] not in begun
    ]
    ordered = near + [n for n in names if n not in near]
    return f"There is no action {str(name)[:80]!r}. The actions are: {', '.join(ordered)}."


def usage(spec: ActionSpec) -> str:
    """An action's usage on one line."""
    shown = {
        name: f"<{about.get('description') or about.get('type', 'a value')}>"
        for name, about in spec.schema.get("properties", {}).items()
    }
    return f"{spec.name} {json.dumps(shown, ensure_ascii=False)}"


def _wrong(spec: ActionSpec, fault: str) -> str:
    return f"{spec.name}: wrong arguments: {fault}. Usage: {usage(spec)}"
