"""Whole trials of the research agent: fork server, sandbox, environment, evaluation; only the
provider is scripted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.store.events import ModelCall, StepDone
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.trial.runner import TrialRunner
from tests.support import scripted_server as script
from tests.support.research_replies import research_reply, research_script, submit
from tests.support.scripted_server import Entry, Request, ScriptedServer
from tests.support.toy_run import make_run
from tests.support.toy_suite import BETTER_TRAIN, REFERENCE, TRAIN, write_toy_suite

KEY = "sk-not-a-real-key-0123456789"
MODEL = "gpt-4-turbo"

EDIT = (
    "Edit Script (AI)",
    {"script_name": "train.py", "edit_instruction": "use the threshold", "save_name": "train.py"},
)
RUN = ("Execute Script", {"script_name": "train.py"})
SHOW_ENVIRONMENT = "import os\nprint(dict(os.environ))\n" + TRAIN

SCENARIOS = ("good", "never", "dropping", "unauthorized", "down", "hanging", "tattling")


class Trials:
    """Trials of one run, one a scenario (a copy of the toy task), all by one runner: litellm is
    imported once."""

    def __init__(self, project: Path, server: ScriptedServer) -> None:
        write_toy_suite(project, tasks=SCENARIOS)
        self.project = project
        self.server = server
        self.run = make_run(
            project,
            ["research"],
            tasks=SCENARIOS,
            model=MODEL,
            budget=Budget(4, 60.0),
            edit_model="gpt-4o",
        )
        self.runner = TrialRunner(self.run.path)

    def play(self, scenario: str, replies: script.Script, model: str = MODEL) -> TrialResult:
        """Run the trial of ``scenario`` against ``replies``."""
        self.server.restart(replies, key=KEY)
        return self.runner.run(TrialId(scenario, "research", model, 1))

    def events(self, scenario: str) -> tuple[list[ModelCall], list[StepDone]]:
        """The model calls and the steps in its trace."""
        run = RunDir.open(self.run.path)
        events = list(run.trial(TrialId(scenario, "research", MODEL, 1)).events())
        return [e for e in events if isinstance(e, ModelCall)], [
            e for e in events if isinstance(e, StepDone)
        ]


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    with ScriptedServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        patch.setenv("MLAB_MODEL_ATTEMPTS", "2")
        patch.setenv("MLAB_MODEL_WAIT", "0.01")
        patch.setenv("MLAB_MODEL_TIMEOUT", "2")
        found = Trials(tmp_path_factory.mktemp("project"), server)
        with found.runner:
            yield found


def by_model(*main: Entry, edit: str) -> script.Script:
    replies = iter(main)

    def answer(request: Request) -> Entry:
        return next(replies) if request.model == MODEL else f"```python\n{edit}```"

    return answer


def test_edits_executes_and_submits(trials: Trials) -> None:
    result = trials.play("good", by_model(*research_script(EDIT, RUN), submit(), edit=BETTER_TRAIN))
    assert (result.outcome, result.score, result.reason) == (
        Outcome.SUCCESS,
        REFERENCE,
        result.reason,
    )
    assert (result.ended_by, result.ledger.steps) == (EndedBy.SUBMITTED, 3)
    calls, steps = trials.events("good")
    assert [step.action for step in steps] == ["Edit Script (AI)", "Execute Script", "Final Answer"]
    assert [(call.role, call.model) for call in calls] == [
        ("main", MODEL),
        ("edit", "gpt-4o"),
        ("main", MODEL),
        ("main", MODEL),
    ]
    assert result.ledger.usage == trials.server.usage
    assert result.ledger.known_cost == pytest.approx(sum(call.cost or 0.0 for call in calls))
    prompts = [request.prompt for request in trials.server.requests]
    assert "Predict the label" in prompts[0]
    assert "yes from 40 on" in prompts[3]
    assert trials.server.requests[1].body["max_tokens"] == 4000


def test_replies_that_never_parse_use_the_steps_up(trials: Trials) -> None:
    result = trials.play("never", lambda _: script.refusal())
    assert (result.outcome, result.ended_by) == (Outcome.NO_SUBMISSION, EndedBy.STEPS)
    assert result.ledger.steps == 4
    assert len(trials.server.requests) == 4 * 6  # nothing is asked once the steps are used up
    assert result.ledger.usage == trials.server.usage
    _, steps = trials.events("never")
    assert {(step.action, step.ok) for step in steps} == {("", False)}


def test_a_dropped_connection_and_a_busy_server_are_survived(trials: Trials) -> None:
    replies: list[Entry] = [script.drop(), *research_script(RUN), script.rate_limited(0), submit()]
    result = trials.play("dropping", replies)
    assert result.outcome is Outcome.BELOW_THRESHOLD, result.reason
    calls, _ = trials.events("dropping")
    assert [call.retries for call in calls] == [1, 1]


@pytest.mark.parametrize(
    ("scenario", "entry", "reason", "requests"),
    [
        ("unauthorized", script.unauthorized(echo=KEY), "AuthError", 1),
        ("down", script.server_error(), "ProviderDownError", 2),
        ("hanging", script.hang(), "timed out", 2),
    ],
    ids=["401", "500", "hang"],
)
def test_a_provider_that_fails_is_no_failure_of_the_agent(
    trials: Trials, scenario: str, entry: Entry, reason: str, requests: int
) -> None:
    result = trials.play(
        scenario, lambda _: entry, f"openai/{scenario}"
    )  # a refused key counts for the whole run
    assert result.outcome is Outcome.PROVIDER_ERROR, result.reason
    assert reason in result.reason
    assert len(trials.server.requests) == requests


def test_the_key_is_nowhere(trials: Trials) -> None:
    telltale = research_reply(*RUN, thought=f"my key is {KEY}")
    result = trials.play(
        "tattling", by_model(research_reply(*EDIT), telltale, submit(), edit=SHOW_ENVIRONMENT)
    )
    assert result.ended_by is EndedBy.SUBMITTED, result.reason
    _, steps = trials.events("tattling")
    assert "PATH" in steps[1].observation
    assert "OPENAI" not in steps[1].observation
    assert {request.key for request in trials.server.requests} == {KEY}
    files = [path for path in trials.project.rglob("*") if path.is_file()]
    assert any(path.name == "trace.jsonl" for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
