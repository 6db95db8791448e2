"""litellm's exceptions as pytest-mlab's, without secrets in their messages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from pytest_mlab.errors import (
    AuthError,
    BadRequestError,
    ContextWindowError,
    ModelError,
    ProviderDownError,
    ProviderError,
    QuotaError,
    RateLimitError,
)
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.models.library import litellm

LONGEST_MESSAGE = 600

_OUT_OF_MONEY = (
    "insufficient_quota",
    "insufficient balance",
    "billing_hard_limit",
    "credit balance is too low",
)


def hide_keys(text: str) -> str:
    """``text`` without the secrets of this process's environment and without keys."""
    return Redactor(os.environ)(text)


def translate(error: Exception, model: str, redact: Callable[[str], str]) -> ModelError:
    """The typed error for what litellm raised. ``model`` is named in the message; ``redact`` cleans
    the provider's words, after which they are cut to a readable length."""
    words = _words(error, redact)
    status = getattr(error, "status_code", None)
    # Ahead of the general 4xx below: litellm's class for it has the status 400. 413 is what servers
    # and proxies answer when the body is too large to look at.
    if isinstance(error, litellm().ContextWindowExceededError) or status == 413:
        return ContextWindowError(
            f"{model}: the prompt does not fit the model's context window: {words}"
        )
    # A client package that finds no key at all raises before any request, so without a 401.
    if status in (401, 403) or "missing credentials" in words.lower():
        refused = AuthError(
            f"{model}: the provider refused the key, check the provider's key variable: {words}"
        )
        refused.for_everyone = status != 403  # which may be about one request's content
        return refused
    # Ahead of 429: OpenAI reports an account without money with the status of a rate limit, and
    # waiting does not help there.
    if status == 402 or _is_out_of_money(error):
        return QuotaError(f"{model}: the account has no money or quota left: {words}")
    if status == 429:
        return RateLimitError(f"{model}: the provider limits the rate: {words}")
    if status == 404:
        return ProviderError(
            f"{model}: the provider does not serve this model to this account ({status}): {words}"
        )
    # 408, 409 and 425 (timeout, conflict, too early) are about the moment and not about the
    # request, so they may be repeated.
    if isinstance(status, int) and 400 <= status < 500 and status not in (408, 409, 425):
        return BadRequestError(f"{model}: the provider refused the request ({status}): {words}")
    # Whatever is left counts as passing: 5xx, lost connections, timeouts, and answers that litellm
    # cannot read.
    return ProviderDownError(f"{model}: the provider does not answer properly: {words}")


def is_worth_repeating(error: ModelError) -> bool:
    """False when waiting cannot fix it: a refused key, a malformed request, a quota that is used
    up."""
    return isinstance(error, (RateLimitError, ProviderDownError))


def _is_out_of_money(error: Exception) -> bool:
    """Judged by the providers' own words. "Quota" alone may be a limit a minute."""
    # The provider's code, such as insufficient_quota, may stand only in the body.
    text = f"{getattr(error, 'body', '')} {error}".lower()
    return any(words in text for words in _OUT_OF_MONEY)


def headers_of(error: Exception) -> dict[str, str]:
    """The response headers that came with an error, names in lower case."""
    response: Any = getattr(error, "response", None)
    found = getattr(response, "headers", None) or getattr(error, "headers", None) or {}
    # retry_after() looks names up in a plain dict, while HTTP does not distinguish case.
    return {str(name).lower(): str(value) for name, value in dict(found).items()}


def _words(error: Exception, redact: Callable[[str], str]) -> str:
    # Redacted before anything is cut: half a key no longer has the shape of one.
    text = redact(" ".join(str(error).split()))
    # litellm puts class names in front of the provider's words, sometimes several.
    text = re.sub(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)\s*[:-]\s+)+(?=\S)", "", text)
    text = text.partition(", Received response - <")[0]  # a dump of litellm's own objects
    # The words of a failed connection say only that it failed. The reason is further down the
    # chain.
    cause = _system_error(error)
    if cause and cause not in text:
        text = f"{text} ({cause})"
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 4]} ..."


def _system_error(error: BaseException) -> str:
    """The operating system's words below ``error``, such as 'Connection refused', or ''."""
    seen: set[int] = set()
    cause: BaseException | None = error
    # Chains of exceptions may be circular.
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return ""
