"""A run's settings of a model, put into a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_mlab.core.model_api import ModelRequest
from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.models.names import litellm_name


def default_settings(name: str) -> ModelSettings:
    """The settings of a model that a run knows by its name only."""
    return ModelSettings(name, litellm_name(name))


def applied(
    request: ModelRequest, settings: ModelSettings, environ: Mapping[str, str]
) -> ModelRequest:
    """``request`` as it goes out, to litellm's name of the model and with the key from ``environ``.

    The settings' parameters win over the request's: a user's choice over an agent's default."""
    params: dict[str, Any] = {**request.extra, **settings.params}
    if settings.api_key_env:
        # Read at the call and not when the run is planned: the settings are frozen in plan.json,
        # which must hold no key.
        params["api_key"] = environ.get(settings.api_key_env, "")
    max_tokens = params.pop("max_tokens", request.max_tokens)
    return replace(
        request,
        model=settings.model,
        temperature=params.pop("temperature", request.temperature),
        # Both name the same limit. The user's replaces the one that the agent asks for.
        max_tokens=None if "max_completion_tokens" in params else max_tokens,
        timeout=float(params.pop("timeout", request.timeout)),
        extra=params,
    )
