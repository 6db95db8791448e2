"""Model names, keys and prices, answered by the real litellm without a network."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_mlab.adapters.models.names import check_model_name, missing_key
from pytest_mlab.adapters.models.prices import require_prices, worst_case_price
from pytest_mlab.errors import ConfigError


@pytest.mark.parametrize("name", ["gpt-4-turbo", "openai/gpt-5", "openai/my-model", "ollama/llama3", "hosted_vllm/x"])
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
def test_unknown_names_get_the_nearest(name: str, expected: str, capfd: pytest.CaptureFixture[str]) -> None:
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
def test_missing_keys_are_named(name: str, variables: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
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
    require_prices(["gpt-4-turbo", ""], 5.0)
    require_prices(["openai/my-model"], None)
    with pytest.raises(ConfigError, match=r"\$5 cannot be kept: the price of openai/my-model is unknown"):
        require_prices(["gpt-4-turbo", "openai/my-model"], 5.0)


@pytest.mark.parametrize("name", ["gpt-4-turbo", "openai/my-model", "anthropic/claude-of-tomorrow"])
def test_a_listed_name_is_checked_without_importing_litellm(name: str) -> None:
    code = (
        "import sys\n"
        "from pytest_mlab.adapters.models.names import check_model_name\n"
        f"print([check_model_name({name!r}), 'litellm' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['', False]"
