"""Which limits hold for a model, and who shares them."""

from __future__ import annotations

import pytest

from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.plan import RunSettings
from pytest_mlab.core.routes import (
    RouteLimits,
    limits_of,
    route_of,
    routes_of,
    with_limits,
    with_new_limits,
)
from pytest_mlab.core.trial import TrialId
from pytest_mlab.core.values import PerModel
from pytest_mlab.errors import ConfigError

COLD = ModelSettings("cold", "openai/gpt-5", {"temperature": 0})
HOT = ModelSettings("hot", "openai/gpt-5", {"temperature": 1})


def test_aliases_of_one_model_share_its_route_of() -> None:
    assert route_of(COLD) == route_of(HOT)
    elsewhere = ModelSettings("mine", "openai/gpt-5", {"base_url": "http://here/v1"})
    assert (
        len(
            {
                route_of(COLD),
                route_of(elsewhere),
                route_of(ModelSettings("x", "openai/gpt-5", api_key_env="A")),
            }
        )
        == 3
    )


def test_what_a_trial_may_ask() -> None:
    settings = RunSettings(models=(COLD, HOT), edit_model="hot", fast_model="small")
    assert routes_of(TrialId("t", "a", "cold", 1), settings) == ("openai/gpt-5", "small")
    assert routes_of(TrialId("t", "baseline", "", 1), settings) == ()


def test_an_option_for_a_model_replaces_one_for_all() -> None:
    rpm = (PerModel(60), PerModel(10, "cold"), PerModel(90, "openai/gpt-5"))
    cold, hot = with_limits([COLD, HOT], rpm, [PerModel(5000)])
    assert (cold.rpm, hot.rpm) == (10, 90)
    assert (cold.tpm, hot.tpm) == (5000, 5000)


def test_beside_a_limit_of_the_settings_the_stricter_holds() -> None:
    given = [
        ModelSettings("a", "a", rpm=30),
        ModelSettings("b", "b", rpm=90),
        ModelSettings("c", "c"),
    ]
    assert [model.rpm for model in with_limits(given, [PerModel(60)])] == [30, 60, 60]
    assert [model.rpm for model in with_limits(given)] == [30, 90, None]


def test_a_limit_for_a_model_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"--mlab-tpm=clod=5: unknown model 'clod'; did you mean 'cold'"
    ):
        with_limits([COLD], tpm=[PerModel(5, "clod")])
    assert (
        with_limits([], tpm=[PerModel(5, "clod")]) == ()
    )  # an ini file's, in a run without models


def test_a_resumed_run_takes_what_its_options_say() -> None:
    stored = [ModelSettings("a", "a", rpm=30, tpm=100), ModelSettings("b", "b", rpm=30)]
    assert [(m.rpm, m.tpm) for m in with_new_limits(stored, [PerModel(90, "a")])] == [
        (90, 100),
        (30, None),
    ]


def test_the_strictest_limit_of_a_route_holds_for_all_of_its_aliases() -> None:
    models = (
        ModelSettings("a", "m", rpm=30),
        ModelSettings("b", "m", rpm=20, tpm=1000),
        ModelSettings("c", "other"),
    )
    settings = RunSettings(models=models)
    assert limits_of("a", settings) == limits_of("b", settings) == RouteLimits("m", 20, 1000)
    assert limits_of("c", settings) == RouteLimits("other")
    assert limits_of("unnamed", settings) == RouteLimits("unnamed")


def test_the_longest_reply_is_that_of_the_models_own_settings() -> None:
    models = (ModelSettings("short", "m", {"max_tokens": 50}), ModelSettings("long", "m"))
    settings = RunSettings(models=models)
    assert limits_of("short", settings).max_tokens == 50
    assert limits_of("long", settings).max_tokens is None


@pytest.mark.parametrize("text", ["", "0", "a=", "=", "a=0", "many", "1.5"])
def test_what_is_no_limit(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        PerModel.parse(text)


@pytest.mark.parametrize("text", ["60", "gpt-4-turbo=60", "openai/a=b=60"])
def test_a_limit_reads_as_it_was_written(text: str) -> None:
    assert str(PerModel.parse(text)) == text
