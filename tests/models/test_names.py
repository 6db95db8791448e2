"""Model names, keys and prices, answered by the real litellm without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from pytest_mlab.core.model_settings import ModelSettings, TokenPrices
from pytest_mlab.errors import ConfigError
from pytest_mlab.models.library import litellm
from pytest_mlab.models.names import (
    _ONLY_A_KEY,
    check_model_name,
    litellm_name,
    missing_key,
    provider_of,
)
from pytest_mlab.models.prices import Price, price_of, require_prices, worst_case_price


@pytest.mark.parametrize(
    "name", ["gpt-4-turbo", "openai/gpt-5", "openai/my-model", "ollama/llama3", "hosted_vllm/x"]
)
def test_known_names(name: str) -> None:
    assert check_model_name(name) == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("opnai/gpt-5", "openai/gpt-5"),
        ("anthropc/claude-x", "anthropic/claude-x"),
        ("gpt-4-turob", "gpt-4-turbo"),
        ("nonsense", "OPENAI_BASE_URL"),
        ("", "empty"),
        (" gpt-4", "blanks"),
    ],
)
def test_unknown_names_get_the_nearest(
    name: str, expected: str, capfd: pytest.CaptureFixture[str]
) -> None:
    message = check_model_name(name)
    assert repr(name) in message
    assert expected in message
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("gpt-4-turbo", "OPENAI_API_KEY"),
        ("openai/my-model", "OPENAI_API_KEY"),
        ("anthropic/claude-opus-4-8", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-pro", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("azure/x", "AZURE_API_BASE and AZURE_API_VERSION and AZURE_API_KEY"),
        ("ollama/llama3", None),
        ("hosted_vllm/x", None),
        ("bedrock/x", None),
    ],
)
def test_missing_keys_are_named(
    name: str, variables: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in (variables or "").replace(" and ", " or ").split(" or "):
        monkeypatch.delenv(variable, raising=False)
    assert missing_key(name) == variables


def test_a_key_that_is_there_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    assert missing_key("gpt-4-turbo") is None
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert missing_key("gpt-4-turbo") == "OPENAI_API_KEY"


def test_prices() -> None:
    price = worst_case_price("gpt-4-turbo")
    assert price is not None
    assert (price.prompt, price.completion) == (10e-6, 30e-6)
    assert (price.context, price.max_output) == (128_000, 4096)
    assert worst_case_price("openai/gpt-4-turbo") == price


def test_the_dearest_tier_is_the_worst_case() -> None:
    price = worst_case_price("gemini/gemini-2.5-pro")
    assert price is not None
    assert price.prompt == pytest.approx(2.5e-6)


@pytest.mark.parametrize("name", ["openai/my-model", "huggingface/meta/x", "anthropic/gpt-4-turbo"])
def test_an_unknown_price_is_none(name: str) -> None:
    assert worst_case_price(name) is None


def test_a_model_on_the_own_machine_is_free() -> None:
    price = worst_case_price("ollama/llama3")
    assert price is not None
    assert (price.prompt, price.completion) == (0.0, 0.0)


def test_a_zero_that_nobody_vouches_for_is_no_price() -> None:
    assert worst_case_price("sagemaker/meta-textgeneration-llama-2-7b") is None


def test_a_cost_limit_needs_a_known_price() -> None:
    known, unknown = (
        ModelSettings("gpt-4-turbo", "gpt-4-turbo"),
        ModelSettings("mine", "openai/my-model"),
    )
    require_prices([known], 5.0, "m.toml")
    require_prices([unknown], None, "m.toml")
    words = (
        r'\$5 cannot be kept: the price of mine is unknown; write .* under \[models."mine"\] in'
        r" m.toml"
    )
    with pytest.raises(ConfigError, match=words):
        require_prices([known, unknown], 5.0, "m.toml")
    require_prices([known, replace(unknown, prices=TokenPrices(1, 2, 1))], 5.0, "m.toml")


def test_a_users_price_wins_over_the_list() -> None:
    mine = ModelSettings(
        "gpt-4-turbo", "gpt-4-turbo", prices=TokenPrices(1.0, 2.0, 0.5), context=1000
    )
    assert price_of(mine) == Price(1.0, 2.0, 1000, 4096)
    assert price_of(replace(mine, prices=None)) == Price(10e-6, 30e-6, 1000, 4096)
    assert price_of(replace(mine, model="openai/x", context=None)) == Price(1.0, 2.0, None, None)


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("claude-3-opus-20240229", "anthropic"),
        ("claude-3-opus", "anthropic"),
        ("claude-3-5-sonnet-latest", "anthropic"),
        ("claude-3.5-sonnet", "anthropic"),
        ("claude-2.1", "anthropic"),
        ("claude-v1", "anthropic"),
        ("claude-instant-v1.2", "anthropic"),
        ("gpt-4-32k-0613", "openai"),
        ("gpt-4-vision-preview", "openai"),
        ("gpt-3.5-turbo-16k-0613", "openai"),
        ("gemini-pro", "gemini"),
        ("gemini-1.5-flash-8b", "gemini"),
    ],
)
def test_a_retired_name_goes_to_its_provider(name: str, provider: str) -> None:
    assert litellm_name(name) == f"{provider}/{name}"
    assert check_model_name(litellm_name(name)) == ""
    assert provider_of(litellm_name(name)) == provider


@pytest.mark.parametrize(
    "name", ["gpt-4-turbo", "openai/gpt-4-32k", "gpt-4-turob", "claude-3-opsu", "nonsense"]
)
def test_other_names_stay(name: str) -> None:
    assert litellm_name(name) == name


def test_listed_names_and_their_keys_are_checked_without_importing_litellm() -> None:
    """Its import would cost every session 3 s."""
    names = ["gpt-4-turbo", "openai/my-model", "anthropic/claude-of-tomorrow"]
    code = (
        "import sys\n"
        "from pytest_mlab.models.names import check_model_name, missing_key\n"
        f"print({{(check_model_name(name), missing_key(name)) for name in {names}}},"
        " 'litellm' in sys.modules)"
    )
    keys = {"OPENAI_API_KEY": "sk-x", "ANTHROPIC_API_KEY": "sk-y"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **keys},
    )
    assert done.stdout.strip() == "{('', None)} False"


@pytest.mark.parametrize("provider", sorted(_ONLY_A_KEY))
def test_where_a_key_suffices_litellm_says_so_too(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"{provider.upper()}_API_KEY"
    monkeypatch.delenv(variable, raising=False)
    assert variable in (missing_key(f"{provider}/x") or "")
    monkeypatch.setenv(variable, "a key")
    assert missing_key(f"{provider}/x") is None
    assert litellm().validate_environment(f"{provider}/x")["missing_keys"] == []
