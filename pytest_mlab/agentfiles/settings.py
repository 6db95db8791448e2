"""An agent's settings: those that its class declares, the values given, and the agent made with
them.

A class may hold ``Settings``, a pydantic model in which every field has a default; its constructor
then takes one."""

from __future__ import annotations

import contextlib
import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_mlab.core.agent_api import Agent
from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.suggest import unknown

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo


@dataclass(frozen=True)
class Setting:
    """One setting, for people; ``default`` is JSON."""

    name: str
    kind: str
    default: str
    description: str


def settings_of(kind: type[Agent]) -> type[BaseModel] | None:
    """The class of an agent's settings, None when it has none."""
    found: type[BaseModel] | None = getattr(kind, "Settings", None)
    return found


def declared(kind: type[Agent]) -> list[Setting]:
    """An agent's settings in the order of their declaration."""
    model = settings_of(kind)
    if model is None:
        return []
    return [_setting(name, field) for name, field in model.model_fields.items()]


def fault(kind: type) -> str:
    """The fault of the settings that a class declares; '' without one."""
    model = getattr(kind, "Settings", None)
    if model is None:
        return ""
    from pydantic import BaseModel

    if not (inspect.isclass(model) and issubclass(model, BaseModel)):
        return (
            f"its Settings is {model!r:.80}; it has to be a class derived from pydantic.BaseModel"
        )
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    if required:
        return f"its Settings has no default for {', '.join(required)}; give every field one"
    try:
        inspect.signature(kind).bind(None)
    except TypeError as error:
        return (
            f"it has Settings, but its constructor does not take them ({error}); write "
            "def __init__(self, settings: Settings | None = None)"
        )
    return ""


def read_settings(kind: type[Agent], given: Mapping[str, str], agent: str) -> dict[str, Any]:
    """The values of the texts ``given`` by setting, as JSON values; what equals its default is left
    out.

    A value is taken as it stands where that is allowed (``5``, ``true``), else as JSON (``["Read
    File"]``), else as a list with commas (``Read File,Write File``). Raises ConfigError naming
    ``agent``, the setting, the value found and all settings."""
    model = settings_of(kind)
    if not given:
        return {}
    if model is None:
        key, text = next(iter(given.items()))
        raise ConfigError(f"the agent {agent} has no settings, found {key}={text}; leave it out")
    values = {key: _value(kind, model, agent, key, text) for key, text in given.items()}
    problems, settings = _validated(model, values)
    if settings is None:
        found = ", ".join(f"{key}={text}" for key, text in given.items())
        raise ConfigError(f"the agent {agent}: {found}: {problems[0][1]}; {_known(kind, agent)}")
    return settings.model_dump(mode="json", exclude_defaults=True)


def make_agent(kind: type[Agent], settings: Mapping[str, Any]) -> Agent:
    """The agent with ``settings`` (JSON values), or with all defaults. Raises whatever its
    constructor does."""
    model = settings_of(kind)
    if model is None or not settings:
        return kind()
    return kind(model.model_validate(settings))  # type: ignore[call-arg]  # checked when the class was loaded


def _value(kind: type[Agent], model: type[BaseModel], agent: str, key: str, text: str) -> Any:
    if key not in model.model_fields:
        raise ConfigError(
            f"the agent {agent}: {key}={text}: {unknown('setting', key, model.model_fields)} "
            f"(agent.key=value sets it for one agent only); {_known(kind, agent)}"
        )
    first = ""
    for reading in _readings(text):
        # Only the problems of this value: rules across fields are checked with all values given.
        problems = [
            message for name, message in _validated(model, {key: reading})[0] if name == key
        ]
        if not problems:
            return reading
        first = first or problems[0]
    raise ConfigError(f"the agent {agent}: {key}={text}: {first}; {_known(kind, agent)}")


def _readings(text: str) -> Iterator[Any]:
    yield text
    with contextlib.suppress(ValueError):
        yield json.loads(text)
    yield [part.strip() for part in text.split(",")] if text.strip() else []


def _validated(
    model: type[BaseModel], values: Mapping[str, Any]
) -> tuple[list[tuple[str, str]], BaseModel | None]:
    """The problems of ``values`` (setting, message), and the settings without any."""
    from pydantic import ValidationError

    try:
        return [], model.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        return [(str(next(iter(e["loc"]), "")), e["msg"]) for e in found], None


def _setting(name: str, field: FieldInfo) -> Setting:
    annotation = field.annotation
    kind = str(annotation).replace("typing.", "")
    if inspect.isclass(annotation) and not hasattr(annotation, "__args__"):
        kind = annotation.__name__
    default = field.get_default(call_default_factory=True)
    return Setting(
        name, kind, json.dumps(default, default=_plain), " ".join((field.description or "").split())
    )


def _plain(value: object) -> object:
    return list(value) if isinstance(value, (set, frozenset)) else str(value)


def _known(kind: type[Agent], agent: str) -> str:
    lines = [
        f"  {s.name} = {s.default} ({s.kind})" + (f": {s.description}" if s.description else "")
        for s in declared(kind)
    ]
    return "\n".join([f"settings of {agent}, with their defaults:", *lines])
