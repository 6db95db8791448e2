"""The limiter of a run with a clock of the test's own: which requests wait, how long, and which are
refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import Message, ModelReply, ModelRequest
from pytest_mlab.core.routes import RouteLimits
from pytest_mlab.errors import (
    AuthError,
    ConfigError,
    ModelError,
    ProviderDownError,
    QuotaError,
    RateLimitError,
)
from pytest_mlab.models.limiter import RunLimiter, window_from
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.retry import Retry
from pytest_mlab.store.shared import Shared
from tests.support import scripted_server as script
from tests.support.scripted_server import ScriptedServer, say


@dataclass
class Clock:
    """Time that passes only by sleeping; both the wall's and the monotonic one."""

    now: float = 1000.0
    sleeps: list[float] = field(default_factory=list)
    during: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
        self.during()


@dataclass
class Bench:
    """Workers of one run: each has a limiter of its own, and they share the folder."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    charged: list[tuple[str, float | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def shared(self) -> Shared:
        return Shared(self.folder, self.clock)

    def limiter(self, rpm: int | None = None, tpm: int | None = None, **more: Any) -> RunLimiter:
        return RunLimiter(
            self.shared,
            self.shared.path,
            lambda name: RouteLimits(f"at {name}", rpm, tpm),
            lambda model, dollars: self.charged.append((model, dollars)),
            note=self.notes.append,
            sleep=self.clock.sleep,
            clock=self.clock,
            now=self.clock,
            random=lambda: 0.5,
            **more,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def ask(text: str = "hello there", model: str = "openai/m", **more: Any) -> ModelRequest:
    return ModelRequest(model, (Message("user", text),), **more)


def reply(tokens: int, cost: float | None = 0.5) -> ModelReply:
    return ModelReply("ok", "openai/m", Usage(tokens - 1, 1), cost, 1.0)


def test_nothing_waits_without_limits(bench: Bench) -> None:
    limiter = bench.limiter()
    assert [limiter.enter(ask()).waited for _ in range(50)] == [0.0] * 50
    assert bench.clock.sleeps == []
    assert list(bench.folder.iterdir()) == []


def test_every_answer_is_charged(bench: Bench) -> None:
    limiter = bench.limiter()
    limiter.enter(ask()).answered(reply(10))
    limiter.enter(ask()).answered(reply(10, None))
    limiter.enter(ask()).failed(ProviderDownError("gone"), None)
    assert bench.charged == [("openai/m", 0.5), ("openai/m", None)]


class TestAMinute:
    def test_workers_share_the_requests(self, bench: Bench) -> None:
        one, other = bench.limiter(rpm=2), bench.limiter(rpm=2)
        assert [one.enter(ask()).waited, other.enter(ask()).waited] == [0.0, 0.0]
        assert one.enter(ask()).waited == pytest.approx(60, abs=0.1)
        assert one.enter(ask(model="openai/other")).waited == 0.0

    def test_a_request_is_booked_with_what_is_expected_of_its_reply(self, bench: Bench) -> None:
        limiter = bench.limiter(tpm=2500)
        limiter.enter(ask("x"))
        assert limiter.enter(ask("x")).waited == 0.0  # 1000 and a little each
        assert limiter.enter(ask("x", max_tokens=200)).waited == 0.0
        assert limiter.enter(ask("x", max_tokens=400)).waited > 50

    def test_the_next_reply_is_expected_to_be_as_long_as_the_last(self, bench: Bench) -> None:
        limiter = bench.limiter(tpm=1100)
        limiter.enter(ask("x")).answered(reply(3))
        for _ in range(100):
            turn = limiter.enter(ask("x"))
            turn.answered(reply(3))
            assert turn.waited == 0.0

    def test_tools_are_a_part_of_a_request(self, bench: Bench) -> None:
        limiter = bench.limiter(tpm=3000)
        limiter.enter(ask("x", max_tokens=2000))
        schema = {
            "type": "object",
            "properties": {f"argument_{n}": {"type": "string"} for n in range(200)},
        }
        assert (
            limiter.enter(ask("x", max_tokens=1, tools=(ActionSpec("Do", "It.", schema),))).waited
            > 50
        )

    def test_a_failure_costs_its_request_and_its_prompt(self, bench: Bench) -> None:
        limiter = bench.limiter(rpm=3, tpm=1000)
        limiter.enter(ask("x", max_tokens=900)).failed(ProviderDownError("gone"), 1.0)
        assert limiter.enter(ask("x", max_tokens=900)).waited == 0.0
        assert limiter.enter(ask("x", max_tokens=60)).waited == 0.0
        assert limiter.enter(ask("x", max_tokens=1)).waited > 50

    def test_a_request_above_the_limit_goes_alone_and_is_noted(self, bench: Bench) -> None:
        limiter = bench.limiter(tpm=500)
        limiter.enter(ask("x", max_tokens=5))
        turn = limiter.enter(ask("x", max_tokens=5000))
        assert turn.waited == pytest.approx(60, abs=0.1)
        [note] = bench.notes
        assert "above the 500 of a minute: it goes alone" in note
        turn.answered(reply(4000))
        assert limiter.enter(ask("x", max_tokens=5)).waited > 50

    def test_a_wait_ends_with_the_requests_end(self, bench: Bench) -> None:
        limiter = bench.limiter(rpm=1)
        limiter.enter(ask())
        with pytest.raises(ProviderDownError, match="the trial's time was over") as caught:
            limiter.enter(ask(deadline=bench.clock.now + 7.5))
        assert caught.value.waited == 7.5
        assert limiter.enter(ask(deadline=bench.clock.now + 7.5, free_wait=60.0)).waited > 50

    def test_who_stands_in_line_is_behind_who_waits(self, bench: Bench) -> None:
        """A small request does not slip past a large one that waits for room."""
        waiting, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            waiting.set()
            go_on.wait(60)

        bench.limiter(tpm=100).enter(ask("x", max_tokens=50))
        slow = Clock(during=hold)
        large = replace(bench.limiter(tpm=100), sleep=slow.sleep, clock=slow, now=slow)
        thread = threading.Thread(target=large.enter, args=(ask("x", max_tokens=90),))
        thread.start()
        try:
            assert waiting.wait(60)
            behind = replace(bench.limiter(tpm=100), clock=Clock(0.0))
            with pytest.raises(ProviderDownError):
                behind.enter(ask("x", max_tokens=1, deadline=0.0))
        finally:
            go_on.set()
            thread.join()


def test_a_run_directory_of_an_earlier_version_goes_on(bench: Bench) -> None:
    """It has its counts in files of their own, and none in the shared file."""
    bench.shared.spend("a trial", "openai/m", 0.5)
    (bench.folder / "rates").mkdir()
    (bench.folder / "rates" / "at-openai-m.sqlite").write_bytes(b"the old counts")
    limiter = bench.limiter(rpm=1)
    assert limiter.enter(ask()).waited == 0.0
    assert limiter.enter(ask()).waited == pytest.approx(60, abs=0.1)
    assert bench.shared.spending().dollars == 0.5


class TestAProviderThatWantsToBeLeftAlone:
    def test_is_left_alone_by_all_workers(self, bench: Bench) -> None:
        bench.limiter().enter(ask()).failed(RateLimitError("slow down"), 20.0)
        turn = bench.limiter().enter(ask())
        assert 20.0 <= turn.waited <= 22.0
        assert bench.limiter().enter(ask()).waited == 0.0

    def test_is_not_asked_when_the_requests_end_comes_first(self, bench: Bench) -> None:
        bench.limiter().enter(ask()).failed(RateLimitError("slow down"), 20.0)
        with pytest.raises(ProviderDownError):
            bench.limiter().enter(ask(deadline=bench.clock.now + 5))
        assert bench.clock.now == 1005.0

    @pytest.mark.parametrize("error", [ProviderDownError("gone"), RateLimitError("for an hour")])
    def test_is_not_meant_by_other_failures(self, bench: Bench, error: ModelError) -> None:
        bench.limiter().enter(ask()).failed(
            error, None if isinstance(error, RateLimitError) else 9.0
        )
        assert bench.limiter().enter(ask()).waited == 0.0


class TestAKeyThatIsRefused:
    @pytest.mark.parametrize("error", [AuthError("no such key"), QuotaError("no money")])
    def test_is_refused_to_all_workers_without_asking(
        self, bench: Bench, error: ModelError
    ) -> None:
        bench.limiter().enter(ask()).failed(error, None)
        with pytest.raises(type(error), match=str(error)):
            bench.limiter(rpm=1).enter(ask())
        bench.limiter().enter(ask(model="openai/other"))

    def test_ends_the_waits_of_others(self, bench: Bench) -> None:
        limiter = bench.limiter(rpm=1)
        limiter.enter(ask())
        bench.clock.during = lambda: bench.shared.give_up("at openai/m", "AuthError", "no such key")
        with pytest.raises(AuthError, match="no such key") as caught:
            limiter.enter(ask())
        assert bench.clock.sleeps == [1.0]
        assert caught.value.waited == 1.0


class TestWithTheRealClient:
    def client(self, bench: Bench, limiter: RunLimiter, attempts: int = 4) -> LitellmClient:
        retry = Retry(attempts=attempts)
        return LitellmClient(
            retry, limiter=limiter, sleep=bench.clock.sleep, clock=bench.clock, random=lambda: 0.0
        )

    def test_repeated_attempts_are_requests_too(self, bench: Bench, server: ScriptedServer) -> None:
        server.restart([script.server_error(), script.drop(), say("at last")])
        reply = self.client(bench, bench.limiter(rpm=2)).complete(ask())
        assert (reply.text, reply.retries) == ("at last", 2)
        assert reply.waited == pytest.approx(
            60, abs=0.1
        )  # 1 s and 2 s between attempts, the rest at the limiter
        assert reply.waited == pytest.approx(bench.clock.now - 1000.0)

    def test_all_wait_as_long_as_one_was_told(self, bench: Bench, server: ScriptedServer) -> None:
        server.restart([script.rate_limited(retry_after=17), say("one"), say("two")])
        one, other = (self.client(bench, bench.limiter()) for _ in range(2))
        held: list[float] = []

        def sleep(seconds: float) -> None:
            held.append(bench.shared.held("at openai/m"))
            bench.clock.sleep(seconds)

        assert replace(one, sleep=sleep).complete(ask()).waited >= 17.0
        assert held == [pytest.approx(17.0)]  # for the others as well
        assert other.complete(ask()).waited == 0.0

    def test_the_first_refusal_is_the_last_request(
        self, bench: Bench, server: ScriptedServer
    ) -> None:
        server.restart(lambda _: script.unauthorized())
        for _ in range(3):
            with pytest.raises(AuthError, match="Incorrect API key"):
                self.client(bench, bench.limiter()).complete(ask())
        assert len(server.requests) == 1

    def test_a_request_that_is_forbidden_stops_no_other(
        self, bench: Bench, server: ScriptedServer
    ) -> None:
        server.restart([script.unauthorized(403), say("one")])
        with pytest.raises(AuthError):
            self.client(bench, bench.limiter()).complete(ask())
        assert self.client(bench, bench.limiter()).complete(ask()).text == "one"

    def test_free_waits_move_the_deadline(self, bench: Bench, server: ScriptedServer) -> None:
        server.restart([script.rate_limited(retry_after=17), say("one")])
        assert (
            self.client(bench, bench.limiter())
            .complete(ask(deadline=bench.clock.now + 5, free_wait=30.0))
            .waited
            >= 17
        )
        server.restart([script.rate_limited(retry_after=17), say("one")])
        with pytest.raises(RateLimitError):
            self.client(bench, bench.limiter()).complete(
                ask(deadline=bench.clock.now + 5, free_wait=10.0)
            )


def test_the_window_comes_from_the_environment() -> None:
    assert window_from({}) == 60.0
    assert window_from({"MLAB_MODEL_WINDOW": "0.5"}) == 0.5
    with pytest.raises(ConfigError, match="MLAB_MODEL_WINDOW='0'"):
        window_from({"MLAB_MODEL_WINDOW": "0"})
