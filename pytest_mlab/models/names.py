"""Model names and the keys that they need, checked before anything is spent."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_mlab.models.library import litellm

_OTHER_CREDENTIALS = frozenset(
    {
        "bedrock",
        "bedrock_mantle",
        "sagemaker",
        "sagemaker_chat",
        "sagemaker_nova",
        "vertex_ai",
        "vertex_ai_beta",
    }
)
"""Providers whose credentials may be in files or come from the machine: an absent variable proves
nothing."""

_ONLY_A_KEY = frozenset(
    {"openai", "anthropic", "gemini", "mistral", "groq", "deepseek", "openrouter", "xai", "cohere"}
)
"""Providers that need <PROVIDER>_API_KEY and nothing else. Where it is set, the answer does not
need litellm, whose import costs every session 3 s."""

_OWN_MACHINE = frozenset(
    {"ollama", "ollama_chat", "lm_studio", "llamafile", "hosted_vllm", "vllm", "xinference"}
)
"""Providers that are a program of the user's, with a default address and no key."""


_RETIRED = {
    "openai": re.compile(
        r"gpt-(3\.5-turbo|4)(-turbo|-16k|-32k|-vision|-instruct)?(-preview)?(-\d{4})?(-preview)?"
    ),
    "anthropic": re.compile(
        r"claude-(v?[12](\.\d)?(-100k)?|instant(-v?1(\.\d)?)?(-100k)?"
        r"|3([-.][57])?-(opus|sonnet|haiku)(-20\d{6}|-latest)?)"
    ),
    "gemini": re.compile(
        r"gemini-(1\.[05]-|2\.0-)?(pro|flash|ultra)(-vision)?(-8b)?(-\d{3}|-latest)?"
    ),
}
"""Names of models that old experiments used and litellm's list has lost. They go to their provider,
which may still serve them. Patterns and not prefixes, so that a mistyped name is still refused."""


def litellm_name(name: str) -> str:
    """``name`` as litellm takes it: with its provider when it is a retired model's that litellm's
    list lacks."""
    # A listed name wins over the patterns: once litellm lists it again, its own entry is right.
    if "/" in name or _is_listed(name):
        return name
    providers = [provider for provider, pattern in _RETIRED.items() if pattern.fullmatch(name)]
    return f"{providers[0]}/{name}" if providers else name


def check_model_name(name: str) -> str:
    """'' when litellm knows which provider serves ``name``, else what is wrong, with the nearest
    matches."""
    if not name.strip() or name != name.strip():
        return f"model name {name!r} is empty or has blanks around it"
    # In this order, because the second question imports litellm.
    if _is_listed(name) or provider_of(name):
        return ""
    provider, slash, rest = name.partition("/")
    if slash:
        near = get_close_matches(provider, _providers(), n=3, cutoff=0.6)
        matches = [f"{match}/{rest}" for match in near]
        problem = f"unknown provider {provider!r} in the model name {name!r}"
    else:
        matches = _nearest_models(name)
        problem = f"no known provider serves a model named {name!r}"
    hint = f"; nearest: {', '.join(matches)}" if matches else ""
    return (
        f"{problem}{hint}; write provider/model as litellm does, "
        f"openai/{rest or name} for any OpenAI-compatible server (OPENAI_BASE_URL)"
    )


def missing_key(name: str) -> str | None:
    """The environment variable(s) to set before ``name`` can be called, None when nothing is
    missing.

    Alternatives are joined by ' or ', several that are needed together by ' and '.
    """
    listed = _listed_provider(name)
    if listed in _ONLY_A_KEY and os.environ.get(f"{listed.upper()}_API_KEY"):
        return None
    provider = provider_of(name)
    if provider in _OTHER_CREDENTIALS or provider in _OWN_MACHINE:
        return None
    found = litellm().validate_environment(name)
    missing = [variable for variable in found["missing_keys"] if not os.environ.get(variable)]
    if found["keys_in_environment"] or not missing:
        # litellm looks only whether the variable exists. A variable that is set to nothing, as CI
        # does for an absent secret, counts as a key there.
        empty = provider == "openai" and not os.environ.get("OPENAI_API_KEY")
        return "OPENAI_API_KEY" if empty else None
    # Its variables are alternatives (GEMINI_API_KEY, GOOGLE_API_KEY). litellm lists both as
    # missing, as if both were needed.
    if provider == "gemini":
        return " or ".join(sorted(missing))
    return " and ".join(missing)


def _is_listed(name: str) -> bool:
    """True when litellm's own lists have the provider or the model. False proves nothing: litellm
    knows more than it lists."""
    return bool(_listed_provider(name))


def _listed_provider(name: str) -> str:
    """The provider of ``name`` by litellm's own lists, read without the seconds of its import; ''
    when they lack it."""
    provider, slash, _ = name.partition("/")
    if slash:
        known = _list("provider_endpoints_support_backup.json").get("providers", {})
        return provider if provider in known else ""
    entry = _list("model_prices_and_context_window_backup.json").get(name)
    return "" if entry is None else str(entry.get("litellm_provider") or "unknown")


@cache
def _list(file: str) -> Mapping[str, Any]:
    """A JSON file inside the installed litellm; empty when this version has none."""
    # find_spec of a top-level name only locates the package. It does not import it.
    spec = find_spec("litellm")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    try:
        return dict(json.loads(Path(places[0], file).read_bytes()))
    # The files are litellm's internals and may move. Without them every question goes to litellm
    # itself, which is only slower.
    except (IndexError, OSError, ValueError):
        return {}


def provider_of(name: str) -> str:
    """litellm's name of the provider that serves ``name``, '' when there is none."""
    library = litellm()
    try:
        return str(library.get_llm_provider(name)[1])
    except library.BadRequestError:
        return ""


def _providers() -> list[str]:
    return sorted(str(getattr(provider, "value", provider)) for provider in litellm().provider_list)


def _nearest_models(name: str) -> list[str]:
    """Full names of listed models whose last part is like ``name``, most similar first."""
    full: dict[str, str] = {}
    # Names with fewer slashes first: setdefault keeps the shortest name of a model that several
    # resellers offer.
    for known, entry in sorted(litellm().model_cost.items(), key=lambda item: item[0].count("/")):
        if entry.get("mode") == "chat":
            provider = str(entry.get("litellm_provider", ""))
            full.setdefault(
                known.rsplit("/", 1)[-1],
                known if "/" in known or not provider else f"{provider}/{known}",
            )
    return [full[match] for match in get_close_matches(name, full, n=3, cutoff=0.6)]
