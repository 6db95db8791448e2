"""What the heartbeat says of running trials."""

from __future__ import annotations

import threading
from pathlib import Path

from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.core.plan import Plan, RunSettings
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.plugin.heartbeat import WIDTH, Heartbeat, Progress
from pytest_mlab.store import underway
from pytest_mlab.store.events import (
    AgentEnded,
    Evaluation,
    Event,
    ModelCall,
    Note,
    StepDone,
    TrialFinished,
    WorkspaceRestoring,
)
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.store.underway import Activity

NOW = 1000.0
LEDGER = Ledger(steps=3, usage=Usage(100, 10), cost=1.5, model_calls=2)


def a_run(tmp_path: Path, trials: int = 2) -> RunDir:
    ids = tuple(TrialId("task", "agent", "", k) for k in range(1, trials + 1))
    return RunDir.create(
        tmp_path / "run", Plan("r", RunSettings(budget=Budget(max_steps=7)), (), (), ids), {}
    )


def write(run: RunDir, trial: TrialId, event: Event) -> None:
    with run.trial(trial).journal() as journal:
        journal.write(event)


def lines(run: RunDir, elapsed: float = 60.0) -> list[str]:
    return Progress(run, clock=lambda: NOW).lines(elapsed)


def test_nothing_has_begun(tmp_path: Path) -> None:
    assert lines(a_run(tmp_path)) == ["mlab 1m: 0/2 done, 0 running"]


def test_a_running_trial_shows_step_cost_and_its_last_action(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    step = StepDone(
        t=NOW - 5,
        index=3,
        action="Edit",
        args={},
        observation="",
        ok=True,
        seconds=1,
        snapshot="",
        ledger=LEDGER,
    )
    write(run, run.plan.trials[1], step)
    assert lines(run)[1:] == ["  task-agent-2: step 3/7, $1.50, Edit 5s ago"]


def test_a_program_that_asks_no_model_is_reported_after_minutes(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    trial = run.plan.trials[0]
    write(run, trial, Note(t=NOW, kind="plan", data={}))
    for since, said in ((NOW - 100, False), (NOW - 200, True)):
        moments = iter([since] * 2)
        with Activity(run.trial(trial).path, now=moments.__next__).doing("program codex"):
            assert ("no model call yet" in "".join(lines(run))) is said
    call = ModelCall(t=NOW, role="main", model="m", prompt="", seconds=1, ledger=LEDGER)
    write(run, trial, call)
    with Activity(run.trial(trial).path, now=lambda: NOW - 900).doing("program codex"):
        assert "no model call yet" not in "".join(lines(run))


def test_every_event_says_something(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    trial = run.plan.trials[0]
    said = []
    events: list[Event] = [
        Note(t=NOW, kind="plan", data={}),
        ModelCall(t=NOW, role="main", model="m", prompt="", seconds=1, ledger=LEDGER),
        WorkspaceRestoring(t=NOW, step=2, snapshot=""),
        AgentEnded(t=NOW, ended_by=EndedBy.SUBMITTED, ledger=LEDGER),
        Evaluation(t=NOW, verdict="scored", score=0.25, seconds=1),
        TrialFinished(t=NOW, outcome=Outcome.SUCCESS),
    ]
    for event in events:
        write(run, trial, event)
        said.append(lines(run)[1].partition(": ")[2])
    assert said == [
        "in the agent's own code, 1s",
        "step 3/7, $1.50, asked m 1s ago",
        "at work, went back to step 2 1s ago",
        "being evaluated after 3 steps, 1s",
        "evaluated, score 0.25",
        "ending as success",
    ]


def test_what_is_under_way_is_named(tmp_path: Path) -> None:
    run = a_run(tmp_path, trials=1)
    [trial] = run.plan.trials
    folder = run.trial(trial).path
    folder.mkdir(parents=True)

    def said() -> str:
        [_, *rest] = lines(run)
        return rest[0].partition(": ")[2] if rest else ""

    activity = Activity(folder, now=lambda: NOW - 45)
    with activity.doing("preparing the data"):
        assert said() == "preparing the data, 45s"
    assert said() == ""
    assert list(folder.iterdir()) == [], "a trial that has not begun leaves nothing"

    write(run, trial, Note(t=NOW - 50, kind="plan", data={}))
    with activity.doing("Edit Script (AI)", 4):
        assert said() == "step 4/7, Edit Script (AI), 45s"
        with activity.doing("waiting for the model", 4):
            assert said() == "step 4/7, waiting for the model, 45s"
        assert said() == "step 4/7, Edit Script (AI), 45s"
    assert said() == "step 4/7, in the agent's own code, 45s"
    call = ModelCall(t=NOW - 5, role="main", model="m", prompt="", seconds=1, ledger=LEDGER)
    write(run, trial, call)
    assert said() == "step 4/7, $1.50, in the agent's own code, 45s"
    with activity.doing("Execute Script", 4):
        assert said() == "step 4/7, $1.50, Execute Script, 45s"
        write(run, trial, AgentEnded(t=NOW - 5, ended_by=EndedBy.SECONDS, ledger=LEDGER))
        assert said() == "being evaluated after 3 steps, 5s"


def test_a_torn_note_of_what_is_under_way_is_none(tmp_path: Path) -> None:
    for text in ("", '{"what": "x"', "[]", '{"what": "x", "since": null, "step": 1}'):
        (tmp_path / "now.json").write_text(text)
        assert underway.read(tmp_path) is None


def test_results_are_counted_by_outcome(tmp_path: Path) -> None:
    run = a_run(tmp_path, trials=3)
    for trial, outcome in zip(
        run.plan.trials, (Outcome.SUCCESS, Outcome.SUCCESS, Outcome.INFRA_ERROR), strict=True
    ):
        run.trial(trial).write_result(TrialResult(trial, outcome, ""))
    assert lines(run, 3661.0) == ["mlab 1h1m1s: 3/3 done (2 success, 1 infra_error), 0 running"]


def test_a_damaged_trace_is_said_and_does_no_harm(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    folder = run.trial(run.plan.trials[0]).path
    folder.mkdir(parents=True)
    (folder / "trace.jsonl").write_text("{}\n")
    assert "unreadable" in lines(run)[2]


def test_many_trials_stay_few_and_short_lines(tmp_path: Path) -> None:
    run = a_run(tmp_path, trials=12)
    for trial in run.plan.trials:
        write(run, trial, Note(t=NOW, kind="x" * 200, data={}))
    said = lines(run)
    assert len(said) == 10
    assert said[-1] == "  and 4 more"
    assert max(map(len, said)) <= WIDTH


def test_beats_until_it_is_stopped(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    heard: list[list[str]] = []
    twice = threading.Event()

    def hear(text: list[str]) -> None:
        heard.append(text)
        if len(heard) == 2:
            twice.set()

    heartbeat = Heartbeat(0.001, hear)
    heartbeat.start(run)
    assert twice.wait(30)
    heartbeat.pytest_sessionfinish()
    count = len(heard)
    heartbeat.pytest_sessionfinish()
    assert len(heard) == count
    assert heard[0][0].startswith("mlab 1s: 0/2 done")
