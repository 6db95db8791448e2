from __future__ import annotations

import pytest

from pytest_mlab.trial.process.child_env import Redactor, trial_environment

KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "MLAB_X", "XDG_CACHE_HOME", "DOCKER_HOST"]
)
@pytest.mark.parametrize("needs_model", [True, False])
def test_always(name: str, needs_model: bool) -> None:
    assert trial_environment({name: "v"}, needs_model=needs_model)[name] == "v"


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_ORGANIZATION", "ANTHROPIC_API_KEY",
        "AWS_SECRET_ACCESS_KEY", "AZURE_API_VERSION", "GOOGLE_APPLICATION_CREDENTIALS", "VERTEXAI_PROJECT", "HF_TOKEN",
        "LITELLM_LOG", "GROQ_API_KEY", "HTTPS_PROXY", "SSL_CERT_FILE", "WATSONX_APIKEY",
    ],
)  # fmt: skip
def test_only_with_a_model(name: str) -> None:
    assert name in trial_environment({name: "v"}, needs_model=True)
    assert name not in trial_environment({name: "v"}, needs_model=False)


@pytest.mark.parametrize(
    "name",
    ["PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "COVERAGE_PROCESS_CONFIG", "COV_CORE_SOURCE",
     "VIRTUAL_ENV", "PYTHONPATH", "GITHUB_TOKEN", "DATABASE_PASSWORD", "KAGGLE_KEY", "LD_PRELOAD", "MY_PATH"],
)  # fmt: skip
@pytest.mark.parametrize("needs_model", [True, False])
def test_never(name: str, needs_model: bool) -> None:
    assert name not in trial_environment({name: "v"}, needs_model=needs_model)


def test_price_list_is_never_downloaded() -> None:
    environ = {"LITELLM_LOCAL_MODEL_COST_MAP": "False"}
    assert trial_environment(environ, needs_model=True) == {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "HF_TOKEN",
        "ANTHROPIC_AUTH_TOKEN",
        "X_SECRET",
    ],
)
def test_secret_is_replaced_by_its_name(name: str) -> None:
    assert Redactor({name: KEY})(f"Bearer {KEY}, again {KEY}") == f"Bearer [{name}], again [{name}]"


def test_what_is_no_secret_stays() -> None:
    redact = Redactor(
        {
            "HOME": "/home/somebody",
            "OPENAI_API_KEY": "short",
            "GOOGLE_APPLICATION_CREDENTIALS": "/a/file.json",
        }
    )
    assert redact("/home/somebody short /a/file.json") == "/home/somebody short /a/file.json"


def test_longer_secret_first() -> None:
    redact = Redactor({"A_KEY": KEY, "B_KEY": KEY + "-longer"})
    assert redact(KEY + "-longer " + KEY) == "[B_KEY] [A_KEY]"


def test_tree() -> None:
    redact = Redactor({"A_KEY": KEY})
    assert redact.tree({KEY: [KEY, (1, KEY)], "n": None}) == {
        "[A_KEY]": ["[A_KEY]", (1, "[A_KEY]")],
        "n": None,
    }
    assert redact.active
    assert not Redactor({}).active
    assert Redactor({}).tree({"a": (1,)}) == {"a": (1,)}
