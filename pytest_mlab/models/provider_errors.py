"""litellm's exceptions as pytest-mlab's, without secrets in their messages."""

from __future__ import annotations

import os
from collections.abc import Callable

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
from pytest_mlab.models.error_words import words as words_of
from pytest_mlab.models.library import litellm

PROMPT_TOO_LONG = "the prompt does not fit the model's context window"

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
    words = words_of(error, redact)
    status = getattr(error, "status_code", None)
    # Ahead of the general 4xx below: litellm's class for it has the status 400. 413 is what servers
    # and proxies answer when the body is too large to look at.
    if isinstance(error, litellm().ContextWindowExceededError) or status == 413:
        return ContextWindowError(f"{model}: {PROMPT_TOO_LONG}: {words}")
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
    # An answer that litellm cannot read is not a refusal, though it gives some of them this status.
    unreadable = status == 422 and "converting to valid response" in str(error)
    # 408, 409 and 425 (timeout, conflict, too early) are about the moment and not about the
    # request, so they may be repeated.
    passing = unreadable or status in (408, 409, 425)
    if isinstance(status, int) and 400 <= status < 500 and not passing:
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
