"""The client against a real HTTP server through the real litellm: replies, usage, cost, faults,
retries, secrets."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import Message, ModelRequest
from pytest_mlab.errors import (
    AuthError,
    BadRequestError,
    ContextWindowError,
    ModelError,
    ProviderDownError,
    ProviderError,
    QuotaError,
    RateLimitError,
)
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.retry import Retry
from tests.models.conftest import KEY
from tests.support import scripted_server as script
from tests.support.scripted_server import ScriptedServer, say


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sleeps: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(clock: Clock) -> LitellmClient:
    return LitellmClient(Retry(attempts=4), sleep=clock.sleep, clock=clock, random=lambda: 0.0)


def ask(text: str = "hello there", model: str = "openai/my-model", **more: Any) -> ModelRequest:
    return ModelRequest(model, (Message("user", text),), **more)


def test_a_reply_with_its_usage(server: ScriptedServer, client: LitellmClient) -> None:
    server.restart([say("fine, thanks", cached=1, reasoning=3)])
    reply = client.complete(ask())
    assert (reply.text, reply.model, reply.finish_reason) == (
        "fine, thanks",
        "openai/my-model",
        "stop",
    )
    assert reply.usage == Usage(2, 5, 1, 3) == server.usage
    assert (reply.retries, reply.waited) == (0, 0.0)


def test_the_request_arrives_as_asked(server: ScriptedServer, client: LitellmClient) -> None:
    server.restart(["ok"])
    messages = (Message("system", "be brief"), Message("user", "hi"))
    client.complete(ModelRequest("openai/my-model", messages, 0.5, 7, ("Observation:",)))
    body = server.requests[0].body
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
    ]
    assert (body["temperature"], body["max_tokens"], body["stop"]) == (0.5, 7, ["Observation:"])
    assert server.requests[0].key == KEY


def test_the_reply_ends_before_a_stop_sequence_that_the_model_ignored(
    server: ScriptedServer, client: LitellmClient
) -> None:
    server.restart(["Action: x\nObservation: made up"])
    assert client.complete(ask(stop=("Observation:",))).text == "Action: x\n"


def test_parameters_that_a_model_does_not_know_are_left_out(
    server: ScriptedServer, client: LitellmClient
) -> None:
    server.restart(["ok"])
    reply = client.complete(ask(model="openai/gpt-5", temperature=0.5, stop=("x",), max_tokens=9))
    assert reply.text == "ok"
    for parameter in ("stop", "temperature"):
        assert f"{parameter} was left out, since the model does not take it" in reply.remark
    body = server.requests[0].body
    assert "temperature" not in body
    assert "stop" not in body
    assert body["max_completion_tokens"] == 9


@pytest.mark.parametrize(
    ("entry", "text"),
    [(script.empty(), ""), (script.empty(None), ""), (script.refusal("no way"), "no way")],
    ids=["empty", "null", "refusal"],
)
def test_replies_without_ordinary_text(
    server: ScriptedServer, client: LitellmClient, entry: script.Reply, text: str
) -> None:
    server.restart([entry])
    reply = client.complete(ask())
    assert reply.text == text
    assert reply.usage == server.usage


class TestCost:
    def test_of_a_listed_model(self, server: ScriptedServer, client: LitellmClient) -> None:
        server.restart(["ok"])
        assert client.complete(ask(model="gpt-4-turbo")).cost == pytest.approx(
            2 * 10e-6 + 1 * 30e-6
        )

    def test_of_cached_tokens_is_lower(self, server: ScriptedServer, client: LitellmClient) -> None:
        server.restart(["ok", say("ok", cached=2)])
        full, cached = (client.complete(ask(model="openai/gpt-5")).cost for _ in range(2))
        assert full is not None
        assert cached is not None
        assert 0 < cached < full

    def test_of_an_unknown_model_is_unknown(
        self, server: ScriptedServer, client: LitellmClient
    ) -> None:
        server.restart(["ok"])
        assert client.complete(ask()).cost is None

    def test_without_usage_tokens_are_counted_here(
        self, server: ScriptedServer, client: LitellmClient
    ) -> None:
        server.restart([say("one two three", usage=False)])
        reply = client.complete(ask(model="gpt-4-turbo"))
        assert reply.usage == Usage(10, 3)
        assert "reports no usage" in reply.remark
        assert reply.cost == pytest.approx(10 * 10e-6 + 3 * 30e-6)


FAULTS: list[tuple[str, script.Reply, type[ModelError], int]] = [
    ("401", script.unauthorized(), AuthError, 1),
    ("403", script.unauthorized(403), AuthError, 1),
    ("429", script.rate_limited(), RateLimitError, 4),
    ("quota", script.out_of_quota(), QuotaError, 1),
    ("500", script.server_error(), ProviderDownError, 4),
    ("502", script.server_error(502), ProviderDownError, 4),
    ("503", script.server_error(503), ProviderDownError, 4),
    ("529", script.server_error(529), ProviderDownError, 4),
    ("drop", script.drop(), ProviderDownError, 4),
    ("malformed", script.malformed(), ProviderDownError, 4),
    ("no choices", script.Reply(kind="raw", raw=b"{}"), ProviderDownError, 4),
    ("context", script.context_length(), ContextWindowError, 1),
    ("400", script.bad_request(), BadRequestError, 1),
    (
        "404",
        script.Reply(kind="error", status=404, error={"message": "no such model"}),
        ProviderError,
        1,
    ),
    ("402", script.Reply(kind="error", status=402, error={"message": "pay first"}), QuotaError, 1),
]


@pytest.mark.parametrize(
    ("entry", "kind", "attempts"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS]
)
def test_faults_are_typed_and_only_passing_ones_repeated(
    server: ScriptedServer,
    client: LitellmClient,
    entry: script.Reply,
    kind: type[ModelError],
    attempts: int,
) -> None:
    server.restart(lambda _: entry)
    with pytest.raises(ModelError, match="openai/my-model") as caught:
        client.complete(ask())
    assert type(caught.value) is kind
    assert len(server.requests) == attempts
    assert caught.value.retries == attempts - 1


def test_a_server_that_hangs_is_down(server: ScriptedServer, client: LitellmClient) -> None:
    server.restart(lambda _: script.hang())
    with pytest.raises(ProviderDownError, match="timed out"):
        replace(client, retry=Retry(attempts=1)).complete(ask(timeout=0.05))
    with pytest.raises(ProviderDownError, match="timed out"):
        replace(client, retry=Retry(attempts=2, timeout=0.05)).complete(ask())
    assert len(server.requests) == 3


def test_nobody_listens(
    monkeypatch: pytest.MonkeyPatch, client: LitellmClient, server: ScriptedServer
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ProviderDownError, match="Connection refused"):
        client.complete(ask())


def test_no_key_at_all(
    monkeypatch: pytest.MonkeyPatch, client: LitellmClient, server: ScriptedServer
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(AuthError, match="OPENAI_API_KEY"):
        client.complete(ask(model="openai/model-without-key"))
    assert server.requests == []


class TestRetries:
    def test_until_an_answer_comes(
        self, server: ScriptedServer, client: LitellmClient, clock: Clock
    ) -> None:
        server.restart([script.server_error(), script.drop(), "at last"])
        reply = client.complete(ask())
        assert (reply.text, reply.retries) == ("at last", 2)
        assert clock.sleeps == [1.0, 2.0]
        assert (reply.waited, reply.seconds) == (3.0, 3.0)

    def test_wait_as_long_as_the_provider_asks(
        self, server: ScriptedServer, client: LitellmClient, clock: Clock
    ) -> None:
        server.restart([script.rate_limited(retry_after=17), "ok"])
        assert client.complete(ask()).waited == 17.0
        assert clock.sleeps == [17.0]

    def test_do_not_wait_for_hours(
        self, server: ScriptedServer, client: LitellmClient, clock: Clock
    ) -> None:
        server.restart([script.rate_limited(retry_after=7200), "ok"])
        with pytest.raises(RateLimitError):
            client.complete(ask())
        assert clock.sleeps == []

    def test_never_wait_past_the_deadline(
        self, server: ScriptedServer, client: LitellmClient, clock: Clock
    ) -> None:
        server.restart(lambda _: script.server_error())
        with pytest.raises(ProviderDownError):
            client.complete(ask(deadline=clock.now + 2.5))
        assert clock.sleeps == [1.0]
        assert len(server.requests) == 2

    def test_the_deadline_bounds_an_attempt(
        self, server: ScriptedServer, client: LitellmClient, clock: Clock
    ) -> None:
        server.restart(lambda _: script.hang())
        with pytest.raises(ProviderDownError, match="timed out"):
            client.complete(ask(deadline=clock.now + 0.05))
        assert len(server.requests) == 1

    def test_nothing_is_asked_after_the_deadline(
        self, server: ScriptedServer, client: LitellmClient, clock: Clock
    ) -> None:
        server.restart(["never given"])
        with pytest.raises(ProviderDownError, match="time is over"):
            client.complete(ask(deadline=clock.now))
        assert server.requests == []


def test_no_message_holds_the_key(server: ScriptedServer, client: LitellmClient) -> None:
    server.restart([script.unauthorized(echo=KEY)])
    with pytest.raises(AuthError) as caught:
        client.complete(ask())
    assert "Incorrect API key" in str(caught.value)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_key_that_looks_like_a_word_is_hidden_too(
    server: ScriptedServer, client: LitellmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "swordfish")
    server.restart([script.unauthorized(echo="swordfish")])
    with pytest.raises(AuthError, match=r"provided: \[OPENAI_API_KEY\]"):
        client.complete(ask())


def test_a_given_redaction_is_used(server: ScriptedServer, client: LitellmClient) -> None:
    server.restart([script.bad_request("the word is swordfish")])
    with pytest.raises(BadRequestError, match=r"the word is \*{3}"):
        replace(client, redact=lambda text: text.replace("swordfish", "***")).complete(ask())


def test_litellm_prints_and_logs_nothing(
    server: ScriptedServer,
    client: LitellmClient,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.restart([script.unauthorized(), "ok"])
    with pytest.raises(AuthError):
        client.complete(ask())
    client.complete(ask())
    with pytest.raises(BadRequestError):
        client.complete(ask(model="no-such-provider/x"))
    assert capfd.readouterr() == ("", "")
    assert [record for record in caplog.records if record.name.startswith("LiteLLM")] == []


def test_importing_the_client_does_not_import_litellm() -> None:
    code = (
        "import sys, pytest_mlab.models.litellm_client, pytest_mlab.models.names;"
        "print([m for m in ('litellm', 'openai', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
