"""What models take, by litellm's list."""

from __future__ import annotations

from pytest_mlab.models.takes import Takes, takes


def test_models() -> None:
    claude = takes("anthropic/claude-sonnet-4-5")
    assert {"image_url", "file"} <= claude.media
    assert (claude.marks, claude.mark_of_all, claude.thinking) == (True, True, True)
    assert claude.media_in_results

    seeing, blind = takes("openai/gpt-4o"), takes("openai/small")
    assert "image_url" in seeing.media
    assert not blind.media
    assert (seeing.media_in_results, seeing.marks, seeing.thinking) == (False, False, False)

    assert takes("bedrock/anthropic.claude-3-7-sonnet-20250219-v1:0").marks
    assert takes("openrouter/anthropic/claude-sonnet-4").marks
    assert not takes("deepseek/deepseek-reasoner").marks
    assert takes("deepseek/deepseek-reasoner").thinking


def test_a_model_that_litellm_does_not_know_takes_text() -> None:
    assert takes("no-such-model-of-nobody") == Takes()
