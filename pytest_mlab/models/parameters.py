"""Which parameters of a call litellm takes for a model, asked before anything is spent."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.suggest import nearest_first
from pytest_mlab.models.library import litellm

EVERYWHERE = frozenset(
    {
        "base_url",
        "api_base",
        "api_version",
        "timeout",
        "organization",
        "extra_headers",
        "extra_body",
    }
    | {"additional_drop_params", "allowed_openai_params"}
)
"""Parameters of litellm's own, which it takes whoever serves the model."""

OURS = {
    "messages": "the agent writes them",
    "tools": 'the agent decides; tools = "text" or "native" says how they are offered',
    "tool_choice": "the agent decides",
    "functions": "the agent decides",
    "function_call": "the agent decides",
    "response_format": "the agent decides",
    "stop": "the agent decides",
    "stream": "answers are read whole",
    "stream_options": "answers are read whole",
    "n": "one answer is asked for",
    "max_retries": "MLAB_MODEL_ATTEMPTS sets how often a call is tried",
    "num_retries": "MLAB_MODEL_ATTEMPTS sets how often a call is tried",
}
"""Parameters that cannot be set, and why."""

NUMBERS = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "max_tokens",
        "max_completion_tokens",
        "frequency_penalty",
        "presence_penalty",
    }
    | {"seed", "timeout"}
)

_OPENAI = NUMBERS - EVERYWHERE - {"top_k"} | {
    "stop",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_effort",
    "verbosity",
    "user",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "service_tier",
}
"""Parameters of OpenAI's API about an answer. Tools are not among them: a model without them gets
them by text."""


@cache
def not_taken(model: str) -> frozenset[str]:
    """The parameters of OpenAI's API that litellm would leave out of calls of ``model`` (litellm's
    name) without a word, by its lists."""
    library = litellm()
    try:
        name, provider = library.get_llm_provider(model)[:2]
    except library.BadRequestError:
        return frozenset()  # an unknown provider, of which the call itself complains
    known = library.get_supported_openai_params(model=name, custom_llm_provider=provider)
    if known is None:
        return frozenset()
    return _OPENAI - set(known)


@cache
def drops_temperature(model: str, temperature: float) -> bool:
    """Whether litellm would leave out this ``temperature`` for ``model`` without a word: OpenAI's
    reasoning models take 1 only."""
    library = litellm()  # first: it configures what the next line imports
    from litellm.utils import get_optional_params

    try:
        name, provider = library.get_llm_provider(model)[:2]
    except library.BadRequestError:
        return False
    # Elsewhere the parameter may go out by another name.
    if provider not in ("openai", "azure"):
        return False
    sent = get_optional_params(
        model=name, custom_llm_provider=provider, temperature=temperature, drop_params=True
    )
    return "temperature" not in sent


def check_parameters(model: str, params: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError, beginning with ``where``, when ``model`` (litellm's name) does not take
    one of ``params``: litellm would drop it silently, or the provider would refuse every call."""
    if not params:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydantic's, about classes that litellm imports on its way
        _check(model, params, where)


def _check(model: str, params: Mapping[str, Any], where: str) -> None:
    library = litellm()
    name, provider = library.get_llm_provider(model)[:2]
    # This is litellm's own way to let a parameter through that its lists lack.
    known = _known(name, provider) | set(params.get("allowed_openai_params", ()))
    for key, value in params.items():
        if key in OURS:
            raise ConfigError(f"{where}: {key} cannot be set: {OURS[key]}")
        if key not in known:
            nearest = ", ".join(nearest_first(key, known)[:5])
            raise ConfigError(
                f"{where}: {key}={json.dumps(value)}: {provider} takes no such parameter for"
                f" {model}; nearest: {nearest}; what the server alone knows goes into extra_body"
            )
        # bool is a subclass of int in Python, so True would pass as a number. A text comes from
        # --mlab-model-arg when its value is not JSON.
        if key in NUMBERS and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise ConfigError(f"{where}: {key}={json.dumps(value)}: give a number")
    _check_values(model, name, provider, params, where)


def _known(name: str, provider: str) -> set[str]:
    # The supported parameters are OpenAI's. What a provider takes beyond them (top_k) litellm keeps
    # only as annotations of the provider's configuration class and its bases.
    from litellm.types.utils import LlmProviders
    from litellm.utils import ProviderConfigManager

    known = set(
        litellm().get_supported_openai_params(model=name, custom_llm_provider=provider) or ()
    )
    if provider in {one.value for one in LlmProviders}:
        config = ProviderConfigManager.get_provider_chat_config(name, LlmProviders(provider))
        for kind in type(config).__mro__ if config is not None else ():
            known |= {
                field for field in getattr(kind, "__annotations__", {}) if not field.startswith("_")
            }
    return (known | EVERYWHERE) - OURS.keys()


def _check_values(
    model: str, name: str, provider: str, params: Mapping[str, Any], where: str
) -> None:
    """What litellm would drop for this model, such as a temperature for most reasoning models."""
    from litellm.utils import get_optional_params

    library = litellm()
    translated = {
        key: value
        for key, value in params.items()
        if key not in EVERYWHERE - {"allowed_openai_params"}
    }
    # litellm reports a parameter that it would drop only with this switch off. The switch is global
    # and calls rely on it being on, so it is restored whatever happens.
    library.drop_params = False
    try:
        get_optional_params(model=name, custom_llm_provider=provider, **translated)
    except library.UnsupportedParamsError as error:
        words = " ".join(str(error).split()).removeprefix("litellm.UnsupportedParamsError: ")
        # The rest advises a switch of litellm's that users do not have here.
        words = words.partition(" To drop")[0].rstrip(" .")
        raise ConfigError(f"{where}: {model}: {words}") from None
    finally:
        library.drop_params = True
