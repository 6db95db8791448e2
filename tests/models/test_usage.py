"""Whatever usage a provider reports, what is counted adds up and covers it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.core.model_settings import ModelSettings, TokenPrices
from pytest_mlab.models.library import litellm
from pytest_mlab.models.prices import cost
from pytest_mlab.models.usage import MOST, Counted, Expected, counted

PROMPT, COMPLETION = 1_000, 100
CALL = Expected(lambda: PROMPT, lambda: COMPLETION, 4 * PROMPT, 4 * COMPLETION)

figures = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-100, 3_000),
    st.sampled_from([MOST, MOST + 1, 10**30, -(10**30), 10**400]),
    st.floats(),
    st.sampled_from(["", "12", "1e9999", "-3", "nan", "many", "१२"]),
    st.just([1]),
    st.just({"a": 1}),
)
details = st.one_of(
    figures,
    st.dictionaries(
        st.sampled_from(["cached_tokens", "cache_creation_tokens", "audio_tokens", "text_tokens"]),
        figures,
    ),
)
usages = st.fixed_dictionaries(
    {},
    optional={
        "prompt_tokens": figures,
        "completion_tokens": figures,
        "total_tokens": figures,
        "cache_read_input_tokens": figures,
        "cache_creation_input_tokens": figures,
        "prompt_tokens_details": details,
        "completion_tokens_details": st.one_of(
            figures, st.dictionaries(st.just("reasoning_tokens"), figures)
        ),
        "as_reported": st.one_of(figures, st.just({"prompt_tokens": "x"})),
    },
)


@given(usages)
def test_any_usage_adds_up_and_is_never_less_than_a_quarter_of_what_was_sent(
    reported: dict[str, Any],
) -> None:
    found = counted(reported, CALL)
    usage = found.usage
    for figure in (
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
        found.written,
    ):
        assert type(figure) is int
        assert figure >= 0
    assert usage.cached_tokens + found.written <= usage.prompt_tokens
    assert usage.reasoning_tokens <= usage.completion_tokens
    assert usage.prompt_tokens >= PROMPT / 5
    assert usage.completion_tokens >= COMPLETION / 5
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        value = reported.get(name)
        if type(value) is int and 0 <= value <= MOST and "as_reported" not in reported:
            assert usage.total >= value


@pytest.mark.parametrize(
    "model",
    [
        ModelSettings("priced", "openai/own", prices=TokenPrices(3e-6, 15e-6, 0.3e-6)),
        ModelSettings("gpt", "openai/gpt-5"),
        ModelSettings("claude", "anthropic/claude-sonnet-4-5"),
        ModelSettings("gemini", "gemini/gemini-2.5-pro"),
    ],
    ids=lambda model: model.name,
)
@settings(max_examples=40, deadline=None)
@given(st.lists(usages, min_size=1, max_size=3))
@example([{"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": 20_000}}])
@example([{"prompt_tokens": 1_000, "prompt_tokens_details": {"audio_tokens": -(10**9)}}])
def test_neither_cost_nor_tokens_fall_and_both_limits_end_a_trial(
    model: ModelSettings, reports: list[dict[str, Any]]
) -> None:
    ledger = Ledger()
    for reported in reports:
        found = counted(reported, CALL)
        dollars = cost(model, _answer(found), found)
        assert dollars is not None
        assert 0 < dollars < math.inf
        after = ledger.with_call(found.usage, dollars)
        assert after.cost > ledger.cost
        assert after.usage.total >= ledger.usage.total + (PROMPT + COMPLETION) / 5
        ledger = after
    calls = len(reports)
    tokens = Budget(max_tokens=calls * (PROMPT + COMPLETION) // 5)
    assert ledger.exhausted(tokens) == "tokens"
    # the cheapest price of the four is that of cached tokens
    assert ledger.exhausted(Budget(max_cost=calls * COMPLETION / 5 * 1e-6)) == "cost"


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Outside of hypothesis's measurements: the import takes seconds."""
    litellm()


def _answer(found: Counted) -> Any:
    """litellm's own answer with a usage that the correction, where there is one, has to replace."""
    library = litellm()
    usage = (
        library.Usage(prompt_tokens=-5, completion_tokens=-7)
        if found.remark
        else library.Usage(
            prompt_tokens=found.usage.prompt_tokens,
            completion_tokens=found.usage.completion_tokens,
            total_tokens=found.usage.total,
            cache_read_input_tokens=found.usage.cached_tokens,
            cache_creation_input_tokens=found.written,
        )
    )
    return library.ModelResponse(model="x", usage=usage)


SOUND: list[tuple[dict[str, Any], Usage]] = [
    ({"prompt_tokens": 900, "completion_tokens": 90}, Usage(900, 90)),
    ({"input_tokens": 900, "output_tokens": 90}, Usage(900, 90)),
    (
        {
            "prompt_tokens": 900,
            "completion_tokens": 90,
            "total_tokens": 990,
            "prompt_tokens_details": {"cached_tokens": 800, "audio_tokens": None},
            "completion_tokens_details": {"reasoning_tokens": 80},
        },
        Usage(900, 90, 800, 80),
    ),
    (
        {"prompt_tokens": 900, "completion_tokens": 90, "prompt_cache_hit_tokens": 70},
        Usage(900, 90, 70),
    ),
]


@pytest.mark.parametrize(("reported", "usage"), SOUND)
def test_a_sound_usage_is_taken_as_it_is(reported: dict[str, Any], usage: Usage) -> None:
    assert counted(reported, CALL) == Counted(usage)


CORRECTED: list[tuple[dict[str, Any], tuple[int, int], str]] = [
    ({}, (PROMPT, COMPLETION), "reports no usage"),
    (
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        (PROMPT, COMPLETION),
        "reports no usage; counted as 1000 prompt and 100 completion tokens",
    ),
    ({"prompt_tokens": 900}, (900, COMPLETION), "no tokens for the answer"),
    ({"completion_tokens": 90}, (PROMPT, 90), "no tokens for the prompt"),
    ({"prompt_tokens": 3, "completion_tokens": 90}, (PROMPT, 90), "3 tokens for the prompt"),
    ({"prompt_tokens": "900", "completion_tokens": 90}, (900, 90), "prompt_tokens is '900'"),
    ({"prompt_tokens": 899.5, "completion_tokens": 90}, (900, 90), "prompt_tokens is 899.5"),
    ({"prompt_tokens": math.nan, "completion_tokens": 90}, (PROMPT, 90), "prompt_tokens is nan"),
    ({"prompt_tokens": 10**30, "completion_tokens": 90}, (PROMPT, 90), "prompt_tokens is 1000"),
    ({"prompt_tokens": True, "completion_tokens": 90}, (PROMPT, 90), "prompt_tokens is True"),
    ({"prompt_tokens": 900, "completion_tokens": -9}, (900, COMPLETION), "completion_tokens is -9"),
    (
        {
            "prompt_tokens": 40,
            "completion_tokens": 90,
            "prompt_tokens_details": {"cached_tokens": 20_000},
        },
        (20_040, 90),
        "20000 cached tokens in a prompt of 40",
    ),
    (
        {
            "prompt_tokens": 900,
            "completion_tokens": 90,
            "completion_tokens_details": {"reasoning_tokens": 500},
        },
        (900, 590),
        "500 reasoning tokens in an answer of 90",
    ),
    (
        {"prompt_tokens": 900, "completion_tokens": 90, "total_tokens": 1_500},
        (900, 600),
        "a total of 1500 for 900",
    ),
    ({"as_reported": "x"}, (PROMPT, COMPLETION), "no usage"),
    (
        {"prompt_tokens": 0, "as_reported": {"prompt_tokens": "x", "completion_tokens": 90}},
        (PROMPT, 90),
        "prompt_tokens is 'x'",
    ),
]


@pytest.mark.parametrize(("reported", "tokens", "words"), CORRECTED)
def test_what_does_not_add_up_is_counted_on_the_safe_side_and_said(
    reported: dict[str, Any], tokens: tuple[int, int], words: str
) -> None:
    found = counted(reported, CALL)
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == tokens
    assert words in found.remark
    assert f"counted as {tokens[0]} prompt and {tokens[1]} completion tokens" in found.remark


def test_an_empty_answer_may_have_no_tokens() -> None:
    empty = Expected(lambda: PROMPT, lambda: 0, 4 * PROMPT, 0)
    assert counted({"prompt_tokens": 900}, empty) == Counted(Usage(900, 0))
