"""Steps: the budget, the trace, the end."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pytest_mlab.core.actions import Action
from pytest_mlab.core.agent_api import Environment
from pytest_mlab.core.budget import Budget
from pytest_mlab.errors import (
    BudgetExhausted,
    ConfigError,
    ProviderDownError,
    SandboxError,
    TrialOver,
)
from pytest_mlab.store import manifest
from pytest_mlab.store.events import Note
from pytest_mlab.trial import environment as module
from tests.trial.conftest import FakeModel, MakeTrial

LIST = {"dir_path": "."}


def test_a_step_is_counted_recorded_and_snapshot(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"train.py": b"print(1)"})
    trial.clock.now = 7
    seen = trial.do("Write File", file_name="a.txt", content="hello")
    assert seen.ok
    (step,) = trial.steps()
    assert (step.index, step.action, step.args) == (
        1,
        "Write File",
        {"file_name": "a.txt", "content": "hello"},
    )
    assert step.observation == seen.text
    assert list(step.set) == ["a.txt"]
    assert trial.store.read_bytes(step.set["a.txt"]) == b"hello"
    assert step.ledger == replace(trial.account.ledger, steps=1, seconds=7)
    assert [s.action for s in trial.env.history] == [
        Action("Write File", {"file_name": "a.txt", "content": "hello"})
    ]
    after = trial.do("List Files", **LIST)
    assert after.text == "a.txt\ntrain.py"
    assert trial.steps()[1].set == {}
    assert trial.steps()[1].snapshot == step.snapshot


def test_the_trace_keeps_its_types(make_trial: MakeTrial) -> None:
    trial = make_trial()
    trial.do("List Files", **LIST)
    line = (trial.dir.path / "trace.jsonl").read_text().splitlines()[1]
    data = json.loads(line)
    assert (data["type"], data["v"], data["ledger"]["steps"]) == ("step", 1, 1)


def test_a_name_that_is_not_text_is_a_step_of_its_own(make_trial: MakeTrial) -> None:
    trial = make_trial()
    assert not trial.do("\udc80").ok
    assert [step.action for step in trial.steps()] == ["?"]


def test_errors_are_steps_too(make_trial: MakeTrial) -> None:
    trial = make_trial()
    assert not trial.do("Read File", file_name="nowhere").ok
    assert not trial.do("No Such Action").ok
    assert trial.account.ledger.steps == 2
    assert [s.ok for s in trial.steps()] == [False, False]


def test_the_last_step_is_answered_and_the_next_one_is_refused(make_trial: MakeTrial) -> None:
    trial = make_trial(budget=Budget(max_steps=2))
    trial.do("List Files", **LIST)
    assert trial.do("List Files", **LIST).ok
    with pytest.raises(BudgetExhausted, match="2 of 2 steps") as caught:
        trial.do("List Files", **LIST)
    assert caught.value.limit == "steps"
    assert len(trial.steps()) == 2
    assert not trial.env.submitted


def test_the_limit_that_ended_the_trial_stays_its_reason(make_trial: MakeTrial) -> None:
    trial = make_trial(budget=Budget(max_seconds=5, max_steps=1))
    trial.do("List Files", **LIST)
    for _ in range(2):
        with pytest.raises(BudgetExhausted) as caught:
            trial.do("List Files", **LIST)
        assert caught.value.limit == "steps"
        trial.clock.now = 100


def test_no_step_begins_after_the_time(make_trial: MakeTrial) -> None:
    trial = make_trial(budget=Budget(max_seconds=5))
    trial.clock.now = 5
    with pytest.raises(BudgetExhausted, match="5 of 5 seconds"):
        trial.do("List Files", **LIST)


def test_the_final_answer_ends_the_trial(make_trial: MakeTrial) -> None:
    trial = make_trial()
    assert trial.do("Final Answer", final_answer="done").done
    assert trial.env.submitted
    with pytest.raises(TrialOver, match="final answer was given"):
        trial.do("List Files", **LIST)
    assert trial.account.ledger.steps == 1


def test_an_agent_that_will_not_stop_is_ended(
    make_trial: MakeTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RUNAWAY", 3)
    trial = make_trial(budget=Budget(max_steps=1))
    trial.do("List Files", **LIST)
    for _ in range(3):
        with pytest.raises(BudgetExhausted):
            trial.do("List Files", **LIST)
    with pytest.raises(SystemExit, match="runaway"):
        trial.do("List Files", **LIST)


def test_a_provider_out_of_reach_in_an_action_passes_and_is_a_step(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"f": b"x"}, model=FakeModel([ProviderDownError("503 five times")]))
    with pytest.raises(ProviderDownError):
        trial.do("Understand File", file_name="f", things_to_look_for="x")
    (step,) = trial.steps()
    assert step.observation == "ProviderDownError: 503 five times"
    trial.do("List Files", **LIST)  # the agent may go on


def test_a_budget_that_ends_in_an_action_ends_the_trial(make_trial: MakeTrial) -> None:
    trial = make_trial(
        env={"f": b"x"}, model=FakeModel([BudgetExhausted("no tokens", limit="tokens")])
    )
    for _ in range(2):
        with pytest.raises(BudgetExhausted, match="no tokens"):
            trial.do("Understand File", file_name="f", things_to_look_for="x")
    assert len(trial.steps()) == 1


def test_a_broken_sandbox_passes(make_trial: MakeTrial, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = make_trial(env={"f.py": b""})

    def broken(*_: object, **__: object) -> None:
        raise SandboxError("gone")

    monkeypatch.setattr(trial.env._context.connection, "execute", broken)
    with pytest.raises(SandboxError, match="gone"):
        trial.do("Execute Script", script_name="f.py")


def test_it_is_what_agents_are_written_for(make_trial: MakeTrial) -> None:
    trial = make_trial(budget=Budget(max_steps=9, max_seconds=90, max_tokens=1000, max_cost=2.5))
    env: Environment = trial.env
    assert env.task_description.startswith(
        "Do it.\n\nYour limits: 9 steps (actions), 90 seconds of time, 1000 tokens, $2.5"
    )
    assert env.budget.max_steps == 9
    assert env.log_dir == trial.dir.path / "logs"
    assert env.script("reference") == [Action("Final Answer", {"final_answer": "reference"})]
    assert len(env.actions) == 18
    assert env.model is trial.model


def test_no_model_is_an_error_that_names_the_option(make_trial: MakeTrial) -> None:
    trial = make_trial(no_model=True)
    with pytest.raises(ConfigError, match="--mlab-model"):
        _ = trial.env.model


def test_notes_take_anything_and_stay_small(make_trial: MakeTrial) -> None:
    trial = make_trial()
    trial.env.note("odd", {"set": {1}, "n": float("inf")})
    trial.env.note("long", {str(k): "x" * 100 for k in range(10_000)})
    odd, long = (e for e in trial.dir.events() if isinstance(e, Note))
    assert odd.data == {"set": "{1}", "n": float("inf")}
    assert len(long.data["cut"]) == 200_000


def test_arguments_that_are_no_json_do_not_break_the_trace(make_trial: MakeTrial) -> None:
    trial = make_trial()
    assert not trial.env.execute(Action("List Files", {"dir_path": {1, 2}})).ok
    assert not trial.env.execute(Action("List Files", "not a mapping")).ok  # type: ignore[arg-type]
    first, second = trial.steps()
    assert first.args == {"dir_path": "{1, 2}"}
    assert second.args == {"unusable": "'not a mapping'"}


def test_names_that_are_no_text_are_shown_with_question_marks(make_trial: MakeTrial) -> None:
    trial = make_trial()
    (trial.root / "b\udcff").write_text("")
    assert trial.do("List Files", dir_path=".").text == "b?"
    assert trial.steps()[0].set.keys() == {"%b:b%FF"}


def test_what_a_snapshot_leaves_out_is_in_the_trace(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"f.py": b"import os; os.mkfifo('pipe')"})
    trial.do("Execute Script", script_name="f.py")
    notes = [e.data for e in trial.dir.events() if isinstance(e, Note)]
    assert notes == [{"text": "pipe is a named pipe; it is not kept"}]


def test_public_data_are_not_stored(make_trial: MakeTrial) -> None:
    trial = make_trial(public={"train.csv": b"a,b\n"})
    trial.do("Copy File", source="train.csv", destination="mine.csv")
    (step,) = trial.steps()
    assert step.set["mine.csv"].startswith("public:")
    assert not trial.store.has(manifest.digest_of(step.set["mine.csv"]))
