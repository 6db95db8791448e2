"""What a trial costs at worst."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_mlab.core.model_settings import ModelSettings, TokenPrices
from pytest_mlab.planning.estimate import trial_cost

GPT = ModelSettings("gpt-4-turbo", "gpt-4-turbo")
MINE = ModelSettings("mine", "openai/mine")


def test_price_times_context_times_steps() -> None:
    once = trial_cost([GPT], 1, None)
    assert once is not None
    assert once > 0
    assert trial_cost([GPT], 50, None) == pytest.approx(50 * once)
    assert trial_cost([GPT, ModelSettings("gpt-3.5-turbo", "gpt-3.5-turbo")], 1, None) == once
    assert trial_cost([GPT, MINE], 1, None) is None
    assert trial_cost([MINE], 50, 1.5) == 1.5


def test_a_price_and_a_context_that_the_user_wrote_down() -> None:
    priced = replace(MINE, prices=TokenPrices(prompt=2e-6, completion=3e-6, cached=1e-6))
    assert trial_cost([priced], 1, None) is None
    assert trial_cost([replace(priced, context=1000)], 10, None) == pytest.approx(10 * 1000 * 2e-6)
