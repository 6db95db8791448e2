"""How long an answer may be, and what is said when a provider finds it too long."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, ModelFacts, ModelRequest, ToolCall
from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.errors import BadRequestError, ContextWindowError, ModelError
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.retry import Retry
from pytest_mlab.models.room import LEAST, advice, limited
from pytest_mlab.models.tokens import prompt_tokens
from tests.support import scripted_server as script
from tests.support.scripted_server import ScriptedServer

SMALL = ModelFacts("m", native_tools=True, context=32_768)


def ask(text: str = "hello", **more: Any) -> ModelRequest:
    return ModelRequest("small", (Message("user", text),), **more)


def test_an_answer_fits_beside_the_prompt() -> None:
    for words in (1, 1_000, 20_000):
        request = ask("word " * words)
        most, remark = limited(64_000, request, SMALL)
        assert most + prompt_tokens(request.messages, ()) <= 32_768
        assert most >= 32_768 - 1.5 * (words + 100)
        assert f"max_tokens was lowered from 64000 to {most}" in remark
        assert "context of 32768" in remark


def test_all_that_is_sent_counts() -> None:
    long = "word " * 10_000
    schema = {"type": "object", "properties": {"x": {"type": "string", "description": long}}}
    requests = [
        ask(tools=(ActionSpec("Do", "It.", schema),)),
        ModelRequest("m", (Message("assistant", "", (ToolCall("1", "Do", long),)),)),
        ModelRequest("m", (Message("assistant", "", reasoning=({"thinking": long},)),)),
        ModelRequest("m", (Message("user", "", blocks=({"type": "image_url"},) * 8),)),
    ]
    for request in requests:
        most, remark = limited(32_000, request, SMALL)
        assert most < 23_000
        assert remark


@pytest.mark.parametrize(
    ("asked", "context", "max_output"),
    [(500, 32_768, None), (500, None, None), (500, None, 4_096), (4_096, 200_000, 4_096)],
)
def test_an_answer_with_room_stays_as_it_was_asked_for(
    asked: int, context: int | None, max_output: int | None
) -> None:
    assert limited(asked, ask(), ModelFacts("m", True, context, max_output)) == (asked, "")


def test_a_prompt_without_room_is_the_provider_s_to_refuse() -> None:
    assert limited(64_000, ask("word " * 40_000), SMALL)[0] == LEAST


def test_the_list_does_not_bind_a_user_s_own_limit() -> None:
    facts = ModelFacts("m", True, 32_768, 4_096)
    assert limited(8_000, ask(), facts)[0] == 4_096
    assert limited(8_000, ask(), facts, own=True) == (8_000, "")
    assert limited(64_000, ask(), facts, own=True)[0] < 32_768


WORDS: list[tuple[str, str]] = [
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 64000. This model's maximum context"
        " length is 32768 tokens and your request has 10 input tokens.",
        "context = 32768",
    ),
    (
        "This model's maximum context length is 8192 tokens. However, you requested 64010 tokens"
        " (10 in the messages, 64000 in the completion). Please reduce the length.",
        "context = 8192",
    ),
    ("max_tokens=64000 cannot be greater than max_model_len=32768.", "context = 32768"),
    (
        "input length and `max_tokens` exceed context limit: 1882 + 64000 > 50000, decrease input"
        " length or `max_tokens` and try again",
        "context = 50000",
    ),
    (
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 10 `inputs` tokens",
        "context = 4096",
    ),
    (
        "max_tokens is too large: 64000. This model supports at most 4,096 completion",
        "max_tokens = 4096",
    ),
    (
        "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for m",
        "max_tokens = 8192",
    ),
    ("`max_tokens` must be less than or equal to `8192`, the maximum value", "max_tokens = 8192"),
    ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "max_tokens = 8192"),
    (
        "it has a maxOutputTokens value of 64000 but the supported range is from 1 (inclusive) to"
        " 8193 (exclusive).",
        "max_tokens = 8192",
    ),
    ("The maximum tokens you requested exceeds the model limit of 4096.", "max_tokens = 4096"),
    ("Invalid value: 'oracle'.", ""),
    ("prompt is too long: 210000 tokens > 200000 maximum", ""),
]


@pytest.mark.parametrize(("words", "setting"), WORDS)
def test_the_setting_that_helps_is_named(words: str, setting: str) -> None:
    unknown = ModelFacts("m", True, None)
    found = advice(words, ask(), {"max_tokens": 64_000}, unknown)
    assert setting in found
    assert bool(found) == bool(setting)
    assert not found or 'under [models."small"] in mlab-models.toml' in found
    assert advice(words, ask(), {}, unknown) == ""  # no length was asked for


def test_a_prompt_that_does_not_fit_is_no_matter_of_the_answer() -> None:
    assert advice(WORDS[0][0], ask("word " * 40_000), {"max_tokens": 64_000}, SMALL) == ""


def test_where_the_context_is_known_a_shorter_answer_is_advised() -> None:
    found = advice(WORDS[0][0], ask(), {"max_tokens": 31_000}, SMALL)
    assert "max_tokens = 16384" in found


# --- through litellm ---


def _complete(server: ScriptedServer, asked: int, context: int | None, text: str = "hello") -> Any:
    """The reply of a server like vLLM's, with a context of 32,768 tokens."""

    def answer(request: script.Request) -> script.Entry:
        length = request.body["max_tokens"]
        if length + len(request.prompt.split()) > 32_768:
            return script.bad_request(
                f"'max_tokens' or 'max_completion_tokens' is too large: {length}. This model's"
                " maximum context length is 32768 tokens and your request has 10 input tokens.",
                "max_tokens",
            )
        return "fine"

    server.restart(answer)
    settings = ModelSettings("small", "openai/small", context=context)
    client = LitellmClient(Retry(attempts=1), settings=lambda name: settings)
    return client.complete(ask(text, max_tokens=asked))


def test_an_alias_that_states_its_context_gets_no_longer_answer(server: ScriptedServer) -> None:
    reply = _complete(server, 64_000, 32_768)
    assert reply.text == "fine"
    assert "max_tokens was lowered" in reply.remark
    assert server.requests[0].body["max_tokens"] < 32_768


def test_without_one_the_message_says_what_to_state(server: ScriptedServer) -> None:
    with pytest.raises(ModelError) as caught:
        _complete(server, 64_000, None)
    assert type(caught.value) is BadRequestError
    assert "the answer that was asked for does not fit: 'max_tokens' or" in str(caught.value)
    assert 'write context = 32768 under [models."small"] in mlab-models.toml' in str(caught.value)
    # a prompt that is too long by itself stays one
    with pytest.raises(ContextWindowError, match="the prompt does not fit"):
        _complete(server, 64_000, None, "word " * 40_000)
