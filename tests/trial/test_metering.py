"""What a metered model charges, writes and refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.core.model_api import Message, ModelFacts, ModelReply, ModelRequest, ToolCall
from pytest_mlab.core.plan import Models
from pytest_mlab.errors import BudgetExhausted, ConfigError, ProviderDownError
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.events import ModelCall
from pytest_mlab.store.journal import Journal, read_events
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.metering import MeteredModel

SECRET = "sk-secret-secret"


class FakeClient:
    """Answers with fixed usage and cost, or raises; remembers the requests."""

    def __init__(self, cost: float | None = 0.5, error: Exception | None = None) -> None:
        self.cost = cost
        self.error = error
        self.requests: list[ModelRequest] = []
        self.remark = ""
        self.reasoning: tuple[dict[str, str], ...] = ()
        self.during: Callable[[], None] = lambda: None

    def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        self.during()
        if self.error is not None:
            raise self.error
        calls = (ToolCall("1", tool.name, SECRET) for tool in request.tools)
        return ModelReply(
            "fine " + SECRET,
            request.model,
            Usage(30, 10, 5, 2),
            self.cost,
            1.5,
            2,
            0.7,
            "stop",
            tuple(calls),
            remark=self.remark,
            reasoning=self.reasoning,
            fell_back=bool(self.remark),
        )

    def facts(self, model: str) -> ModelFacts:
        return ModelFacts(model, native_tools=True, context=1000)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A metered model with everything it writes to."""

    def __init__(self, folder: Path) -> None:
        self.client = FakeClient()
        self.clock = Clock()
        self.journal = Journal(folder / "trace.jsonl")
        self.store = ContentStore(folder / "store")
        self.account = Account(Budget(max_seconds=math.inf), clock=self.clock)
        self.models = Models("big")

    def budget(self, **limits: float) -> None:
        self.account = Account(Budget(**{"max_seconds": math.inf, **limits}), clock=self.clock)  # type: ignore[arg-type]

    @property
    def model(self) -> MeteredModel:
        hide: Callable[[str], str] = lambda text: text.replace(SECRET, "[KEY]")  # noqa: E731
        return MeteredModel(
            self.client, self.models, self.account, self.journal, self.store, hide, lambda: 7.0
        )

    @property
    def calls(self) -> list[ModelCall]:
        return [event for event in read_events(self.journal.path) if isinstance(event, ModelCall)]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    with bench.journal:
        yield bench


def test_a_call_is_charged_and_written(bench: Bench) -> None:
    reply = bench.model.complete("hello", temperature=0.5, max_tokens=9, stop=["x"])
    assert reply.text.startswith("fine")
    [request] = bench.client.requests
    assert request == ModelRequest("big", (Message("user", "hello"),), 0.5, 9, ("x",))
    assert bench.account.ledger == Ledger(
        usage=Usage(30, 10, 5, 2), cost=0.5, model_calls=1, waited=0.7
    )
    [call] = bench.calls
    assert (call.t, call.role, call.model, call.error, call.finish_reason) == (
        7.0,
        "main",
        "big",
        "",
        "stop",
    )
    assert (call.usage, call.cost, call.seconds, call.waited, call.retries) == (
        reply.usage,
        0.5,
        1.5,
        0.7,
        2,
    )
    assert call.ledger == bench.account.ledger


def test_prompt_and_reply_are_blobs_without_secrets(bench: Bench) -> None:
    bench.model.complete(
        [Message("system", f"key {SECRET}"), Message("user", "hello")], temperature=0.5
    )
    [call] = bench.calls
    prompt = json.loads(bench.store.read_bytes(call.prompt))
    assert prompt["messages"] == [
        {"role": "system", "content": "key [KEY]"},
        {"role": "user", "content": "hello"},
    ]
    assert prompt["temperature"] == 0.5
    assert bench.store.read_bytes(call.reply) == b"fine [KEY]"


def test_what_was_done_otherwise_than_asked_is_written(bench: Bench) -> None:
    bench.client.remark = f"tools were refused with {SECRET}"
    bench.model.complete("hello")
    assert [call.remark for call in bench.calls] == ["tools were refused with [KEY]"]
    assert [call.fell_back for call in bench.calls] == [True]


def test_reasoning_is_written_without_secrets_and_sent_as_it_is(bench: Bench) -> None:
    block = {"type": "thinking", "thinking": f"the key is {SECRET}", "signature": SECRET}
    bench.client.reasoning = (block,)
    assert bench.model.complete("hello").reasoning == (block,)
    bench.model.complete([Message("assistant", "", reasoning=(block,))])
    assert bench.client.requests[-1].messages[0].reasoning == (block,)
    first, second = bench.calls
    hidden = {**block, "thinking": "the key is [KEY]", "signature": "[KEY]"}
    assert json.loads(bench.store.read_bytes(first.reasoning)) == [hidden]
    prompt = json.loads(bench.store.read_bytes(second.prompt))
    assert prompt["messages"][0]["reasoning"] == [hidden]


@pytest.mark.parametrize(
    ("models", "names"),
    [
        (Models("m"), ["m", "m", "m"]),
        (Models("m", "e", "f"), ["m", "e", "f"]),
        (Models("m", fast="f"), ["m", "m", "f"]),
    ],
)
def test_roles(bench: Bench, models: Models, names: list[str]) -> None:
    bench.models = models
    for role in ("main", "edit", "fast"):
        bench.model.complete("x", role=role)
    assert [request.model for request in bench.client.requests] == names
    assert [call.role for call in bench.calls] == ["main", "edit", "fast"]


def test_without_a_model(bench: Bench) -> None:
    bench.models = Models()
    with pytest.raises(ConfigError, match="--mlab-model"):
        bench.model.complete("x")


def test_an_unknown_price_stays_unknown(bench: Bench) -> None:
    bench.client.cost = None
    bench.model.complete("x")
    assert bench.account.ledger.known_cost is None
    assert bench.calls[0].cost is None


class TestLimits:
    @pytest.mark.parametrize(
        ("name", "value", "limit"), [("max_tokens", 40, "tokens"), ("max_cost", 0.5, "cost")]
    )
    def test_the_call_that_reaches_one_is_charged_and_the_last(
        self, bench: Bench, name: str, value: float, limit: str
    ) -> None:
        bench.budget(**{name: value})
        for _ in range(2):
            with pytest.raises(BudgetExhausted) as caught:
                bench.model.complete("x")
            assert caught.value.limit == limit
        assert len(bench.client.requests) == len(bench.calls) == 1
        assert bench.account.ledger.usage.total == 40

    def test_time_over_before_a_call(self, bench: Bench) -> None:
        bench.budget(max_seconds=10)
        bench.clock.now = 10
        with pytest.raises(BudgetExhausted) as caught:
            bench.model.complete("x")
        assert caught.value.limit == "seconds"
        assert bench.client.requests == []

    def test_a_call_cut_short_by_the_end_of_time_is_no_provider_failure(self, bench: Bench) -> None:
        bench.budget(max_seconds=10)
        bench.client.error = ProviderDownError("timed out")
        bench.client.during = lambda: setattr(bench.clock, "now", 10)
        with pytest.raises(BudgetExhausted):
            bench.model.complete("x")
        assert bench.calls[0].error == "ProviderDownError: timed out"

    @pytest.mark.parametrize(("left", "error"), [(0.1, BudgetExhausted), (1.0, ProviderDownError)])
    def test_a_timeout_just_before_the_end_of_time_is_the_trials(
        self, bench: Bench, left: float, error: type[Exception]
    ) -> None:
        bench.budget(max_seconds=100.0)
        bench.client.error = ProviderDownError("timed out")
        bench.client.during = lambda: setattr(bench.clock, "now", 100.0 - left)
        with pytest.raises(error):
            bench.model.complete("hello")

    def test_used_up_steps_stop_the_agent_but_not_the_last_step_s_own_calls(
        self, bench: Bench
    ) -> None:
        bench.budget(max_steps=1)
        bench.account.charge_step()
        assert bench.model.complete("x", role="edit").model == "big"
        assert bench.model.complete("x", role="fast").model == "big"
        with pytest.raises(BudgetExhausted) as caught:
            bench.model.complete("x")
        assert caught.value.limit == "steps"

    def test_the_deadline_is_the_trial_s_end(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("time.monotonic", lambda: 1000.0)
        bench.budget(max_seconds=60)
        bench.clock.now = 20
        bench.model.complete("x")
        assert bench.client.requests[0].deadline == 1040.0

    def test_no_deadline_without_a_limit(self, bench: Bench) -> None:
        bench.model.complete("x")
        assert bench.client.requests[0].deadline is None


def test_a_failed_call_is_written_and_passed_on(bench: Bench) -> None:
    error = ProviderDownError(f"500 {SECRET}")
    error.retries, error.waited = 3, 4.5
    bench.client.error = error
    with pytest.raises(ProviderDownError):
        bench.model.complete("x")
    [call] = bench.calls
    assert call.error == "ProviderDownError: 500 [KEY]"
    assert (call.retries, call.waited, call.reply, call.usage) == (3, 4.5, "", Usage())
    assert bench.account.ledger.model_calls == 1
    assert bench.account.ledger.known_cost == 0.0


def test_tool_calls_are_written_without_secrets(bench: Bench) -> None:
    tool = ActionSpec("List Files", "lists", {"type": "object", "properties": {}})
    asked = Message("assistant", "", (ToolCall("0", "List Files", "{}"),))
    reply = bench.model.complete(
        [Message("user", "go"), asked, Message("tool", "a.py", (), "0")], tools=[tool]
    )
    assert reply.tool_calls == (ToolCall("1", "List Files", SECRET),)
    [call] = bench.calls
    assert call.tool_calls == [{"name": "List Files", "arguments": "[KEY]"}]
    prompt = json.loads(bench.store.read_bytes(call.prompt))
    assert prompt["tools"] == ["List Files"]
    assert prompt["messages"][1]["tool_calls"] == [
        {"id": "0", "name": "List Files", "arguments": "{}"}
    ]
    assert prompt["messages"][2]["tool_call_id"] == "0"


def test_what_is_known_of_the_model_of_a_role(bench: Bench) -> None:
    bench.models = Models("m", fast="f")
    assert bench.model.facts("fast") == ModelFacts("f", native_tools=True, context=1000)
