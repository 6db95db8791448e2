"""Which environment variables reach a trial's process.

By allow-list: a variable that is not named here stays in the worker. None of pytest's or coverage's
passes, and providers' keys pass only when an agent calls a model."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ALWAYS = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TEMP|TMP|LD_LIBRARY_PATH"
    r"|MLAB_\w+|XDG_\w+|DOCKER_\w+|CUDA_\w+|NVIDIA_\w+|ROCR_\w+|HIP_\w+"
    r"|OPENBLAS_\w+|OMP_\w+|MKL_\w+|KMP_\w+|NUMEXPR_\w+|VECLIB_\w+|BLIS_\w+"
)
# Not every key ends in _API_KEY (AWS_SECRET_ACCESS_KEY, for example), so whole families of
# providers' names pass.
_WITH_MODEL = re.compile(
    r"\w+_API_?KEY|\w+_API_BASE|\w+_BASE_URL|\w+_API_VERSION|\w+_API_TYPE|\w+_AI_TOKEN|AIMLAPI_KEY|COMETAPI_KEY"
    r"|(LITELLM|OPENAI|ANTHROPIC|AWS|AZURE|GOOGLE|GCLOUD|GCS|VERTEX|VERTEXAI|GEMINI|BEDROCK|DATABRICKS|DATAROBOT|WATSONX|WX"
    r"|WML|OLLAMA|HUGGINGFACE|REPLICATE|PREDIBASE|SNOWFLAKE|CLOUDFLARE|FIREWORKS|GIGACHAT|GITHUB_COPILOT|CHATGPT|VERCEL"
    r"|XAI|OR|SCW|RUNWAYML|MISTRAL|COHERE|GROQ|TOGETHERAI|DEEPSEEK|DASHSCOPE|OPENROUTER|PERPLEXITYAI)_\w+"
    r"|HF_TOKEN|SSL_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(HTTPS?|NO|ALL)_PROXY|(https?|no|all)_proxy"
)


def trial_environment(environ: Mapping[str, str], *, needs_model: bool) -> dict[str, str]:
    """The variables of ``environ`` that a trial's process gets."""
    allowed = {
        name: value
        for name, value in environ.items()
        if _ALWAYS.fullmatch(name) or (needs_model and _WITH_MODEL.fullmatch(name))
    }
    if needs_model:
        # litellm downloads its price list at import unless it is told to use the packaged one.
        allowed["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    return allowed
