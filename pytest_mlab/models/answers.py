"""Answers in the form of OpenAI's API, put right before litellm reads them.

litellm fails on a usage that holds anything but whole numbers, and on content in parts; the answer,
which is paid for, would be lost."""

from __future__ import annotations

import functools
import json
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_mlab.models.usage import AS_REPORTED, is_whole

_FIGURES = ("prompt_tokens", "completion_tokens", "total_tokens")
_USAGES = ("usage", "usageMetadata")
_COUNT = re.compile(r"_tokens$|Tokens$|TokenCount$|^(?:prompt_)?eval_count$")
"""The names of figures by Anthropic, Bedrock, Gemini and Ollama."""

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


def install_counts() -> None:
    """The same for the providers with APIs of their own, which litellm's HTTP client serves: it
    fails on their figures in the same way."""
    from litellm.llms.custom_httpx.http_handler import HTTPHandler

    original = HTTPHandler.post

    @functools.wraps(original)
    def post(*args: Any, **kwargs: Any) -> Any:
        return _repaired(original(*args, **kwargs))

    setattr(HTTPHandler, "post", post)  # noqa: B010  # mypy takes a method for a constant


def _repaired(response: Any) -> Any:
    import httpx

    # a response that is being streamed has no content yet
    if not response.is_stream_consumed:
        return response
    try:
        found = response.json()
    except ValueError:
        return response
    whole = with_whole_counts(found)
    if whole == found:
        return response
    headers = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name not in ("content-length", "content-encoding", "transfer-encoding")
    ]
    content = json.dumps(whole).encode()
    return httpx.Response(
        response.status_code, headers=headers, content=content, request=response.request
    )


def with_whole_counts(response: Any) -> Any:
    """A provider's JSON in which every figure of its usage is a whole number, 0 where it was
    anything else; an answer in OpenAI's form is left to :func:`readable`."""
    if not isinstance(response, dict) or "choices" in response:
        return response
    found = {name: _whole(name, value) for name, value in response.items()}
    for name in _USAGES:
        if name in found:
            found[name] = _counts(found[name]) if isinstance(found[name], dict) else {}
    return found


def _counts(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _counts(one, str(key)) for key, one in value.items()}
    if isinstance(value, list):
        return [_counts(one) for one in value]
    return _whole(name, value)


def _whole(name: str, value: Any) -> Any:
    return 0 if _COUNT.search(name) and type(value) is not int else value


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
