"""What a provider itself said, out of what litellm raised: its words, and the headers of its
response."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from pytest_mlab.errors import MlabError

LONGEST_MESSAGE = 600

_PREFIX = re.compile(
    # "RateLimitError: ", "litellm.BadRequestError: ", "GeminiException BadRequestError - "
    r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?:\s\w+(?:Error|Exception))?\s*[:-]\s+)+"
)
_ADVICE = re.compile(
    r"\.? ?Handle with `litellm[^`]*`\.?$"
    r"|\.? File an issue if litellm error - \S+$"
    r"|,? To drop these, set.*$"
)
_INNER_NAME = re.compile(r"\blitellm(?:\.\w+)*\.(\w+)")
_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(?P<fault>.*)", re.MULTILINE
)
_FIELDS = ("error", "message", "detail", "msg", "errors", "error_message", "Message")
_JSON = json.JSONDecoder(strict=False)


def words(error: BaseException, redact: Callable[[str], str]) -> str:
    """The provider's words in one line of at most :data:`LONGEST_MESSAGE` characters, without what
    litellm puts around them."""
    # Redacted before anything is cut: half a key no longer has the shape of one.
    text = _without_traceback(redact(str(error)))
    text = _PREFIX.sub("", f"{' '.join(text.split())} ").strip()
    text = text.partition(", Received response - <")[0]  # a dump of litellm's own objects
    text = _INNER_NAME.sub(r"\1", _ADVICE.sub("", text))
    text = _message(text) or _attribute(error, redact) or "it says nothing more"
    # The words of a failed connection say only that it failed. The reason is further down the
    # chain.
    cause = _system_error(error)
    if cause and cause not in text:
        text = f"{text} ({cause})"
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 4]} ..."


def headers_of(error: BaseException) -> dict[str, str]:
    """The response headers that came with an error, names in lower case."""
    found: dict[str, str] = {}
    # Where litellm keeps them depends on the provider: OpenAI's package puts them into the
    # exception, litellm's own clients leave them at an exception below it.
    for one in chain(error):
        for holder in (getattr(one, "response", None), one):
            for name in ("headers", "litellm_response_headers"):
                headers = getattr(holder, name, None)
                # retry_after() looks names up in a plain dict; HTTP does not distinguish case.
                for key, value in dict(headers or {}).items():
                    found.setdefault(str(key).lower(), str(value))
    return found


def chain(error: BaseException) -> Iterator[BaseException]:
    """``error`` and what it was raised from."""
    seen: set[int] = set()
    cause: BaseException | None = error
    # Chains of exceptions may be circular. An error of our own belongs to another call, in whose
    # handler the agent made this one.
    while cause is not None and id(cause) not in seen and not isinstance(cause, MlabError):
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _system_error(error: BaseException) -> str:
    """The operating system's words below ``error``, such as 'Connection refused', or ''."""
    for cause in chain(error):
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return ""


def _attribute(error: BaseException, redact: Callable[[str], str]) -> str:
    """The first text that an exception below keeps beside its arguments; '' without one."""
    messages = (getattr(one, "message", "") for one in chain(error))
    texts = (_PREFIX.sub("", f"{redact(str(message))} ").strip() for message in messages)
    return next(filter(None, texts), "")


def _without_traceback(text: str) -> str:
    """``text`` as it is, or, with a traceback of litellm's in it, what that ended with."""
    found = list(_TRACEBACK.finditer(text))
    if not found:
        # One whose lines were joined already has no end that could be told.
        head, mark, _ = text.partition("Traceback (most recent call last)")
        return f"its answer cannot be read: {head}" if mark else text
    return f"its answer cannot be read ({found[-1]['fault'].strip()})"


def _message(text: str) -> str:
    """The message in the JSON that ``text`` holds, else ``text``."""
    found = _decoded(text)
    return " ".join((_inner(found) or text).split())


def _decoded(text: str) -> Any:
    start = text.find("{")
    if start < 0:
        return None
    try:
        return _JSON.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text[start : text.rfind("}") + 1])  # a dict as Python prints it
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _inner(found: Any) -> str:
    """The text of an error object, in any of the forms that providers give it; '' for others."""
    if isinstance(found, str):
        return found
    if isinstance(found, list):
        return "; ".join(filter(None, map(_inner, found)))
    if not isinstance(found, dict):
        return ""
    text = next(filter(None, (_inner(found.get(name)) for name in _FIELDS)), "")
    if isinstance(found.get("loc"), list):  # pydantic's list of faults: where, and what
        text = f"{'.'.join(map(str, found['loc']))}: {text}"
    if isinstance(found.get("metadata"), dict):  # OpenRouter: what the provider behind it said
        raw = found["metadata"].get("raw")
        text = f"{text}: {_message(raw)}" if isinstance(raw, str) and raw else text
    return text
