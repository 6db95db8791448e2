"""What a model takes beside text, by litellm's list: asked for requests that hold such things."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from pytest_mlab.models.library import litellm

_MARKS = ("anthropic",)
_CLAUDE = (
    "bedrock",
    "bedrock_converse",
    "vertex_ai",
    "openrouter",
    "databricks",
    "azure_ai",
    "litellm_proxy",
    "openai",
    "github_copilot",
    "vercel_ai_gateway",
)
"""Providers that take marks for the models of Claude that they serve."""

_IN_RESULTS = (*_MARKS, "bedrock", "vertex_ai", "gemini")


@dataclass(frozen=True)
class Takes:
    """``media`` are the types of parts (``image_url``, ``file``, ``input_audio``, ``video_url``)
    that it takes; ``media_in_results``: in a tool's result as well. ``marks``: it takes
    ``cache_control``, and ``mark_of_all`` one for the request as a whole. ``thinking`` and
    ``effort`` are the parameters for reasoning."""

    media: frozenset[str] = frozenset()
    media_in_results: bool = False
    marks: bool = False
    mark_of_all: bool = False
    thinking: bool = False
    effort: bool = False

    def with_images(self, images: bool | None) -> Takes:
        """As the user says about images; None: nothing."""
        if images is None:
            return self
        media = self.media | {"image_url"} if images else self.media - {"image_url"}
        return replace(self, media=media)


@functools.lru_cache(maxsize=64)
def takes(name: str) -> Takes:
    """The facts about litellm's model ``name``; nothing for one that litellm does not know."""
    library = litellm()
    try:
        model, provider = library.get_llm_provider(name)[:2]
    except library.BadRequestError:
        return Takes()
    params = set(library.get_supported_openai_params(model, custom_llm_provider=provider) or ())
    of_claude = provider in _CLAUDE and "claude" in model.lower()
    marks = provider in _MARKS or of_claude
    asked = {
        "image_url": library.supports_vision,
        "file": library.utils.supports_pdf_input,
        "input_audio": library.supports_audio_input,
        "video_url": library.utils.supports_video_input,
    }
    return Takes(
        frozenset(part for part, supports in asked.items() if supports(model, provider)),
        provider in _IN_RESULTS,
        marks,
        "cache_control" in params,
        "thinking" in params,
        "reasoning_effort" in params,
    )
