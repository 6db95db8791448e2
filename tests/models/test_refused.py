"""Errors about parameters, in the words of many providers, and what is asked after them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, ModelRequest
from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.errors import AuthError, BadRequestError, ModelError, ProviderError
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.refused import Refusals, refused_parameter, without
from pytest_mlab.models.retry import Retry
from pytest_mlab.models.text_tools import TextTools
from pytest_mlab.store.shared import Shared
from tests.support import scripted_server as script
from tests.support.scripted_server import Reply, Request, ScriptedServer

SENT = (
    "temperature",
    "max_tokens",
    "stop",
    "tools",
    "tool_choice",
    "response_format",
    "parallel_tool_calls",
    "top_p",
    "top_k",
    "seed",
    "user",
    "reasoning_effort",
    "presence_penalty",
)

WORDS: list[tuple[str, str]] = [
    ("Unsupported parameter: 'stop' is not supported with this model.", "stop"),
    (
        "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default"
        " (1) value is supported.",
        "temperature",
    ),
    (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
        " 'max_completion_tokens' instead.",
        "max_tokens",
    ),
    ("Unrecognized request argument supplied: parallel_tool_calls", "parallel_tool_calls"),
    ("Unknown parameter: 'seed'.", "seed"),
    (
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported",
        "response_format",
    ),
    ("temperature: Extra inputs are not permitted", "temperature"),
    ("stop_sequences: Extra inputs are not permitted", "stop"),
    ("`temperature` is deprecated for this model.", "temperature"),
    (
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        "top_p",
    ),
    ("`temperature` may only be set to 1 when thinking is enabled.", "temperature"),
    ("`top_k` must be unset when thinking is enabled.", "top_k"),
    ("Thinking may not be enabled when tool_choice forces tool use.", "tool_choice"),
    ("This model does not support the effort parameter.", "reasoning_effort"),
    (
        "This model doesn't support the stopSequences field. Remove stopSequences and try again.",
        "stop",
    ),
    ("The model does not support topP", "top_p"),
    ("deepseek-reasoner does not support this tool_choice", "tool_choice"),
    ("Argument not supported on this model: stop", "stop"),
    ("Model grok-4 does not support parameter presencePenalty.", "presence_penalty"),
    ("property 'seed' is unsupported", "seed"),
    ("body.seed: Extra inputs are not permitted", "seed"),
    (
        "[{'type': 'extra_forbidden', 'loc': ('body', 'parallel_tool_calls'), 'msg': 'Extra inputs"
        " are not permitted', 'input': True}]",
        "parallel_tool_calls",
    ),
    (
        "groq does not support parameters: ['parallel_tool_calls'], for model=x",
        "parallel_tool_calls",
    ),
    ("No endpoints found that support the provided 'tool_choice' value.", "tool_choice"),
    ("Extra inputs are not permitted, field: 'top_p', value: 0.9", "top_p"),
    ("unknown field `user`", "user"),
    # faults of values, of the conversation, and of tools themselves
    ("Invalid 'temperature': must be at most 1", ""),
    ("'max_tokens' is too large: 64000. This model supports at most 4096 completion tokens", ""),
    ("Unknown role: the user must not stop", ""),
    ("This model does not support tools", ""),
    ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser', ""),
    ("messages.1.content.0.type: Expected `thinking`, but found `tool_use`", ""),
    ("No endpoints found that support tool use.", ""),
    ("Missing `reasoning_content` field in the assistant message at message index 1.", ""),
    ("Unexpected seed of thought; you may stop now", ""),
    ("the conversation is not supported: users stop", ""),
]


@pytest.mark.parametrize(("words", "parameter"), WORDS)
def test_the_parameter_that_an_error_refuses(words: str, parameter: str) -> None:
    error = BadRequestError(f"openai/my-model: the provider refused the request (400): {words}")
    assert refused_parameter(error, SENT) == parameter
    assert refused_parameter(error, set(SENT) - {parameter}) in ("", "temperature")


def test_other_kinds_of_errors_refuse_no_parameter() -> None:
    words = "Unsupported parameter: 'stop'"
    assert refused_parameter(ProviderError(words), SENT) == "stop"
    assert refused_parameter(AuthError(words), SENT) == ""


def test_the_limit_of_an_answer_goes_out_by_its_other_name() -> None:
    assert without({"max_tokens": 5, "stop": ["x"]}, {"max_tokens"}) == (
        {"max_completion_tokens": 5, "stop": ["x"]},
        "",
    )
    left, remark = without({"max_tokens": 5}, {"max_tokens", "max_completion_tokens"})
    assert left == {}
    assert "max_tokens was left out" in remark


# --- through litellm ---


def refusing(*parameters: str, words: str = "Unsupported parameter: '{}' is not supported") -> Any:
    """A server's script that refuses requests with one of the parameters."""

    def answer(request: Request) -> str | Reply:
        for parameter in parameters:
            if parameter in request.body:
                return script.bad_request(words.format(parameter), parameter)
        return "one\nObservation: two"

    return answer


def ask(**more: Any) -> ModelRequest:
    return ModelRequest("openai/my-model", (Message("user", "hello"),), **more)


def client(**more: Any) -> LitellmClient:
    return LitellmClient(Retry(attempts=1), **more)


def test_a_refused_parameter_is_left_out_and_remembered(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.restart(refusing("stop", "temperature", "max_tokens"))
    first = client(refusals=Refusals(Shared(tmp_path)))
    request = ask(stop=("Observation:",), temperature=0.5, max_tokens=9)
    reply = first.complete(request)
    assert reply.text == "one\n"
    assert reply.retries == 3
    assert "stop was left out" in reply.remark
    assert "temperature was left out" in reply.remark
    assert server.requests[-1].body["max_completion_tokens"] == 9
    assert len(server.requests) == 4

    # at once from then on, also by the run's other workers
    for later in (first, client(refusals=Refusals(Shared(tmp_path)))):
        again = later.complete(request)
        assert (again.retries, again.remark, again.text) == (0, reply.remark, "one\n")
    # and a new session tries it anew
    Shared(tmp_path).forgive()
    assert client(refusals=Refusals(Shared(tmp_path))).complete(request).retries == 3


@pytest.mark.parametrize("status", [400, 422])
def test_parallel_calls_are_excluded_here_where_the_provider_cannot(
    server: ScriptedServer, status: int
) -> None:
    def answer(request: Request) -> Reply:
        if "parallel_tool_calls" in request.body:
            error = {"message": "Unrecognized request argument supplied: parallel_tool_calls"}
            return Reply(kind="error", status=status, error=error)
        return script.call(("Look", {}), ("Look", {}))

    server.restart(answer)
    tools = (ActionSpec("Look", "It looks.", {"type": "object", "properties": {}}),)
    for excluded, calls in ((False, 1), (True, 2)):
        request = ask(tools=tools, extra={"parallel_tool_calls": excluded})
        reply = TextTools(client()).complete(request)
        assert len(reply.tool_calls) == calls
        assert "parallel_tool_calls was left out" in reply.remark


def test_a_server_that_refuses_everything_is_not_asked_for_ever(server: ScriptedServer) -> None:
    server.restart(
        lambda _: script.bad_request(
            "'max_tokens', 'max_completion_tokens', 'stop' and 'temperature' are not supported"
        )
    )
    with pytest.raises(BadRequestError, match="are not supported"):
        client().complete(ask(stop=("x",), temperature=0.5, max_tokens=9))
    assert len(server.requests) == 5


def test_a_refused_tool_choice_is_no_refusal_of_tools(server: ScriptedServer) -> None:
    server.restart(refusing("tool_choice", words="this model does not support this {}"))
    tools = (ActionSpec("Look", "It looks.", {"type": "object", "properties": {}}),)
    reply = TextTools(client()).complete(ask(tools=tools, must_call=True))
    assert "tools" in server.requests[-1].body
    assert "tool_choice was left out" in reply.remark
    assert not reply.fell_back


def test_what_the_user_chose_is_never_left_out(server: ScriptedServer) -> None:
    server.restart(refusing("temperature"))
    settings = ModelSettings("mine", "openai/my-model", params={"temperature": 0.5})
    with pytest.raises(BadRequestError) as caught:
        client(settings=lambda name: settings).complete(
            ModelRequest("mine", (Message("user", "hello"),))
        )
    assert "Unsupported parameter: 'temperature'" in str(caught.value)
    assert 'take temperature = 0.5 out of the settings of this model ([models."mine"]' in str(
        caught.value
    )
    assert len(server.requests) == 1


def test_a_schema_is_never_left_out_unless_the_user_says_so(server: ScriptedServer) -> None:
    server.restart(refusing("response_format"))
    request = ask(schema={"type": "object"})
    with pytest.raises(ModelError, match=r'additional_drop_params = \["response_format"\]'):
        client().complete(request)
    dropping = ModelSettings(
        "m", "openai/my-model", params={"additional_drop_params": ["response_format"]}
    )
    assert client(settings=lambda name: dropping).complete(request).text.startswith("one")
