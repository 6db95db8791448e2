"""The names by which programs ask for the trial's models."""

from __future__ import annotations

import pytest

from pytest_mlab.models.endpoint.roles import role_of, shown

NAMES = {
    "main": ("cheap", "anthropic/claude-haiku-4-5-20251001"),
    "fast": ("openai/gpt-5", "openai/gpt-5"),
    "edit": ("editor", "openrouter/qwen/qwen-3-coder-mini"),
}


@pytest.mark.parametrize(
    "asked",
    [
        "cheap",
        "Cheap",
        "anthropic/claude-haiku-4-5-20251001",
        "claude-haiku-4-5-20251001",
        "claude-haiku-4-5",
        "claude-haiku-4-5-latest",
        "claude-haiku-4-5@20251001",
        "claude-haiku-4-5[1m]",
        "us.anything/claude-haiku-4-5",
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "bedrock/anthropic.claude-haiku-4-5-20251001-v1:0",
    ],
)
def test_the_main_models_own_name_is_the_main_model_whatever_is_in_it(asked: str) -> None:
    assert role_of(asked, NAMES) == "main"


@pytest.mark.parametrize(
    ("asked", "role"),
    [
        ("gpt-5", "fast"),
        ("gpt-5-2025-08-07", "fast"),
        ("qwen-3-coder-mini", "edit"),
        ("editor", "edit"),
        ("claude-3-5-haiku-20241022", "fast"),
        ("gpt-4o-mini", "fast"),
        ("gemini-2.5-flash-lite", "fast"),
        ("claude-sonnet-4", "main"),
        ("gpt-5.1", "main"),
        ("minimax-m2", "main"),
        ("", "main"),
    ],
)
def test_other_names(asked: str, role: str) -> None:
    assert role_of(asked, NAMES) == role


def test_a_name_of_two_roles_is_the_main_models() -> None:
    assert (
        role_of("gpt-5-mini", {"main": ("gpt-5-mini",), "fast": ("openai/gpt-5-mini",)}) == "main"
    )
    both = {"main": ("azure/gpt-5-mini",), "fast": ("openai/gpt-5-mini",)}
    assert role_of("openai/gpt-5-mini", both) == "fast"
    assert role_of("gpt-5-mini", both) == "main"


def test_each_model_is_shown_by_one_name() -> None:
    assert shown(NAMES) == ("cheap", "openai/gpt-5", "editor")
    assert shown({"main": ("", "m"), "fast": ()}) == ("m",)
