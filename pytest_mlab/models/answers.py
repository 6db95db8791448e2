"""Answers in the form of OpenAI's API, put right before litellm reads them.

litellm fails on a usage that holds anything but whole numbers, and on content in parts; the answer,
which is paid for, would be lost."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_mlab.models.usage import AS_REPORTED, is_whole

_FIGURES = ("prompt_tokens", "completion_tokens", "total_tokens")
_CONVERTER = "convert_to_model_response_object"


def install() -> None:
    """Have litellm read all answers through :func:`readable`. It has one function that does so for
    every provider with an API like OpenAI's; modules that already imported it get the new one."""
    from litellm.litellm_core_utils.llm_response_utils import convert_dict_to_response as home

    original = getattr(home, _CONVERTER)

    @functools.wraps(original)
    def convert(response_object: Any = None, *args: Any, **kwargs: Any) -> Any:
        return original(readable(response_object), *args, **kwargs)

    for module in list(sys.modules.values()):
        # vars() and not getattr(), which would trigger lazy imports.
        if getattr(module, "__dict__", {}).get(_CONVERTER) is original:
            setattr(module, _CONVERTER, convert)


def allow_any_types() -> None:
    """Ignore pydantic's warnings about fields of unexpected types: they are put right afterwards.
    Called for every request, because pytest resets the filters for every test."""
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")


def readable(response: Any) -> Any:
    """``response`` (a provider's JSON) with a usage and contents that litellm can read; any other
    answer, such as one without choices, as it is. The usage as it was is kept in its field
    :data:`~pytest_mlab.models.usage.AS_REPORTED`."""
    if not isinstance(response, dict) or not isinstance(response.get("choices"), list):
        return response
    found = {**response, "choices": [_choice(choice) for choice in response["choices"]]}
    if not _is_sound(found.get("usage")):
        found["usage"] = {**dict.fromkeys(_FIGURES, 0), AS_REPORTED: _plain(found["usage"])}
    return found


def _is_sound(usage: Any) -> bool:
    if usage is None:
        return True
    if not isinstance(usage, dict):
        return False
    for name, value in usage.items():
        if str(name).endswith("_details"):
            if not isinstance(value, (dict, type(None))):
                return False
            if not all(is_whole(one) for one in (value or {}).values() if not _nested(one)):
                return False
        elif str(name).endswith("_tokens") and not is_whole(value):
            return False
    return True


def _nested(value: Any) -> bool:
    return isinstance(value, dict)


def _plain(usage: Any) -> Mapping[str, Any]:
    return usage if isinstance(usage, dict) else {"usage_tokens": usage}


def _choice(choice: Any) -> Any:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict) or isinstance(message.get("content"), (str, type(None))):
        return choice
    content = message["content"]
    parts = content if isinstance(content, list) else [content]
    joined = {**message, "content": "".join(_texts(parts))}
    thinking = "".join(_thinking(parts))
    if thinking and not message.get("reasoning_content"):
        joined["reasoning_content"] = thinking
    return {**choice, "message": joined}


def _texts(parts: list[Any]) -> Iterator[str]:
    """The texts of the parts of a content, without its thinking."""
    for part in parts:
        if isinstance(part, dict):
            text = part.get("text", part.get("refusal"))
            if isinstance(text, str) and part.get("type") not in ("thinking", "reasoning"):
                yield text
        elif part is not None:
            yield str(part)


def _thinking(parts: list[Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, dict) and part.get("type") in ("thinking", "reasoning"):
            text = part.get("thinking", part.get("text"))
            if isinstance(text, list):
                yield from _texts(text)
            elif isinstance(text, str):
                yield text
