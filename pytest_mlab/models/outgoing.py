"""A request as it goes out: the parameters of litellm's call, the deviations from what was asked
for, and what a user can set when the provider refuses a parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_mlab.core.model_api import ModelFacts, ModelRequest
from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.errors import BadRequestError, ContextWindowError, ModelError
from pytest_mlab.models import refused, room
from pytest_mlab.models.configured import applied
from pytest_mlab.models.parameters import drops_temperature, not_taken
from pytest_mlab.models.provider_errors import PROMPT_TOO_LONG
from pytest_mlab.models.tools import as_openai_tools


@dataclass(frozen=True)
class Call:
    """``params`` are litellm's, of which ``own`` come from the user's settings; ``timeout`` is in
    seconds; ``remarks`` are the deviations from the request."""

    model: str
    params: Mapping[str, Any]
    own: Mapping[str, Any]
    timeout: float
    remarks: tuple[str, ...] = ()


def outgoing(
    request: ModelRequest,
    settings: ModelSettings,
    facts: Callable[[], ModelFacts],
    refusals: Iterable[str],
    environ: Mapping[str, str],
) -> Call:
    """The call for ``request``: no longer an answer than the model's ``facts`` allow, and without
    the parameters that its provider refuses."""
    sent = applied(request, settings, environ)
    optional = {
        "temperature": sent.temperature,
        "max_tokens": sent.max_tokens,
        "stop": list(sent.stop) or None,
        "tools": as_openai_tools(sent.tools) or None,
        "tool_choice": "required" if sent.tools and sent.must_call else None,
        "response_format": _response_format(sent.schema),
        **sent.extra,
    }
    params = {name: value for name, value in optional.items() if value is not None}
    remarks = []
    for name in refused.ANSWER:
        if type(asked := params.get(name)) is int:
            own = name in settings.params
            params[name], remark = room.limited(asked, request, facts(), own=own)
            remarks.append(remark)
    unknown = not_taken(sent.model) - set(params.get("allowed_openai_params", ()))
    temperature = params.get("temperature")
    if type(temperature) in (int, float) and drops_temperature(sent.model, temperature):
        unknown |= {"temperature"}
    params, remark = refused.without(params, unknown.union(refusals))
    said = tuple(filter(None, (*remarks, remark)))
    return Call(sent.model, params, settings.params, sent.timeout, said)


def advised(error: ModelError, request: ModelRequest, call: Call, facts: ModelFacts) -> ModelError:
    """``error`` with what the user can set, where it is about a parameter of the call."""
    if isinstance(error, (BadRequestError, ContextWindowError)):
        advice = room.advice(str(error), request, call.params, facts)
        if advice:
            return BadRequestError(f"{_about_answer(error)}{advice}")
    if name := refused.refused_parameter(error, call.params):
        advice = refused.advice(request.model, name, call.params[name], call.own)
        return type(error)(f"{error}{advice}")
    return error


def _about_answer(error: ModelError) -> str:
    """The error's text, which may say that the prompt does not fit: the answer that was asked for
    does not."""
    return str(error).replace(PROMPT_TOO_LONG, "the answer that was asked for does not fit")


def _response_format(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if schema is None:
        return None
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema)}}
