"""Which environment variables reach a trial's process, and keeping their secrets out of what is
written.

By allow-list: what is not named here stays in the worker. Nothing of pytest's or coverage's passes,
and providers' keys only where an agent calls a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_ALWAYS = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TEMP|TMP|LD_LIBRARY_PATH"
    r"|MLAB_\w+|XDG_\w+|DOCKER_\w+|CUDA_\w+|NVIDIA_\w+|ROCR_\w+|HIP_\w+"
    r"|OPENBLAS_\w+|OMP_\w+|MKL_\w+|KMP_\w+|NUMEXPR_\w+|VECLIB_\w+|BLIS_\w+"
)
_WITH_MODEL = re.compile(
    r"\w+_API_?KEY|\w+_API_BASE|\w+_BASE_URL|\w+_API_VERSION|\w+_API_TYPE|\w+_AI_TOKEN|AIMLAPI_KEY|COMETAPI_KEY"
    r"|(LITELLM|OPENAI|ANTHROPIC|AWS|AZURE|GOOGLE|GCLOUD|GCS|VERTEX|VERTEXAI|GEMINI|BEDROCK|DATABRICKS|DATAROBOT|WATSONX|WX"
    r"|WML|OLLAMA|HUGGINGFACE|REPLICATE|PREDIBASE|SNOWFLAKE|CLOUDFLARE|FIREWORKS|GIGACHAT|GITHUB_COPILOT|CHATGPT|VERCEL"
    r"|XAI|OR|SCW|RUNWAYML|MISTRAL|COHERE|GROQ|TOGETHERAI|DEEPSEEK|DASHSCOPE|OPENROUTER|PERPLEXITYAI)_\w+"
    r"|HF_TOKEN|SSL_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(HTTPS?|NO|ALL)_PROXY|(https?|no|all)_proxy"
)
_SECRET = re.compile(
    r"(^|_)(API_?KEY|KEY|APIKEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?|JWT)(_ID)?$|AUTH_TOKEN|ACCESS_KEY"
)

SHORTEST_SECRET = 8
"""Shorter values are not looked for: they would match by chance."""


def trial_environment(environ: Mapping[str, str], *, needs_model: bool) -> dict[str, str]:
    """What a trial's process gets of ``environ``."""
    allowed = {
        name: value
        for name, value in environ.items()
        if _ALWAYS.fullmatch(name) or (needs_model and _WITH_MODEL.fullmatch(name))
    }
    if needs_model:
        allowed["LITELLM_LOCAL_MODEL_COST_MAP"] = (
            "True"  # the price list in the package: no download at import
        )
    return allowed


class Redactor:
    """Replaces the values of key-like variables by their names, wherever they turn up."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        secrets = {
            value: name
            for name, value in environ.items()
            if _SECRET.search(name.upper())
            and len(value) >= SHORTEST_SECRET
            and not value.startswith("/")
        }
        self._names = secrets
        longest_first = sorted(secrets, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if secrets else None

    @property
    def active(self) -> bool:
        """False when there is nothing to replace."""
        return self._pattern is not None

    def __call__(self, text: str) -> str:
        """``text`` without any secret's value."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: f"[{self._names[found.group()]}]", text)

    def tree(self, value: Any) -> Any:
        """The same for every text inside nested dicts, lists and tuples, keys included."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {self.tree(key): self.tree(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.tree(item) for item in value]
        if isinstance(value, tuple):
            return tuple(self.tree(item) for item in value)
        return value
