"""Trials from their beginning to their result, with agents of every kind of behaviour."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.sandbox_api import SandboxOptions
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.errors import DataUnavailable
from pytest_mlab.lib import processes
from pytest_mlab.sandboxes import make
from pytest_mlab.store.events import (
    AgentEnded,
    Evaluation,
    Event,
    StepDone,
    TrialFinished,
    TrialStarted,
)
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.trial.runner import TrialRunner
from tests.support.docker_engine import docker_image
from tests.support.scripted_server import Reply, Request, ScriptedServer, say, unauthorized
from tests.support.toy_agents import write_toy_agents
from tests.support.toy_run import make_run
from tests.support.toy_suite import BASELINE, REFERENCE, write_toy_suite, write_toy_task


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's project with the toy suite and all toy agents."""
    write_toy_suite(tmp_path)
    write_toy_agents(tmp_path)
    return tmp_path


def only(run: RunDir) -> TrialId:
    (trial,) = run.plan.trials
    return trial


def play(
    project: Path, agent: str, *, grace: float = 0.2, around: float = 60.0, **settings: Any
) -> TrialResult:
    """Run one trial of ``agent`` and check what holds for every trial."""
    run = make_run(project, [agent], **settings)
    trial = only(run)
    with TrialRunner(run.path, grace=grace, around=around) as trials:
        result = trials.run(trial)
    assert run.results() == {trial: result}
    assert not list((project / "cache" / "workspaces").iterdir()), "the workspace is removed"
    last = run.trial(trial).last_event()
    assert isinstance(last, TrialFinished)
    assert (last.outcome, last.reason) == (result.outcome, result.reason)
    assert result.finished_at >= result.started_at > 0
    return result


def events(project: Path, kind: type) -> list[Any]:
    run = RunDir.open(project / "run")
    return [event for event in run.trial(only(run)).events() if isinstance(event, kind)]


# --- outcomes ---


def test_success(project: Path) -> None:
    result = play(project, "good")
    assert (result.outcome, result.score, result.baseline) == (Outcome.SUCCESS, REFERENCE, BASELINE)
    assert result.improvement == pytest.approx(1.5)
    assert (result.ended_by, result.ledger.steps, result.within_noise) == (
        EndedBy.SUBMITTED,
        3,
        False,
    )
    assert (result.sandbox, result.data) == ("local", "mini")
    assert len(result.snapshot) == len(result.task_digest) == len(result.data_digest) == 64
    (started,), (ended,), (evaluation,) = (
        events(project, kind) for kind in (TrialStarted, AgentEnded, Evaluation)
    )
    assert (started.sandbox, started.task_digest, started.budget.max_steps) == (
        "local",
        result.task_digest,
        20,
    )
    assert (ended.snapshot, ended.tampered) == (result.snapshot, [])
    assert (evaluation.step, evaluation.snapshot, evaluation.score) == (
        None,
        result.snapshot,
        REFERENCE,
    )
    assert [step.action for step in events(project, StepDone)] == [
        "Write File",
        "Execute Script",
        "Final Answer",
    ]


@pytest.mark.parametrize(
    ("agent", "outcome", "by", "reason"),
    [
        ("starter", Outcome.BELOW_THRESHOLD, EndedBy.SUBMITTED, "accuracy 0.4 is not above 0.44"),
        ("idle", Outcome.NO_SUBMISSION, EndedBy.RETURNED, "submission.csv is missing"),
        (
            "spoiling",
            Outcome.INVALID_SUBMISSION,
            EndedBy.SUBMITTED,
            "99 ids are missing or unknown",
        ),
        (
            "tampering",
            Outcome.INVALID_SUBMISSION,
            EndedBy.SUBMITTED,
            "read-only files were changed: test.csv, train.csv",
        ),
        (
            "raising",
            Outcome.AGENT_ERROR,
            EndedBy.ERROR,
            "the agent raised RuntimeError: lost my way (raising.py:14)",
        ),
        ("leaving", Outcome.AGENT_ERROR, EndedBy.ERROR, "the agent raised SystemExit: I quit"),
        (
            "exiting",
            Outcome.AGENT_ERROR,
            EndedBy.ERROR,
            "the agent ended its own process with status 3",
        ),
        ("crashing", Outcome.AGENT_ERROR, EndedBy.ERROR, "the agent's process died of SIGSEGV"),
        (
            "throttled",
            Outcome.PROVIDER_ERROR,
            EndedBy.ERROR,
            "RateLimitError: 429 until the retries were spent",
        ),
        ("overlong", Outcome.AGENT_ERROR, EndedBy.ERROR, "ContextWindowError: too long"),
    ],
)
def test_outcomes(project: Path, agent: str, outcome: Outcome, by: EndedBy, reason: str) -> None:
    result = play(project, agent)
    assert (result.outcome, result.ended_by) == (outcome, by), result.reason
    assert reason in result.reason


def test_traceback_of_an_agent_is_kept(project: Path) -> None:
    play(project, "raising")
    run = RunDir.open(project / "run")
    log = (run.trial(only(run)).path / "agent.log").read_text()
    assert 'raise RuntimeError("lost my way")' in log
    assert "raising.py" in log


def test_task_error(project: Path) -> None:
    write_toy_task(
        project / "task_suites" / "toy" / "guess",
        evaluator="def evaluate(a, b):\n    return float('nan')\n",
    )
    result = play(project, "good")
    assert result.outcome is Outcome.TASK_ERROR
    assert "task guess: evaluator.py" in result.reason


def test_missing_package_is_told_with_the_command_that_installs_it(project: Path) -> None:
    write_toy_task(
        project / "task_suites" / "toy" / "guess", requirements=("no-such-package>=1", "pytest>=8")
    )
    result = play(project, "good")
    assert result.outcome is Outcome.INFRA_ERROR
    assert "no-such-package is not installed" in result.reason
    assert "-m pip install 'no-such-package>=1'" in result.reason


# --- the budget's end ---


def test_agent_that_does_not_stop_is_killed_and_scored_as_it_stands(project: Path) -> None:
    result = play(project, "looping", budget=Budget(max_steps=5, max_seconds=2.0))
    assert (result.outcome, result.score) == (Outcome.BELOW_THRESHOLD, BASELINE), result.reason
    assert (result.ended_by, result.ledger) == (
        EndedBy.SECONDS,
        replace(result.ledger, steps=1, seconds=2.0),
    )
    (ended,) = events(project, AgentEnded)
    assert ended.snapshot == result.snapshot
    assert "killed" in ended.reason


def test_agent_that_catches_everything_is_ended_and_scored_as_it_stands(project: Path) -> None:
    result = play(project, "stubborn", budget=Budget(max_steps=5, max_seconds=60.0))
    assert (result.outcome, result.score) == (Outcome.BELOW_THRESHOLD, BASELINE), result.reason
    assert (result.ended_by, result.ledger.steps) == (EndedBy.STEPS, 5)
    assert len(events(project, AgentEnded)) == 1


def test_agent_that_turns_its_alarm_off_is_killed_by_the_worker(project: Path) -> None:
    (project / "agents" / "deaf.py").write_text(
        "import signal\n\nclass Agent:\n    needs_model = False\n\n    def run(self, env):\n"
        "        signal.setitimer(signal.ITIMER_REAL, 0)\n        while True:\n            pass\n"
    )
    result = play(project, "deaf", grace=0.1, around=2.0, budget=Budget(max_seconds=0.5))
    assert (result.outcome, result.ended_by) == (Outcome.NO_SUBMISSION, EndedBy.SECONDS)


def test_steps_used_up(project: Path) -> None:
    result = play(project, "patient", budget=Budget(max_steps=3, max_seconds=60.0))
    assert (result.outcome, result.ended_by, result.ledger.steps) == (
        Outcome.NO_SUBMISSION,
        EndedBy.STEPS,
        3,
    )


def test_tampering_is_seen_when_the_agent_was_killed(project: Path) -> None:
    body = (project / "agents" / "tampering.py").read_text()
    (project / "agents" / "tampering.py").write_text(
        body.replace(
            'do(env, "Final Answer", final_answer="changed the data")', "import os; os._exit(0)"
        )
    )
    run = make_run(project, ["tampering"])
    with TrialRunner(run.path) as trials:
        trials.run(only(run))
    (ended,) = events(project, AgentEnded)
    assert ended.tampered == ["test.csv", "train.csv"]


# --- nothing survives ---


def test_daemon_of_an_agent_is_gone_and_the_next_trial_unaffected(project: Path) -> None:
    run = make_run(project, ["detaching", "exiting", "crashing", "good"])
    with TrialRunner(run.path) as trials:
        results = [trials.run(trial) for trial in run.plan.trials]
    assert [result.outcome for result in results] == [
        Outcome.BELOW_THRESHOLD,
        Outcome.AGENT_ERROR,
        Outcome.AGENT_ERROR,
        Outcome.SUCCESS,
    ]
    (pid,) = (
        int(path.read_text()) for path in run.trial(run.plan.trials[0]).path.rglob("daemon.pid")
    )
    assert processes.start_time(pid) == ""


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_error_in_the_callback_leaves_no_process_and_no_result(
    project: Path, error: type[BaseException]
) -> None:
    run = make_run(project, ["patient"], budget=Budget(max_steps=10**9, max_seconds=600.0))
    trial = only(run)
    started: list[int] = []

    def interrupt(event: Event) -> None:
        assert isinstance(event, TrialStarted)
        started.append(event.pid)
        raise error

    with TrialRunner(run.path, on_event=interrupt) as trials, pytest.raises(error):
        trials.run(trial)
    assert [processes.start_time(pid) for pid in started] == [""]
    assert run.results() == {}
    assert not list((project / "cache" / "workspaces").rglob("*/*"))


# --- events ---


@pytest.mark.parametrize("agent", ["good", "crashing", "raising"])
def test_every_event_is_handed_over_once_and_in_order(project: Path, agent: str) -> None:
    run = make_run(project, [agent])
    trial = only(run)
    seen: list[Event] = []
    with TrialRunner(run.path, on_event=seen.append) as trials:
        trials.run(trial)
        trials.run(trial)  # stored already: nothing happens
    assert seen == list(run.trial(trial).events())
    assert isinstance(seen[0], TrialStarted)
    assert isinstance(seen[-1], TrialFinished)


def test_events_come_while_the_trial_runs(project: Path) -> None:
    run = make_run(project, ["good"])
    trial = only(run)
    ledgers: list[tuple[str, bool]] = []

    def on_event(event: Event) -> None:
        ledgers.append((event.type, (run.trial(trial).path / "result.json").exists()))

    with TrialRunner(run.path, on_event=on_event) as trials:
        trials.run(trial)
    assert ("trial_started", False) in ledgers
    assert ("agent_ended", False) in ledgers


# --- resuming ---


def test_finished_trial_is_not_run_again(project: Path) -> None:
    run = make_run(project, ["good"])
    with TrialRunner(run.path) as trials:
        first = trials.run(only(run))
    trace = (run.trial(only(run)).path / "trace.jsonl").read_bytes()
    with TrialRunner(run.path) as trials:
        assert trials.run(only(run)) == first
        assert trials._watches == {}, "no process was started"
    assert (run.trial(only(run)).path / "trace.jsonl").read_bytes() == trace


WORKER = """
    import sys, pathlib
    from pytest_mlab.trial.runner import TrialRunner
    from pytest_mlab.store.rundir import RunDir

    path = pathlib.Path(sys.argv[1])
    TrialRunner(path).run(RunDir.open(path).plan.trials[0])
"""


def test_trial_of_a_killed_worker_is_run_afresh_and_its_evidence_kept(project: Path) -> None:
    run = make_run(project, ["patient"], budget=Budget(max_steps=10**9, max_seconds=600.0))
    trial = only(run)
    command = [sys.executable, "-c", textwrap.dedent(WORKER), str(run.path)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as worker:
        until = time.monotonic() + 30
        while not isinstance(run.trial(trial).last_event(), StepDone) and time.monotonic() < until:
            time.sleep(0.01)
        family = processes.descendants(worker.pid)
        worker.kill()
    while any(map(processes.start_time, family)) and time.monotonic() < until:
        time.sleep(0.002)
    assert not any(map(processes.start_time, family))
    assert run.results() == {}
    left = (run.trial(trial).path / "trace.jsonl").read_bytes()
    settings = replace(run.plan.settings, budget=Budget(max_steps=2, max_seconds=60.0))
    again = RunDir.create(
        project / "again", replace(run.plan, settings=settings), {"rootdir": str(project)}
    )
    os.rename(run.path / "trials", again.path / "trials")
    with TrialRunner(again.path) as trials:
        result = trials.run(trial)
    assert (result.ended_by, result.ledger.steps) == (EndedBy.STEPS, 2)
    assert (
        (again.trial(trial).path / "attempts" / "1" / "trace.jsonl").read_bytes().startswith(left)
    )


def test_who_comes_second_waits_and_finds_the_result(project: Path) -> None:
    run = make_run(project, ["good"])
    trial = only(run)
    with TrialRunner(run.path) as trials:
        result = trials.run(trial)
    stored = run.trial(trial).path / "result.json"
    text = stored.read_bytes()
    stored.unlink()
    found: list[TrialResult] = []
    with TrialRunner(run.path) as second, open(run.path / "locks" / f"{trial.name}.trial") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(target=lambda: found.append(second.run(trial)))
        thread.start()
        until = time.monotonic() + 30
        waiting = f":{os.fstat(lock.fileno()).st_ino} "
        while time.monotonic() < until:
            if any(
                "->" in line and waiting in line
                for line in Path("/proc/locks").read_text().splitlines()
            ):
                break
            time.sleep(0.002)
        stored.write_bytes(text)
        fcntl.flock(lock, fcntl.LOCK_UN)
        thread.join()
        assert second._watches == {}, "no process was started"
    assert found == [result]


# --- what is not the agent's fault ---


def test_task_that_changed_since_the_plan(project: Path) -> None:
    run = make_run(project, ["good"])
    with (project / "task_suites" / "toy" / "guess" / "description.md").open("a") as file:
        file.write("accuracy, once more\n")
    with TrialRunner(run.path) as trials:
        result = trials.run(only(run))
    assert result.outcome is Outcome.INFRA_ERROR
    assert "the task guess has changed since the plan was made" in result.reason


def test_agent_that_changed_since_the_plan(project: Path) -> None:
    run = make_run(project, ["good"])
    with (project / "agents" / "good.py").open("a") as file:
        file.write("# a change\n")
    with TrialRunner(run.path) as trials:
        result = trials.run(only(run))
    assert result.outcome is Outcome.INFRA_ERROR
    assert "the agent good has changed since the plan was made" in result.reason


def test_crash_of_the_scoring_process(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(project, ["good"])
    monkeypatch.setattr("pytest_mlab.trial.runner.FINISH", "finish_phase:no_such_function")
    with TrialRunner(run.path) as trials:
        result = trials.run(only(run))
    assert result.outcome is Outcome.INFRA_ERROR
    assert "the process that scores the trial exited with status 70" in result.reason
    assert "no_such_function" in result.reason
    assert result.ledger.steps == 3


def test_data_that_cannot_be_prepared_are_the_callers_business(project: Path) -> None:
    toml = project / "task_suites" / "toy" / "guess" / "task.toml"
    toml.write_text(
        toml.read_text().replace(
            'kind = "generator"',
            'kind = "kaggle"\nref = "competitions/x"\nsize_mb = 1.0\nlicence = "rules"\nconsent ='
            ' "https://example.org/rules"',
        )
    )
    run = make_run(project, ["good"])
    with TrialRunner(run.path) as trials, pytest.raises(DataUnavailable):
        trials.run(only(run))
    assert run.results() == {}


# --- secrets ---


def test_no_key_reaches_an_agent_without_a_model(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    monkeypatch.setenv("MLAB_SECRET", "hidden-0123456789")  # allowed through, and still a secret
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "this")
    play(project, "blabbing")
    text = "".join(
        path.read_text(errors="replace")
        for path in (project / "run").rglob("*")
        if path.is_file() and "store" not in path.parts
    )
    assert "sk-0123456789abcdef" not in text
    assert "OPENAI_API_KEY" not in text
    assert "PYTEST_CURRENT_TEST" not in text
    assert "hidden-0123456789" not in text
    assert "[MLAB_SECRET]" in text


def test_no_secret_in_a_reason(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAB_SECRET", "hidden-0123456789")
    text = (
        "from pytest_mlab.evaluation import *\ndef evaluate(s, a): raise"
        " InvalidSubmission('hidden-0123456789')\n"
    )
    write_toy_task(project / "task_suites" / "toy" / "guess", evaluator=text)
    assert play(project, "idle").reason == "[MLAB_SECRET]"


def test_agents_with_a_model(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys reach the model's client and nothing that is written; a provider's failure is told
    apart."""
    key = "sk-0123456789abcdef"

    def script(request: Request) -> Reply:
        return (
            unauthorized(echo=request.key)
            if "please refuse" in request.prompt
            else say(f"you said {key}")
        )

    run = make_run(project, ["talking", "refused", "good"], model="openai/gpt-4o-mini")
    with ScriptedServer(script) as server, TrialRunner(run.path) as trials:
        monkeypatch.setenv("OPENAI_API_KEY", key)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "False")
        talking, refused, good = (trials.run(trial) for trial in run.plan.trials)
        assert {request.key for request in server.requests} == {key}
        assert {needs: watch.threads for needs, watch in trials._watches.items()} == {
            True: (),
            False: (),
        }
    assert (talking.outcome, talking.ledger.model_calls) == (Outcome.NO_SUBMISSION, 1), (
        talking.reason
    )
    assert talking.ledger.usage == server.usage
    assert talking.ledger.known_cost is not None
    assert talking.ledger.known_cost > 0
    assert (refused.outcome, refused.ended_by) == (Outcome.PROVIDER_ERROR, EndedBy.ERROR)
    assert "AuthError" in refused.reason
    assert good.outcome is Outcome.SUCCESS
    written = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    assert [path for path, content in written.items() if key.encode() in content] == []
    assert b"[OPENAI_API_KEY]" in written[run.trial(talking.id).path / "trace.jsonl"]
    assert b"[OPENAI_API_KEY]" in written[run.trial(talking.id).path / "agent.log"]


# --- sandboxes ---


@pytest.mark.parametrize("name", ["bubblewrap", "docker"])
def test_isolated_sandboxes(project: Path, name: str) -> None:
    with contextlib.ExitStack() as stack:
        image = stack.enter_context(docker_image()) if name == "docker" else ""
        if reason := make(SandboxOptions(name, image)).check():
            pytest.skip(reason)
        run = make_run(
            project,
            ["good", "tampering", "exiting", "looping"],
            sandbox=name,
            docker_image=image,
            budget=Budget(max_steps=10, max_seconds=4.0),
        )
        with TrialRunner(run.path, grace=0.2) as trials:
            results = [trials.run(trial) for trial in run.plan.trials]
    assert [(result.outcome, result.score) for result in results] == [
        (Outcome.SUCCESS, REFERENCE),
        (Outcome.BELOW_THRESHOLD, BASELINE),  # the data are mounted: they could not be changed
        (Outcome.AGENT_ERROR, None),
        (Outcome.BELOW_THRESHOLD, BASELINE),
    ]
    assert {result.sandbox for result in results} == {name}
