"""Whole trials with a real model: it hardly ever says what an agent can use, so what counts is that
budgets hold, that tokens are the server's, and that a trial ends as the agent's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.model_settings import ModelSettings, TokenPrices
from pytest_mlab.core.trial import Outcome, TrialId, TrialResult
from pytest_mlab.store.events import ModelCall, StepDone
from pytest_mlab.trial.runner import TrialRunner
from tests.agents.scripts import CASES
from tests.real_model.conftest import KEY
from tests.real_model.test_real_calls import as_counted, counting
from tests.support.llama_server import CONTEXT, NAME, LlamaServer
from tests.support.project import Project
from tests.support.toy_run import make_run
from tests.support.toy_suite import write_toy_suite, write_toy_task

BUDGET = Budget(max_steps=4, max_seconds=1800.0, max_tokens=1_500, max_cost=1.0)
"""The toy task costs nothing, so that the model's tokens are what ends a trial."""

SMALL = ModelSettings(
    "small",
    f"openai/{NAME}",
    {"max_tokens": 24, "temperature": 0.8},
    tools="text",
    context=CONTEXT,
    prices=TokenPrices(prompt=1e-6, completion=2e-6, cached=1e-7),
)
INTERFACES = ("act", "tools", "tree", "langchain")
"""One agent for each way of asking a model: text with stop sequences, tools, a schema, and another
package's messages. The scripted server (tests/agents) has all agents hold their budgets."""

AGENTS = [case.name for case in CASES if case.name in INTERFACES and not case.missing]


class Arena:
    """One run of the agents on a task, and on one whose description is longer than the model's
    context."""

    def __init__(self, root: Path) -> None:
        write_toy_suite(root)
        task = write_toy_task(root / "task_suites" / "toy" / "endless")
        description = task / "description.md"
        description.write_text(
            description.read_text() + "\nMore is better. " * CONTEXT, encoding="utf-8"
        )
        self.root = root
        self.run = make_run(
            root,
            AGENTS,
            tasks=("guess", "endless"),
            model=SMALL.name,
            budget=BUDGET,
            models=(SMALL,),
        )
        self.runner = TrialRunner(self.run.path)

    def play(self, agent: str, task: str = "guess") -> tuple[TrialResult, list[ModelCall]]:
        """Run a trial; what it ended with, and its model calls."""
        trial = TrialId(task, agent, SMALL.name, 1)
        result = self.runner.run(trial)
        events = list(self.run.trial(trial).events())
        calls = [event for event in events if isinstance(event, ModelCall)]
        assert result.ledger.steps == len(
            [event for event in events if isinstance(event, StepDone)]
        )
        assert result.ledger.model_calls == len(calls)
        assert [
            file
            for file in self.root.rglob("*")
            if file.is_file() and KEY.encode() in file.read_bytes()
        ] == []
        return result, calls


@pytest.fixture(scope="module")
def arena(running_model: LlamaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("OPENAI_BASE_URL", running_model.base_url)
        found = Arena(tmp_path_factory.mktemp("arena"))
        with found.runner:
            yield found


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_holds_its_budget(agent: str, arena: Arena, model: LlamaServer) -> None:
    with counting(model) as counted:
        result, calls = arena.play(agent)
    assert result.outcome.is_agents, result.reason
    assert calls, result.reason
    ledger = result.ledger
    assert counted == [as_counted(ledger.usage)]
    assert ledger.steps <= BUDGET.max_steps
    assert [call.error for call in calls if call.error] == []
    assert all(call.usage.completion_tokens <= 24 for call in calls)
    assert ledger.usage.total - calls[-1].usage.total < (BUDGET.max_tokens or 0)
    prompt, cached, completion = (
        ledger.usage.prompt_tokens,
        ledger.usage.cached_tokens,
        ledger.usage.completion_tokens,
    )
    assert ledger.unpriced_calls == 0
    assert ledger.cost == pytest.approx(
        (prompt - cached) * 1e-6 + cached * 1e-7 + completion * 2e-6
    )


def test_a_task_that_does_not_fit_the_context(arena: Arena, model: LlamaServer) -> None:
    with counting(model) as counted:
        result, calls = arena.play("act", "endless")
    assert (result.outcome, result.ledger.usage.total) == (Outcome.AGENT_ERROR, 0)
    assert (
        "ContextWindowError: small: the prompt does not fit the model's context window"
        in result.reason
    )
    assert {call.error.partition(":")[0] for call in calls} == {"ContextWindowError"}
    assert as_counted(result.ledger.usage) == counted[0]


def test_a_run_by_alias(
    pytester: pytest.Pytester,
    model: LlamaServer,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = Project.create(pytester, tmp_path_factory.mktemp("cache"), monkeypatch)
    monkeypatch.setenv("SMALL_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL")
    (project.path / "mlab-models.toml").write_text(
        f'[models.small]\nmodel = "openai/{NAME}"\nbase_url = "{model.base_url}"\napi_key_env ='
        f' "SMALL_API_KEY"\ncontext = {CONTEXT}\nmax_tokens = 500\ninput_cost_per_token ='
        " 1e-6\noutput_cost_per_token = 2e-6\n",
        encoding="utf-8",
    )
    options = [
        "--mlab-agent=act",
        "--mlab-model=small",
        "--mlab-model-arg=max_tokens=16",
        "--mlab-max-cost=0.002",
    ]
    with counting(model) as counted:
        done = project.spawn(*options, "--mlab-max-time=30m", "--mlab-gate=none")
    assert done.ret == 0, done.outlines
    result = project.result("guess/act--small/1")
    assert result["ended_by"] in ("cost", "returned", "steps"), result["reason"]
    ledger = result["ledger"]
    usage = ledger["usage"]
    assert usage["completion_tokens"] == counted[0].completion <= 16 * ledger["model_calls"]
    assert ledger["cost"] == pytest.approx(
        usage["prompt_tokens"] * 1e-6 + usage["completion_tokens"] * 2e-6
    )
