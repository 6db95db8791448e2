"""Whole trials of programs: sandbox, relay, endpoint, litellm and evaluation are real, the provider
is scripted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_mlab.core.budget import Budget, Usage
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.reporting.trace import trial_lines
from pytest_mlab.store.events import Event, ProgramEnded, StepDone
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.trial.runner import TrialRunner
from tests.support import scripted_server as script
from tests.support.docker_engine import docker_image
from tests.support.scripted_server import ScriptedServer
from tests.support.toy_run import make_run
from tests.support.toy_suite import BASELINE, BETTER_TRAIN, REFERENCE, write_toy_suite

KEY = "sk-not-a-real-key-0123456789"
MODEL = "gpt-4-turbo"

ASK = """#!/usr/bin/env python3
import json, os, subprocess, sys, time, urllib.error, urllib.request
def ask(text, model="anything"):
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}]}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"
"""
"""The beginning of every program here: a client that asks once and never again."""

PROGRAMS = {
    "solve.sh": (
        """
print("task:", sys.argv[1])
print(dict(os.environ))
plan = ask("What is the plan?")
open("plan.txt", "w").write(plan)
better = ask("What is the script?", "claude-haiku-4")
open("train.py", "w").write(better)
subprocess.run([sys.executable, "train.py"], check=True)
"""
    ),
    "greedy.py": (
        """
while not (said := ask("more")).startswith("403"): pass
open("refused.txt", "w").write(said + ask("and now?"))
time.sleep(600)
"""
    ),
    "late.py": (
        """
while not ask("more").startswith("403"): pass
subprocess.run([sys.executable, "train.py"], check=True)
"""
    ),
    "locked.py": "ask('hello'); time.sleep(600)",
    "broken.py": "print('a line'); print(); ask('hello'); sys.exit('nothing works')",
    "stumbling.py": "subprocess.run([sys.executable, 'train.py']); ask('hello'); sys.exit(3)",
    "parallel.py": (
        """
import threading
said = []
threads = [threading.Thread(target=lambda: said.append(ask("at once"))) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(one[:3] for one in said))
"""
    ),
    "careless.py": (
        """
print(ask("much"))
print(ask("wrong"))
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
"""
    ),
}
QUICK = "command[command=python greedy.py,patience=0.2]"
AGENTS = (
    "command:./solve.sh {prompt}",
    QUICK,
    "command:python late.py",
    "command:python broken.py",
    "command:python stumbling.py",
    f"command[command=python careless.py,env=ODD={'odd' * 40}]",
    "command:no-such-program --at all",
    "command:python parallel.py",
    "command:python locked.py",
)


class Trials:
    """Trials of one run, one a program, all by one runner: litellm is imported once."""

    def __init__(self, project: Path, server: ScriptedServer, sandbox: str) -> None:
        write_toy_suite(project)
        for name, code in PROGRAMS.items():
            (project / name).write_text(ASK + code)
            (project / name).chmod(0o755)
        self.server = server
        self.run = make_run(
            project,
            AGENTS,
            model=MODEL,
            budget=Budget(3, 120.0),
            sandbox=sandbox,
            fast_model="gpt-4o-mini",
        )
        self.runner = TrialRunner(self.run.path)

    def play(self, agent: int, replies: script.Script) -> TrialResult:
        """Run the trial of one of AGENTS against ``replies``."""
        self.server.restart(replies, key=KEY)
        return self.runner.run(self.trial(agent))

    def trial(self, agent: int) -> TrialId:
        """The trial of one of AGENTS."""
        return self.run.plan.trials[agent]

    def events(self, agent: int) -> list[Event]:
        """Its trace."""
        return list(RunDir.open(self.run.path).trial(self.trial(agent)).events())

    def steps(self, agent: int) -> list[StepDone]:
        """Its steps."""
        return [event for event in self.events(agent) if isinstance(event, StepDone)]


@dataclass(frozen=True)
class Solved:
    """How a trial ended, and what the server counted and was asked for in it."""

    result: TrialResult
    counted: Usage
    models: list[str]


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    with ScriptedServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        patch.setenv("MLAB_MODEL_ATTEMPTS", "2")
        patch.setenv("MLAB_MODEL_WAIT", "0.01")
        # No path below it fits into a socket's address.
        project = tmp_path_factory.mktemp("project") / ("long" * 30)
        project.mkdir()
        patch.setenv("TMPDIR", str(project))
        found = Trials(project, server, "bubblewrap" if shutil.which("bwrap") else "local")
        with found.runner:
            yield found


@pytest.fixture(scope="module")
def solved(trials: Trials) -> Solved:
    """The trial of the program that solves the task."""
    result = trials.play(0, ["first think, then write", BETTER_TRAIN])
    return Solved(
        result, trials.server.usage, [request.model for request in trials.server.requests]
    )


def test_names(trials: Trials) -> None:
    names = [trial.agent for trial in trials.run.plan.trials]
    assert names[0] == "command-solve"
    assert names[1] == QUICK
    assert names[2:4] == [
        "command-python-" + agent.digest[:4] for agent in trials.run.plan.agents[2:4]
    ]
    assert names[6] == "command-no-such-program"


def test_a_program_is_metered_and_scored(solved: Solved) -> None:
    result = solved.result
    assert (result.outcome, result.score, result.ended_by) == (
        Outcome.SUCCESS,
        REFERENCE,
        EndedBy.RETURNED,
    )
    assert (result.ledger.steps, result.ledger.model_calls) == (2, 2)
    assert result.ledger.usage == solved.counted
    assert (result.ledger.cost > 0, result.ledger.unpriced_calls) == (True, 0)
    assert solved.models == [MODEL, "gpt-4o-mini"]


@pytest.mark.usefixtures("solved")
def test_its_calls_are_steps_with_snapshots(trials: Trials) -> None:
    first, second = trials.steps(0)
    assert (first.action, first.args) == (
        "Model Call",
        {"api": "/chat/completions", "asked_for": "anything", "role": "main"},
    )
    assert (first.observation, first.set) == ("first think, then write", {})
    assert (second.args["asked_for"], second.args["role"]) == ("claude-haiku-4", "fast")
    assert list(second.set) == ["plan.txt"]
    assert [event.type for event in trials.events(0)][:6] == [
        "trial_started",
        "model_call",
        "step",
        "model_call",
        "step",
        "program_ended",
    ]


@pytest.mark.usefixtures("solved")
def test_its_output_is_kept_and_shown(trials: Trials) -> None:
    (ended,) = (event for event in trials.events(0) if isinstance(event, ProgramEnded))
    assert (ended.exit_status, ended.output_file, ended.argv[1][-3:]) == (
        0,
        "outputs/program-01.txt",
        "...",
    )
    folder = trials.run.trial(trials.trial(0)).path
    whole = (folder / ended.output_file).read_text()
    assert "task: `train.csv` holds the columns" in whole
    assert len(whole.encode()) == ended.output_bytes
    shown = "\n".join(trial_lines(None, trials.events(0)))
    assert "program ended:" in shown
    assert "yes from 40 on" in shown


@pytest.mark.usefixtures("solved")
def test_no_key_is_seen_or_kept(trials: Trials) -> None:
    folder = trials.run.trial(trials.trial(0)).path
    assert "OPENAI_API_KEY': 'mlab'" in (folder / "outputs/program-01.txt").read_text()
    files = [path for path in trials.run.path.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_out_of_budget_it_is_refused_and_ended(trials: Trials) -> None:
    result = trials.play(1, lambda request: "go on")
    assert (result.outcome, result.ended_by, result.ledger.steps) == (
        Outcome.NO_SUBMISSION,
        EndedBy.STEPS,
        3,
    )
    assert len(trials.server.requests) == 3
    (ended,) = (event for event in trials.events(1) if isinstance(event, ProgramEnded))
    assert (ended.exit_status, ended.killed_for) == (None, "cancelled")
    (tree,) = (event.snapshot for event in trials.events(1) if event.type == "agent_ended")
    assert b"refused.txt" in trials.run.store.read_bytes(tree)


def test_out_of_budget_it_may_bring_its_work_to_an_end(trials: Trials) -> None:
    result = trials.play(2, lambda request: "go on")
    assert (result.outcome, result.score, result.ended_by) == (
        Outcome.BELOW_THRESHOLD,
        BASELINE,
        EndedBy.STEPS,
    )


def test_a_program_that_fails_without_a_submission(trials: Trials) -> None:
    result = trials.play(3, ["hello"])
    assert (result.outcome, result.ended_by) == (Outcome.AGENT_ERROR, EndedBy.ERROR)
    assert result.reason == "python ended with exit status 1: a line / nothing works"


def test_a_program_that_fails_with_a_submission_is_scored(trials: Trials) -> None:
    result = trials.play(4, ["hello"])
    assert (result.outcome, result.score, result.ended_by) == (
        Outcome.BELOW_THRESHOLD,
        BASELINE,
        EndedBy.ERROR,
    )


def test_requests_that_the_provider_refuses_are_the_programs_own(trials: Trials) -> None:
    result = trials.play(5, [script.context_length(), script.bad_request()])
    assert (result.outcome, result.ended_by, result.ledger.steps) == (
        Outcome.NO_SUBMISSION,
        EndedBy.RETURNED,
        2,
    )
    (ended,) = (event for event in trials.events(5) if isinstance(event, ProgramEnded))
    first, second = ended.output.splitlines()
    assert first.startswith('400 {"error": {"message": "prompt is too long: gpt-4-turbo')
    assert '"code": "context_length_exceeded"' in first
    assert second.startswith("400 ")
    assert [step.ok for step in trials.steps(5)] == [False, False]


def test_a_program_that_is_not_there(trials: Trials) -> None:
    result = trials.play(6, [])
    assert (result.outcome, result.ledger.steps) == (Outcome.INFRA_ERROR, 0)
    assert (
        "the program 'no-such-program' is not in the sandbox; to fix: install it" in result.reason
    )


def test_calls_at_once_are_steps_one_by_one(trials: Trials) -> None:
    result = trials.play(7, lambda request: "yes")
    assert (result.ended_by, result.ledger.steps, len(trials.server.requests)) == (
        EndedBy.STEPS,
        3,
        3,
    )
    (ended,) = (event for event in trials.events(7) if isinstance(event, ProgramEnded))
    assert ended.output.strip() == str(["403"] * 3 + ["yes"] * 3)


def test_a_refused_key_ends_it_at_once(trials: Trials) -> None:
    # The last one: no other trial of a run calls a model after that.
    result = trials.play(8, [script.unauthorized()])
    assert (result.outcome, result.ended_by) == (Outcome.PROVIDER_ERROR, EndedBy.ERROR)
    assert "AuthError" in result.reason
    assert len(trials.server.requests) == 1
    (step,) = trials.steps(8)
    assert (step.ok, step.observation[:10]) == (False, "AuthError:")


# --- alone ---


def test_a_call_under_way_ends_with_the_trials_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_toy_suite(tmp_path)
    (tmp_path / "ask.py").write_text(ASK + "ask('hello')")
    with ScriptedServer([script.hang()]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run = make_run(tmp_path, ["command:python3 ask.py"], model=MODEL, budget=Budget(3, 3.0))
        (trial,) = run.plan.trials
        with TrialRunner(run.path) as runner:
            result = runner.run(trial)
    assert (result.outcome, result.ended_by) == (Outcome.NO_SUBMISSION, EndedBy.SECONDS)
    kinds = [event.type for event in run.trial(trial).events()]
    assert kinds[:5] == ["trial_started", "model_call", "step", "program_ended", "agent_ended"]


def test_in_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_toy_suite(tmp_path)
    (tmp_path / "solve.sh").write_text(ASK + PROGRAMS["solve.sh"])
    (tmp_path / "solve.sh").chmod(0o700)  # who runs it inside is not its owner
    with docker_image() as image, ScriptedServer(["first think", BETTER_TRAIN]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run = make_run(
            tmp_path,
            ["command:./solve.sh {prompt}"],
            model=MODEL,
            sandbox="docker",
            docker_image=image,
        )
        (trial,) = run.plan.trials
        with TrialRunner(run.path) as runner:
            result = runner.run(trial)
    assert (result.outcome, result.score, result.ledger.steps) == (Outcome.SUCCESS, REFERENCE, 2)
    assert result.ledger.usage == server.usage
