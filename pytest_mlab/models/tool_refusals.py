"""Which failures mean that a provider takes no tools for a model."""

from __future__ import annotations

import re

from pytest_mlab.errors import (
    AuthError,
    BadRequestError,
    ProviderDownError,
    ProviderError,
    RateLimitError,
)

_TOOLS = (
    r"(?:\btools?\b|\btool[ _-](?:use|choice|call(?:s|ing)?)\b|\bfunction[ _-]?call(?:s|ing)?\b)"
)
_REFUSED = (
    r"(?:\bnot (?:\w+ )?(?:support|enabled|available|allowed|permitted|implemented|recogni[sz]ed)"
    r"|n't (?:\w+ )?support|\bunsupported|\bno endpoints found that support|\bdisabled"
    r"|\bunknown|\bunrecogni[sz]ed|\bunexpected|\bextra (?:inputs|fields)|\brequires? --)"
)
_REFUSAL = re.compile(
    rf"{_TOOLS}.{{0,80}}?{_REFUSED}|{_REFUSED}.{{0,80}}?{_TOOLS}"
    # The server could not read the call that the model wrote.
    r"|\btool_use_failed|\bfailed to call a function|\btool call validation failed",
    re.IGNORECASE,
)
_OF_THE_CONVERSATION = re.compile(
    # A model's own name may end in these words.
    r"(?<![\w/-])(?:redacted_)?(?:thinking|reasoning(?:_content|_effort)?|signatures?)(?![\w:/-])"
    r"|thought_?signature|\btool_(?:use|call)_ids?\b|\btool_results?\b|\bmessages?[.\[]\d",
    re.IGNORECASE,
)
_OTHER_PARAMETER = re.compile(r"\bparallel_tool_calls\b|\bmax_tool_calls\b")


def refuses_tools(error: BadRequestError | ProviderError) -> bool:
    """True when a provider refuses tools as such, false for other failures: a conversation that it
    finds faulty, reasoning that it misses in one, a tool's schema, another parameter."""
    if isinstance(error, (AuthError, RateLimitError, ProviderDownError)):
        return False
    words = _OTHER_PARAMETER.sub("", str(error))
    return bool(_REFUSAL.search(words)) and not _OF_THE_CONVERSATION.search(words)
