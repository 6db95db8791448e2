"""aideml as it is, in whole trials: sandbox, relay, endpoint, litellm, evaluation are real, the
provider scripted."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.agentfiles.loader import load_agent, plan_agent, shown_files
from pytest_mlab.agentfiles.settings import make_agent
from pytest_mlab.core.budget import Budget
from pytest_mlab.core.sandbox_api import Execution
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.errors import ConfigError, ProgramFailed
from pytest_mlab.planning.requirements import missing_for_agent
from pytest_mlab.store import manifest
from pytest_mlab.store.events import Event, ProgramEnded, StepDone
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.trial.runner import TrialRunner
from tests.support import scripted_server as script
from tests.support.fake_environment import FakeEnvironment, FakeModel
from tests.support.scripted_server import Entry, Request, ScriptedServer
from tests.support.toy_run import make_run
from tests.support.toy_suite import BASELINE, BETTER_TRAIN, REFERENCE, TRAIN, write_toy_suite

needs_aide = pytest.mark.skipif(
    importlib.util.find_spec("aide") is None, reason="aideml is not installed: see docs/agents.md"
)

ROOT = Path(__file__).parents[2]
KEY = "sk-not-a-real-key-0123456789"
MAIN, FAST = "gpt-4-turbo", "gpt-4o-mini"
SCENARIOS = ("good", "short", "locked")
REAL = "spaceship-titanic"

NOBODY = """\
import csv

with open("test.csv", newline="") as file:
    ids = [row["PassengerId"] for row in csv.DictReader(file)]
with open("submission.csv", "w", newline="") as file:
    csv.writer(file).writerows([("PassengerId", "Transported"), *((one, False) for one in ids)])
"""
"""A solution of the real task: nobody was transported."""


def solution(code: str) -> str:
    """A solution as aideml's model writes it; the code of the toy suite reads and writes in the
    current folder."""
    code = code.replace('"train.csv"', '"input/train.csv"').replace(
        '"test.csv"', '"input/test.csv"'
    )
    return (
        "I do the obvious"
        f" thing.\n\n```python\n{code.replace('submission.csv', 'working/submission.csv')}```\n"
    )


def review(metric: float | None) -> Entry:
    """What the feedback model says of a solution; None: it does not work."""
    verdict = {
        "is_bug": metric is None,
        "summary": "It ran.",
        "metric": metric,
        "lower_is_better": False,
    }
    return script.call(("submit_review", verdict))


def by_model(solutions: list[str], reviews: list[Entry]) -> script.Script:
    left, judged = iter(solutions), iter(reviews)

    def answer(request: Request) -> Entry:
        return next(left) if request.model == MAIN else next(judged)

    return answer


class Trials:
    """Trials of one run, one a scenario (a copy of the toy task), all by one runner."""

    def __init__(self, project: Path, server: ScriptedServer) -> None:
        write_toy_suite(project, tasks=SCENARIOS)
        self.server = server
        self.run = make_run(
            project,
            ["aide[steps=2,drafts=1,debug_prob=1]"],
            tasks=SCENARIOS,
            model=MAIN,
            fast_model=FAST,
            budget=Budget(5, 300.0),
            sandbox="bubblewrap" if shutil.which("bwrap") else "local",
        )
        self.runner = TrialRunner(self.run.path)

    def play(self, scenario: str, replies: script.Script) -> TrialResult:
        """Run the trial of ``scenario`` and check what holds for all."""
        self.server.restart(replies, key=KEY)
        result = self.runner.run(self.trial(scenario))
        assert result.ledger.usage == self.server.usage
        assert len(self.steps(scenario)) == result.ledger.steps == len(self.server.requests) <= 5
        files = [path for path in self.run.path.rglob("*") if path.is_file()]
        assert not [path for path in files if KEY.encode() in path.read_bytes()]
        return result

    def trial(self, scenario: str) -> TrialId:
        """The trial of ``scenario``."""
        return next(trial for trial in self.run.plan.trials if trial.task == scenario)

    def events(self, scenario: str) -> list[Event]:
        """Its trace."""
        return list(RunDir.open(self.run.path).trial(self.trial(scenario)).events())

    def steps(self, scenario: str) -> list[StepDone]:
        """Its steps."""
        return [event for event in self.events(scenario) if isinstance(event, StepDone)]

    def said(self, scenario: str) -> str:
        """What aideml printed."""
        (ended,) = (event for event in self.events(scenario) if isinstance(event, ProgramEnded))
        return ended.output

    def left(self, result: TrialResult) -> Mapping[str, Any]:
        """The files of the frozen workspace."""
        return manifest.load(self.run.store, result.snapshot)


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    with ScriptedServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        patch.setenv("MLAB_MODEL_ATTEMPTS", "2")
        patch.setenv("MLAB_MODEL_WAIT", "0.01")
        found = Trials(tmp_path_factory.mktemp("project"), server)
        with found.runner:
            yield found


@needs_aide
def test_the_best_solution_is_submitted_not_the_last(trials: Trials) -> None:
    replies = by_model([solution(BETTER_TRAIN), solution(TRAIN)], [review(0.99), review(0.4)])
    result = trials.play("good", replies)
    assert (result.outcome, result.score, result.ended_by) == (
        Outcome.SUCCESS,
        REFERENCE,
        EndedBy.RETURNED,
    )
    assert [step.args["role"] for step in trials.steps("good")] == ["main", "fast"] * 2
    assert "submission.csv" in trials.steps("good")[2].set  # it is there as soon as it is judged
    assert "solution 1: metric 0.99, the best: It ran." in trials.said("good")
    assert "solution 2: metric 0.4: It ran." in trials.said("good")
    assert set(trials.left(result)) == {"train.py", "train.csv", "test.csv", "submission.csv"}
    prompt = trials.server.requests[0].prompt
    assert "Predict the label of every" in prompt
    assert "`./working/submission.csv`" in prompt


@needs_aide
def test_out_of_budget_what_a_fixed_solution_wrote_counts(trials: Trials) -> None:
    replies = by_model(["no code at all"] * 3 + [solution(TRAIN)], [review(None)])
    result = trials.play("short", replies)
    assert (result.outcome, result.score, result.ended_by) == (
        Outcome.BELOW_THRESHOLD,
        BASELINE,
        EndedBy.STEPS,
    )
    assert "Previous (buggy) implementation" in trials.server.requests[4].prompt


@needs_aide
def test_a_refused_key(trials: Trials) -> None:
    result = trials.play("locked", [script.unauthorized()])
    assert (result.outcome, result.ledger.steps) == (Outcome.PROVIDER_ERROR, 1)


# --- settings ---


def test_absent_it_is_said_how_to_install_it(tmp_path: Path) -> None:
    agent = plan_agent("aide", tmp_path)
    assert agent.requirements == ("aideml>=0.2.2",)
    assert "pip install --no-deps aideml" in agent.fix
    assert "pip install --no-deps" in missing_for_agent(
        replace(agent, requirements=("aideml>=99",)), host_python=True
    )


def test_an_environment_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/python").symlink_to(sys.executable)
    agent = plan_agent("aide[python=venv/bin/python]", tmp_path)
    assert agent.requirements == ()
    made = make_agent(load_agent(agent.ref, tmp_path), agent.settings)
    assert shown_files(made, tmp_path)["venv"] == tmp_path / "venv"
    environment = FakeEnvironment(FakeModel(), budget=Budget(max_steps=9, max_seconds=60.0))
    made.run(environment)
    ((argv, _, _),) = environment.programs
    assert argv[:2] == ("venv/bin/python", "aide_runner.py")
    assert {"agent.steps=4", "exec.timeout=61", "data_dir=.", "desc_file=/home/task.md"} <= set(
        argv
    )
    assert "Make the number larger." in environment.put["task.md"].decode()
    with pytest.raises(ConfigError, match="python=no/bin/python does not exist"):
        plan_agent("aide[python=no/bin/python]", tmp_path)


def test_where_it_cannot_be_imported(tmp_path: Path) -> None:
    made = make_agent(load_agent("aide", tmp_path), {"python": "python3"})
    environment = FakeEnvironment(
        FakeModel(), ended=Execution(69, b"aideml cannot be imported", 25, 0.1)
    )
    with pytest.raises(
        ProgramFailed, match=r"cannot be imported; to fix: .*pip install --no-deps aideml"
    ):
        made.run(environment)
