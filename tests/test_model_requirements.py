"""What is checked of models before a run begins."""

from __future__ import annotations

import pytest

from pytest_mlab.errors import ConfigError
from pytest_mlab.requirements import check_models


def test_known_and_priced() -> None:
    check_models(("gpt-4-turbo", "", "openai/gpt-5"), max_cost=1.0)
    check_models(("openai/my-model",))
    check_models((), max_cost=1.0)


def test_an_unknown_provider() -> None:
    with pytest.raises(ConfigError, match="unknown provider 'opnai'"):
        check_models(("opnai/gpt-5",))


def test_a_limit_in_dollars_without_a_price() -> None:
    with pytest.raises(ConfigError, match="the price of openai/my-model is unknown"):
        check_models(("gpt-4-turbo", "openai/my-model"), max_cost=1.0)


def test_settings_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAB_MODEL_ATTEMPTS", "none")
    with pytest.raises(ConfigError, match="MLAB_MODEL_ATTEMPTS='none'"):
        check_models(("gpt-4-turbo",))
