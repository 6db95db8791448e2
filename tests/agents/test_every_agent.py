"""Every built-in agent in whole trials against the scripted server: fork server, sandbox, trace,
evaluation.

What holds for one holds for all: a well-formed trace, a budget held exactly, tokens as the server
counted them, no key in any file; and faults of the provider end a trial as what they are. To add an
agent, add a case to scripts.py."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mlab.agentfiles.loader import builtin_agents
from pytest_mlab.core.budget import Budget
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.store.events import (
    AgentEnded,
    Event,
    ModelCall,
    StepDone,
    TrialFinished,
    TrialStarted,
)
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.trial.runner import TrialRunner
from tests.agents.scripts import CASES, EDIT, ELSEWHERE, FAST, LIST, MAIN, RUN, SUBMIT, Case
from tests.support import scripted_server as script
from tests.support.scripted_server import Entry, Request, ScriptedServer
from tests.support.toy_run import make_run
from tests.support.toy_suite import write_toy_suite

ROOT = Path(__file__).parents[2]
KEY = "sk-not-a-real-key-0123456789"
STEPS = 5
BOUND = 150
"""Model calls of a trial of five steps at most, whatever the model says."""

REAL = "spaceship-titanic"
SCENARIOS = ("good", "fenced", "long", "garbage", "overflow", "flood", "dropping", "unauthorized")


class Arena:
    """One run: every agent, on a copy of the toy task for each scenario and on a real task."""

    def __init__(self, root: Path, server: ScriptedServer) -> None:
        write_toy_suite(root, tasks=SCENARIOS)
        shutil.copytree(
            ROOT / "task_suites" / "mlagentbench" / REAL, root / "task_suites" / "toy" / REAL
        )
        present = [case for case in CASES if not case.missing]
        run = make_run(
            root,
            [case.ref or case.name for case in present],
            tasks=(*SCENARIOS, REAL),
            model=MAIN,
            budget=Budget(STEPS, 120.0),
            args=[f"{case.name}.{setting}" for case in present for setting in case.settings],
            fast_model=FAST,
            edit_model=EDIT,
        )
        self.root = root
        self.server = server
        self.run = RunDir.open(run.path)
        self.runner = TrialRunner(run.path)

    def play(self, case: Case, task: str, replies: script.Script, model: str = MAIN) -> Played:
        """Run a trial against ``replies`` and check what must hold of every trial."""
        self.server.restart(replies, key=KEY)
        trial = TrialId(task, case.name, model if case.calls_model else "", 1)
        result = self.runner.run(trial)
        played = Played(result, list(self.run.trial(trial).events()), len(self.server.requests))
        played.check_trace()
        assert result.ledger.usage == self.server.usage
        assert result.ledger.steps <= STEPS
        assert [
            file
            for file in self.root.rglob("*")
            if file.is_file() and KEY.encode() in file.read_bytes()
        ] == []
        return played


class Played:
    """A trial that is over."""

    def __init__(self, result: TrialResult, events: list[Event], requests: int) -> None:
        self.result = result
        self.events = events
        self.requests = requests

    @property
    def steps(self) -> list[StepDone]:
        """Its steps."""
        return [event for event in self.events if isinstance(event, StepDone)]

    @property
    def calls(self) -> list[ModelCall]:
        """Its model calls."""
        return [event for event in self.events if isinstance(event, ModelCall)]

    def check_submitted(self) -> None:
        """It ran the script and submitted with its last step."""
        assert self.result.ended_by is EndedBy.SUBMITTED, self.result.reason
        names = [step.action for step in self.steps]
        assert names[-1] == SUBMIT[0]
        assert RUN[0] in names

    def check_trace(self) -> None:
        """From its first line to its last, with nothing left out."""
        assert isinstance(self.events[0], TrialStarted)
        assert isinstance(self.events[-1], TrialFinished)
        kinds = [type(event) for event in self.events]
        assert [kinds.count(kind) for kind in (TrialStarted, AgentEnded, TrialFinished)] == [
            1,
            1,
            1,
        ]
        assert [step.index for step in self.steps] == list(range(1, self.result.ledger.steps + 1))
        assert len(self.calls) == self.result.ledger.model_calls
        assert self.events[-1].outcome is self.result.outcome


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with ScriptedServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        patch.setenv("MLAB_MODEL_ATTEMPTS", "2")
        patch.setenv("MLAB_MODEL_WAIT", "0.01")
        found = Arena(tmp_path_factory.mktemp("arena"), server)
        with found.runner:
            yield found


def cases(*names: str, model: bool = False) -> list[object]:
    """All cases as parameters, or those that call a model, or those called ``names``."""
    return [
        pytest.param(
            case,
            id=case.name,
            marks=pytest.mark.skipif(case.missing, reason=f"needs the extra with {case.needs}"),
        )
        for case in CASES
        if case.calls_model or not model
        if case.name in names or not names
    ]


def test_every_agent_has_its_case() -> None:
    assert {case.name for case in CASES} | set(ELSEWHERE) == set(builtin_agents())
    assert [file for file in ELSEWHERE.values() if not (ROOT / file).is_file()] == []


@pytest.mark.parametrize("case", cases())
def test_works_and_submits(arena: Arena, case: Case) -> None:
    played = arena.play(case, "good", case.doing(LIST, RUN, SUBMIT) if case.calls_model else [])
    played.check_submitted()
    assert played.result.outcome is (
        Outcome.SUCCESS if case.name == "reference" else Outcome.BELOW_THRESHOLD
    )


@pytest.mark.parametrize("case", cases("act", "autogpt", "react", "research"))
def test_works_with_a_model_that_answers_in_a_code_block(arena: Arena, case: Case) -> None:
    played = arena.play(case, "fenced", fenced(case.doing(LIST, RUN, SUBMIT)))
    played.check_submitted()
    assert [step.action for step in played.steps] == [LIST[0], RUN[0], SUBMIT[0]]
    assert all(step.ok for step in played.steps)


def fenced(replies: script.Script) -> script.Script:
    """``replies`` as chatty models write them."""
    assert callable(replies)

    def answer(request: Request) -> Entry:
        text = replies(request)
        assert isinstance(text, str)
        return f"Sure, this is my next step:\n\n```\n{text}\n```\n\nI hope this helps!"

    return answer


@pytest.mark.parametrize("case", cases("baseline", "research"))
def test_works_on_a_real_task(arena: Arena, case: Case) -> None:
    """One scripted agent and one with a model: what differs between agents, the toy task shows."""
    played = arena.play(case, REAL, case.doing(LIST, RUN, SUBMIT) if case.calls_model else [])
    played.check_submitted()
    assert played.result.outcome.is_agents, played.result.reason


@pytest.mark.parametrize("case", cases(model=True))
def test_the_budget_is_held_to_the_step_and_the_workspace_scored(arena: Arena, case: Case) -> None:
    played = arena.play(case, "long", case.doing(RUN, LIST))
    assert played.result.ended_by is (EndedBy.SUBMITTED if case.submits else EndedBy.STEPS), (
        played.result.reason
    )
    assert len(played.steps) == STEPS
    assert (played.result.outcome, played.result.score) == (Outcome.BELOW_THRESHOLD, 0.4)


@pytest.mark.parametrize("case", cases(model=True))
def test_replies_that_are_of_no_use_end_the_trial_and_are_paid_for(
    arena: Arena, case: Case
) -> None:
    played = arena.play(case, "garbage", lambda _: case.garbage)
    assert played.result.outcome in (Outcome.NO_SUBMISSION, Outcome.AGENT_ERROR)
    assert played.result.reason
    assert 0 < played.requests == len(played.calls) <= BOUND


@pytest.mark.parametrize("case", cases(model=True))
def test_a_prompt_that_does_not_fit_once_is_survived(arena: Arena, case: Case) -> None:
    normal = case.doing(RUN, LIST, SUBMIT)
    asked = 0

    def answer(request: script.Request) -> Entry:
        nonlocal asked
        asked += request.model == MAIN
        if request.model == MAIN and asked == case.refused:
            return script.context_length()
        assert callable(normal)
        return normal(request)

    played = arena.play(case, "overflow", answer)
    assert played.result.ended_by is EndedBy.SUBMITTED, played.result.reason
    assert [call.error.partition(":")[0] for call in played.calls if call.error] == [
        "ContextWindowError"
    ]


@pytest.mark.parametrize("case", cases(model=True))
def test_prompts_that_never_fit_end_the_trial_with_the_reason(arena: Arena, case: Case) -> None:
    played = arena.play(case, "flood", lambda _: script.context_length())
    assert played.result.outcome is Outcome.AGENT_ERROR
    assert "ContextWindowError" in played.result.reason
    assert played.requests <= BOUND


@pytest.mark.parametrize("case", cases("act", "langchain"))
def test_a_connection_cut_in_the_middle_is_survived(arena: Arena, case: Case) -> None:
    """The client asks again, whichever agent calls it; LangChain has retries of its own."""
    normal = case.doing(RUN, SUBMIT)
    numbers = iter(range(1000))

    def answer(request: script.Request) -> Entry:
        assert callable(normal)
        return script.drop() if next(numbers) % 2 == 0 else normal(request)

    played = arena.play(case, "dropping", answer)
    assert played.result.ended_by is EndedBy.SUBMITTED, played.result.reason
    assert {call.retries for call in played.calls} == {1}
    assert played.requests == 2 * len(played.calls)


@pytest.mark.parametrize("case", cases(model=True))
def test_a_refused_key_is_a_failure_of_the_provider(arena: Arena, case: Case) -> None:
    own = (  # a refused key counts for all trials of the run that ask the same model
        f"openai/locked-for-{case.name}"
    )
    played = arena.play(case, "unauthorized", lambda _: script.unauthorized(echo=KEY), own)
    assert played.result.outcome is Outcome.PROVIDER_ERROR
    assert "refused the key" in played.result.reason
    assert played.requests == len(played.calls) == 1
