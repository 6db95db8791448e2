from __future__ import annotations

import pytest

from pytest_mlab.trial.process.child_env import trial_environment


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "MLAB_X", "XDG_CACHE_HOME", "DOCKER_HOST"]
)
@pytest.mark.parametrize("needs_model", [True, False])
def test_always(name: str, needs_model: bool) -> None:
    assert trial_environment({name: "v"}, needs_model=needs_model)[name] == "v"


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_ORGANIZATION",
        "ANTHROPIC_API_KEY",
        "AWS_SECRET_ACCESS_KEY", "AZURE_API_VERSION", "GOOGLE_APPLICATION_CREDENTIALS",
        "VERTEXAI_PROJECT", "HF_TOKEN",
        "LITELLM_LOG", "GROQ_API_KEY", "HTTPS_PROXY", "SSL_CERT_FILE", "WATSONX_APIKEY",
    ],
)  # fmt: skip
def test_only_with_a_model(name: str) -> None:
    assert name in trial_environment({name: "v"}, needs_model=True)
    assert name not in trial_environment({name: "v"}, needs_model=False)


@pytest.mark.parametrize(
    "name",
    ["PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "COVERAGE_PROCESS_CONFIG",
     "COV_CORE_SOURCE",
     "VIRTUAL_ENV", "PYTHONPATH", "GITHUB_TOKEN", "DATABASE_PASSWORD", "KAGGLE_KEY", "LD_PRELOAD",
     "MY_PATH"],
)  # fmt: skip
@pytest.mark.parametrize("needs_model", [True, False])
def test_never(name: str, needs_model: bool) -> None:
    assert name not in trial_environment({name: "v"}, needs_model=needs_model)


def test_price_list_is_never_downloaded() -> None:
    environ = {"LITELLM_LOCAL_MODEL_COST_MAP": "False"}
    assert trial_environment(environ, needs_model=True) == {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
