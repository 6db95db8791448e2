"""How a run calls one of its models: litellm's name, parameters, limits and prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class TokenPrices:
    """Dollars a token as a user wrote them down; ``cached`` is for prompt tokens that the provider
    had cached."""

    prompt: float
    completion: float
    cached: float

    def cost(self, *, prompt: int, cached: int, completion: int) -> float:
        """Dollars of a call; ``cached`` tokens are a part of the ``prompt`` tokens."""
        return (prompt - cached) * self.prompt + cached * self.cached + completion * self.completion


@dataclass(frozen=True)
class ModelSettings:
    """The settings of the model that a run knows as ``name``: an alias of the user's, or litellm's
    own name.

    ``model`` is litellm's name; ``params`` are parameters of every call, by litellm's names, and
    win over an agent's; ``tools`` says how it gets tools ('': as litellm's list says);
    ``context`` is how many tokens fit into a prompt; ``images`` says whether it takes images (None:
    as litellm's list says); ``prices`` win over the list in litellm;
    ``rpm`` and ``tpm`` are requests and tokens a minute, over all workers of the run;
    ``api_key_env`` names the environment variable with its key ('' for the provider's own). None:
    unknown, or no limit."""

    name: str
    model: str
    params: Mapping[str, Any] = field(default_factory=dict)
    tools: Literal["", "native", "text"] = ""
    context: int | None = None
    prices: TokenPrices | None = None
    rpm: int | None = None
    tpm: int | None = None
    api_key_env: str = ""
    images: bool | None = None
