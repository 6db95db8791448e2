"""Plain and async agents, groups of exceptions, and breakpoints."""

from __future__ import annotations

import asyncio
import bdb
import shlex
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from pytest_mlab.core.agent_api import Agent, Environment
from pytest_mlab.core.plan import PlannedAgent, PlannedTask
from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import BudgetExhausted, ProviderError, TrialOver
from pytest_mlab.trial.agent_run import breakpoint_reason, run_agent
from tests.support.fake_environment import FakeEnvironment

OVER = TrialOver("over")
SPENT = BudgetExhausted("spent", limit="steps")
DOWN = ProviderError("down")


class Group(Exception):  # what task groups raise, which Python 3.10 does not have
    def __init__(self, *exceptions: BaseException) -> None:
        super().__init__("unhandled errors in a TaskGroup")
        self.exceptions = exceptions


def ended(run: Callable[[Any], object]) -> BaseException | None:
    """How an agent with this ``run`` ends."""
    kind = type("Agent", (), {"needs_model": False, "run": lambda self, env: run(env)})
    return run_agent(cast(Agent, kind()), cast(Environment, FakeEnvironment(cast(Any, None))))


def raising(error: BaseException) -> Callable[[Any], Awaitable[None]]:
    async def run(env: Any) -> None:
        await asyncio.sleep(0)
        raise error

    return run


def test_async_run_is_awaited() -> None:
    done: list[int] = []

    async def part(number: int) -> None:
        await asyncio.to_thread(done.append, number)

    async def run(env: Any) -> None:
        await asyncio.gather(part(1), part(2))
        done.append(3)

    assert ended(run) is None
    assert sorted(done[:2]) == [1, 2]
    assert done[2:] == [3]


def test_another_awaitable_than_a_coroutine_is_awaited() -> None:
    awaited = []

    class Waiting:
        def __await__(self) -> Any:
            awaited.append(True)
            return iter(())

    assert ended(lambda env: Waiting()) is None
    assert awaited


@pytest.mark.parametrize(
    ("raised", "kept"),
    [
        (DOWN, DOWN),
        (Group(OVER), OVER),
        (Group(Group(SPENT), SPENT), SPENT),
        (Group(OVER, DOWN), DOWN),
        (Group(DOWN, Group(SPENT)), DOWN),
    ],
)
def test_of_a_group_what_is_not_the_trials_end_counts(
    raised: BaseException, kept: BaseException
) -> None:
    assert ended(raising(raised)) is kept


def test_several_faults_stay_a_group() -> None:
    both = Group(DOWN, ValueError("mine"))
    assert ended(raising(both)) is both


def test_a_generator_is_not_taken_for_work_done() -> None:
    async def asks(env: Any) -> Any:
        yield env

    def gives(env: Any) -> Any:
        yield env

    for run in (asks, gives):
        assert "yield" in str(ended(run))


def test_a_breakpoint_says_how_to_debug() -> None:
    def run(env: Any) -> None:
        raise bdb.BdbQuit

    agent = PlannedAgent("careful", "my agents/careful.py:Careful", "0", True, {"tries": 2})
    task = PlannedTask("guess", "toy", "/suites/toy/guess", "0")
    reason = breakpoint_reason(ended(run), TrialId("guess", "careful", "m", 1), agent, task)
    assert "(test_agent_run.py:" in reason
    assert shlex.split(reason.partition(" to debug it: ")[2]) == [
        "pytest",
        "--mlab-agent=my agents/careful.py:Careful[tries=2]",
        "--mlab-model=m",
        "--mlab-suite=/suites/toy",
        "--mlab-task=guess",
        "--mlab-repeats=1",
        "-n",
        "0",
        "--mlab-debug",
    ]
    assert not breakpoint_reason(ValueError(), TrialId("guess", "careful", "m", 1), agent, task)
