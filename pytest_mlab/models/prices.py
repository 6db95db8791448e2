"""What models cost, from the list inside litellm. An unknown price is None, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.errors import ConfigError
from pytest_mlab.models.library import litellm
from pytest_mlab.models.usage import Counted

FREE_PROVIDERS = frozenset(
    {"ollama", "ollama_chat", "lm_studio", "llamafile", "lemonade", "docker_model_runner"}
)
"""Where a price of 0 in the list is a fact: the model runs on the user's own machine. Elsewhere it
means that the price is missing."""


@dataclass(frozen=True)
class Price:
    """Dollars a token in and out, and the model's limits in tokens (None: unknown)."""

    prompt: float
    completion: float
    context: int | None
    max_output: int | None


def worst_case_price(name: str) -> Price | None:
    """The list price of the model ``name`` without any discount, None when it is unknown."""
    entry = list_entry(name)
    prompt, completion = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if prompt is None or completion is None:
        return None
    if not (prompt or completion) and entry.get("litellm_provider") not in FREE_PROVIDERS:
        return None
    return Price(
        prompt=max(float(prompt), _highest(entry, "input_cost_per_token")),
        completion=max(float(completion), _highest(entry, "output_cost_per_token")),
        context=_whole(entry.get("max_input_tokens") or entry.get("max_tokens")),
        max_output=_whole(entry.get("max_output_tokens") or entry.get("max_tokens")),
    )


def price_of(settings: ModelSettings) -> Price | None:
    """Price and limits of a model of a run: the user's own, else those of the list."""
    listed = worst_case_price(settings.model)
    own = settings.prices
    if own is not None:
        limits = listed or Price(0.0, 0.0, None, None)
        listed = replace(limits, prompt=max(own.prompt, own.cached), completion=own.completion)
    if listed is not None and settings.context:
        return replace(listed, context=settings.context)
    return listed


def require_prices(models: Iterable[ModelSettings], max_cost: float | None, file: str) -> None:
    """Raise ConfigError when ``max_cost`` is to limit a model whose price is unknown: the limit
    would not hold. ``file`` is where the user can write a price down."""
    if max_cost is None:
        return
    unknown = sorted({model.name for model in models if price_of(model) is None})
    if unknown:
        raise ConfigError(
            f"a limit of ${max_cost:g} cannot be kept: the price of {', '.join(unknown)} is"
            " unknown; write "
            "input_cost_per_token and output_cost_per_token (dollars) under"
            f' [models."{unknown[0]}"] in {file}, limit '
            "tokens instead (--mlab-max-tokens), or take the cost limit away"
        )


def cost(settings: ModelSettings, answer: Any, counted: Counted) -> float | None:
    """Dollars of one answer: by the user's prices, else by the list, with the provider's discounts
    for cached tokens. A usage that was corrected replaces the answer's own."""
    usage = counted.usage
    if settings.prices is not None:
        return settings.prices.cost(
            prompt=usage.prompt_tokens,
            cached=usage.cached_tokens,
            completion=usage.completion_tokens,
        )
    name = settings.model
    if worst_case_price(name) is None:
        return None
    if counted.remark:
        answer.usage = litellm().Usage(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            total_tokens=usage.total,
            cache_read_input_tokens=usage.cached_tokens,
            cache_creation_input_tokens=counted.written,
        )
    return float(litellm().completion_cost(answer, model=name))


def list_entry(name: str) -> Mapping[str, Any]:
    """The entry of the model ``name`` in litellm's list, without network; empty when it is not
    listed."""
    prices: Mapping[str, Mapping[str, Any]] = litellm().model_cost
    if name in prices:
        return prices[name]
    provider, _, rest = name.partition("/")
    entry = prices.get(rest, {})
    return entry if entry.get("litellm_provider") == provider else {}


def _highest(entry: Mapping[str, Any], stem: str) -> float:
    """The dearest of a price's tiers (long prompts cost more with some providers)."""
    tiers = [
        value
        for key, value in entry.items()
        if key.startswith(f"{stem}_above_") and key.endswith("_tokens")
    ]
    return max((float(value) for value in tiers if value), default=0.0)


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) else None
