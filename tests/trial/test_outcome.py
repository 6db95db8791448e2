from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.core.task import Baseline, Direction, Metric, Submission, Task, Threshold, Variant
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.store.events import (
    AgentEnded,
    Event,
    ModelCall,
    Note,
    ProgramEnded,
    StepDone,
    TrialStarted,
)
from pytest_mlab.trial.evaluate import Evaluated
from pytest_mlab.trial.outcome import (
    AgentPart,
    ResultContext,
    TraceFacts,
    agent_part,
    conclude,
    facts,
    last_ledger,
    silence,
    tampering,
)
from pytest_mlab.trial.process.watch import Ending

ID = TrialId("guess", "good", "", 1)
BUDGET = Budget(max_steps=10, max_seconds=100.0)


def task(baseline: float = 0.4, **changes: Any) -> Task:
    measured = Baseline("starter", (baseline,) * 3, baseline, 0.0)
    fields: dict[str, Any] = {
        "name": "guess",
        "suite": "toy",
        "version": "1",
        "summary": "",
        "modality": "tabular",
        "folder": Path("guess"),
        "description": "",
        "metric": Metric("accuracy", Direction.MAXIMIZE, low=0.0, high=1.0),
        "submission": Submission("csv", "submission.csv"),
        "variants": {"mini": Variant("mini", (), measured)},
        "digest": "d" * 64,
    }
    return Task(**(fields | changes))


def context(**changes: Any) -> ResultContext:
    fields: dict[str, Any] = {
        "id": ID,
        "task": task(),
        "data": "mini",
        "data_digest": "e" * 64,
        "sandbox": "local",
        "threshold": None,
        "started_at": 1.0,
        "finished_at": 9.0,
    }
    return ResultContext(**(fields | changes))


def started() -> TrialStarted:
    return TrialStarted(
        t=1.0,
        trial=ID,
        pid=1,
        sandbox="local",
        budget=BUDGET,
        task_digest="",
        data="mini",
        data_digest="",
        agent_digest="",
        machine="",
        starter="",
    )


def ended(**changes: Any) -> AgentEnded:
    fields: dict[str, Any] = {
        "t": 5.0,
        "ended_by": EndedBy.SUBMITTED,
        "ledger": Ledger(steps=3, seconds=4.0),
    }
    return AgentEnded(**(fields | changes))


def step(ledger: Ledger) -> StepDone:
    return StepDone(
        t=2.0,
        index=ledger.steps,
        action="List Files",
        args={},
        observation="",
        ok=True,
        seconds=0.1,
        snapshot="",
        ledger=ledger,
    )


# --- the trace's facts ---


def test_facts_of_a_whole_trace() -> None:
    found = facts([started(), step(Ledger(steps=1)), ended()])
    assert found == TraceFacts(started(), ended(), ended().ledger)


def test_facts_of_a_trace_that_breaks_off() -> None:
    call = ModelCall(
        t=3.0, role="main", model="m", prompt="", seconds=1.0, ledger=Ledger(1, 2.0, Usage(5, 6))
    )
    found = facts([started(), step(Ledger(steps=1)), call, Note(t=4.0, kind="x", data={})])
    assert found == TraceFacts(started(), None, Ledger(1, 2.0, Usage(5, 6)), answered={"m": 1})


def test_a_trace_names_the_models_whose_tools_went_by_text() -> None:
    def call(model: str, *, fell_back: bool) -> ModelCall:
        more: dict[str, Any] = {"role": "main", "prompt": "", "seconds": 1.0, "ledger": Ledger()}
        return ModelCall(t=3.0, model=model, fell_back=fell_back, **more)

    asked = [call("m", fell_back=True), call("n", fell_back=False), call("m", fell_back=True)]
    assert facts([started(), *asked, ended()]).tools_by_text == ("m",)


def test_a_program_that_asked_no_model_is_said_with_the_way_out() -> None:
    ended_program = ProgramEnded(t=3.0, argv=["x"], exit_status=0, output="", seconds=9.0)
    silent = facts([started(), ended_program])
    (said,) = silence(silent, context(id=TrialId("t", "a", "m", 1)))
    assert "no model call" in said
    assert "OPENAI_BASE_URL" in said
    assert silence(silent, context(id=TrialId("t", "a", "", 1))) == []
    assert silence(facts([started()]), context(id=TrialId("t", "a", "m", 1))) == []
    asked = ModelCall(
        t=3.0, role="main", model="m", prompt="", seconds=1.0, ledger=Ledger(model_calls=1)
    )
    assert (
        silence(facts([started(), asked, ended_program]), context(id=TrialId("t", "a", "m", 1)))
        == []
    )


def test_answered_calls_are_counted_by_model() -> None:
    def call(model: str, error: str = "") -> ModelCall:
        more: dict[str, Any] = {"role": "main", "prompt": "", "seconds": 1.0, "ledger": Ledger()}
        return ModelCall(t=3.0, model=model, error=error, **more)

    found = facts([started(), call("m"), call("n"), call("m"), call("m", "TimeoutError: x")])
    assert found.answered == {"m": 2, "n": 1}


def test_facts_of_an_empty_trace() -> None:
    assert facts([]) == TraceFacts()


def executed(ok: bool, observation: str = "") -> StepDone:
    changes = {
        "action": "Execute Script",
        "args": {"script_name": "train.py"},
        "ok": ok,
        "observation": observation,
    }
    return step(Ledger(steps=1)).model_copy(update=changes)


FAILED = (
    'train.py failed with exit status 1. Its output:\nFile "/w/train.py", line 3, in'
    " f\nKeyError: 0\n"
)


@pytest.mark.parametrize(
    ("events", "crash"),
    [
        ([executed(False, FAILED)], "train.py failed at train.py:3: KeyError: 0"),
        (
            [executed(False, FAILED), step(Ledger(steps=2))],
            "train.py failed at train.py:3: KeyError: 0",
        ),
        (
            [
                executed(False, FAILED),
                executed(True, "train.py ran to its end. It printed nothing.\n"),
            ],
            "",
        ),
        (
            [
                executed(
                    False,
                    "train.py was stopped because it needed more than 9 MiB of memory. Its"
                    " output:\nx",
                )
            ],
            "train.py was stopped because it needed more than 9 MiB of memory.",
        ),
    ],
)
def test_facts_know_how_the_last_script_failed(events: list[Event], crash: str) -> None:
    assert facts(events).crash == crash


# --- how the agent's part ended ---


@pytest.mark.parametrize("ending", [None, Ending("exited", 0), Ending("signalled", 9)])
def test_the_agents_own_last_event_is_believed(ending: Ending | None) -> None:
    last = ended(ended_by=EndedBy.ERROR, outcome=Outcome.PROVIDER_ERROR, reason="429")
    events: list[Event] = [started(), last]
    assert agent_part(facts(events), ending) == AgentPart(
        EndedBy.ERROR, Outcome.PROVIDER_ERROR, "429"
    )


@pytest.mark.parametrize(
    ("ending", "by", "outcome", "words"),
    [
        (Ending("deadline"), EndedBy.SECONDS, None, "killed"),
        (Ending("signalled", signal.SIGALRM), EndedBy.SECONDS, None, "killed"),
        (
            Ending("exited", 0),
            EndedBy.ERROR,
            Outcome.AGENT_ERROR,
            "ended its own process with status 0",
        ),
        (
            Ending("exited", 3),
            EndedBy.ERROR,
            Outcome.AGENT_ERROR,
            "ended its own process with status 3",
        ),
        (
            Ending("exited", 70),
            EndedBy.KILLED,
            Outcome.INFRA_ERROR,
            "exited with status 70 (last line)",
        ),
        (
            Ending("signalled", signal.SIGSEGV),
            EndedBy.ERROR,
            Outcome.AGENT_ERROR,
            "died of SIGSEGV (last line)",
        ),
        (
            Ending("signalled", signal.SIGKILL),
            EndedBy.KILLED,
            Outcome.INFRA_ERROR,
            "something outside killed it",
        ),
        (
            Ending("server_lost"),
            EndedBy.KILLED,
            Outcome.INFRA_ERROR,
            "was lost with its fork server",
        ),
        (None, EndedBy.KILLED, Outcome.INFRA_ERROR, "interrupted together with its worker"),
    ],
)
def test_a_trace_that_breaks_off(
    ending: Ending | None, by: EndedBy, outcome: Outcome | None, words: str
) -> None:
    part = agent_part(facts([started()]), ending, "last line")
    assert (part.ended_by, part.outcome) == (by, outcome)
    assert words in part.reason


@pytest.mark.parametrize(
    "ending",
    [Ending("exited", 0), Ending("exited", 70), Ending("signalled", 11), Ending("deadline")],
)
def test_what_ends_before_it_began_is_no_fault_of_the_agent(ending: Ending) -> None:
    part = agent_part(facts([]), ending, "disk full")
    assert part.outcome is Outcome.INFRA_ERROR
    assert "before it began (disk full)" in part.reason


def test_ledger_of_an_agent_that_was_killed_at_its_deadline() -> None:
    found = facts([started(), step(Ledger(steps=2, seconds=7.0))])
    assert last_ledger(found, Ending("deadline", seconds=130.0), BUDGET) == Ledger(
        steps=2, seconds=100.0
    )
    assert last_ledger(found, Ending("signalled", signal.SIGALRM, 130.0), BUDGET) == Ledger(
        steps=2, seconds=100.0
    )
    assert last_ledger(found, Ending("signalled", 9, seconds=130.0), BUDGET) == Ledger(
        steps=2, seconds=7.0
    )
    assert (
        last_ledger(facts([started(), ended()]), Ending("deadline", seconds=130.0), BUDGET)
        == ended().ledger
    )


# --- the outcome ---

SUBMITTED = AgentPart(EndedBy.SUBMITTED)


def outcome(
    part: AgentPart = SUBMITTED, evaluated: Evaluated | None = None, **changes: Any
) -> TrialResult:
    tampered = changes.pop("tampered", ())
    return conclude(context(**changes), part, Ledger(steps=3), "f" * 64, tampered, evaluated)


def test_success() -> None:
    result = outcome(evaluated=Evaluated("scored", 1.0, seconds=2.5))
    assert result == TrialResult(
        id=ID,
        outcome=Outcome.SUCCESS,
        reason="accuracy 1 is above 0.44",
        score=1.0,
        baseline=0.4,
        needed=pytest.approx(0.44),  # type: ignore[arg-type]
        improvement=pytest.approx(1.5),  # type: ignore[arg-type]
        within_noise=False,
        ended_by=EndedBy.SUBMITTED,
        ledger=Ledger(steps=3),
        evaluation_seconds=2.5,
        started_at=1.0,
        finished_at=9.0,
        sandbox="local",
        data="mini",
        data_digest="e" * 64,
        task_digest="d" * 64,
        snapshot="f" * 64,
    )


def test_below_threshold() -> None:
    result = outcome(evaluated=Evaluated("scored", 0.44))
    assert result.outcome is Outcome.BELOW_THRESHOLD
    assert (result.score, result.within_noise) == (0.44, False)


def test_the_runs_threshold_overrides_the_tasks() -> None:
    assert outcome(evaluated=Evaluated("scored", 0.44), threshold=0.05).outcome is Outcome.SUCCESS
    assert (
        outcome(evaluated=Evaluated("scored", 0.44), threshold=0.5).outcome
        is Outcome.BELOW_THRESHOLD
    )


@pytest.mark.parametrize(
    "word", ["invalid_submission", "no_submission", "task_error", "infra_error"]
)
def test_words_of_the_evaluation(word: Any) -> None:
    result = outcome(evaluated=Evaluated(word, reason="so it is", seconds=1.5))
    assert (result.outcome, result.reason) == (Outcome(word), "so it is")
    assert (result.score, result.evaluation_seconds) == (None, 1.5)
    assert result.baseline == 0.4
    assert result.needed == pytest.approx(0.44)


def test_score_out_of_range_is_the_tasks_fault() -> None:
    result = outcome(evaluated=Evaluated("scored", 1.5))
    assert result.outcome is Outcome.TASK_ERROR
    assert "above the highest valid value 1.0" in result.reason
    assert result.score is None


def test_placeholder_as_a_baseline_is_the_tasks_fault() -> None:
    metric = Metric("error", Direction.MINIMIZE)
    result = outcome(evaluated=Evaluated("scored", 1.5), task=task(1e10, metric=metric))
    assert result.outcome is Outcome.TASK_ERROR
    assert "placeholder" in result.reason
    assert result.needed is None


def test_no_baseline_at_all() -> None:
    unmeasured = {"mini": Variant("mini", ())}
    assert (
        outcome(evaluated=Evaluated("scored", 0.5), task=task(variants=unmeasured)).outcome
        is Outcome.TASK_ERROR
    )
    result = outcome(
        evaluated=Evaluated("scored", 0.5),
        task=task(variants=unmeasured, threshold=Threshold(absolute=0.4)),
    )
    assert (result.outcome, result.baseline, result.improvement) == (Outcome.SUCCESS, None, None)


@pytest.mark.parametrize(
    "decided", [Outcome.AGENT_ERROR, Outcome.INFRA_ERROR, Outcome.PROVIDER_ERROR]
)
def test_end_of_the_agent_decides_before_anything_else(decided: Outcome) -> None:
    part = AgentPart(EndedBy.ERROR, decided, "why")
    result = outcome(part, tampered=["train.csv"])
    assert (result.outcome, result.reason, result.ended_by) == (decided, "why", EndedBy.ERROR)
    assert result.needed == pytest.approx(0.44)


def test_changed_read_only_files_are_named() -> None:
    result = outcome(tampered=["train.csv", "test.csv"])
    assert result.outcome is Outcome.INVALID_SUBMISSION
    assert result.reason == "read-only files were changed: train.csv, test.csv"


def test_many_changed_files_are_counted() -> None:
    assert (
        tampering([f"{n}.png" for n in range(9)])
        == "read-only files were changed: 0.png, 1.png, 2.png, 3.png, 4.png and 4 more"
    )
    assert tampering([]) == ""


def test_nothing_decides() -> None:
    with pytest.raises(ValueError, match="guess-good-1"):
        outcome()


def test_every_outcome_but_not_run_can_be_reached_here() -> None:
    """``not_run`` is a planned trial without a result: nothing that is decided here is ever
    that."""
    reached = {
        outcome(evaluated=Evaluated("scored", 1.0)).outcome,
        outcome(evaluated=Evaluated("scored", 0.1)).outcome,
        *(
            outcome(evaluated=Evaluated(word)).outcome
            for word in ("invalid_submission", "no_submission", "task_error")
        ),
        *(
            outcome(AgentPart(EndedBy.ERROR, decided)).outcome
            for decided in (Outcome.AGENT_ERROR, Outcome.INFRA_ERROR, Outcome.PROVIDER_ERROR)
        ),
    }
    assert reached == set(Outcome) - {Outcome.NOT_RUN}


# --- a script that failed ---

CRASH = "train.py failed at train.py:3: KeyError: 0"


@pytest.mark.parametrize("word", ["no_submission", "invalid_submission"])
def test_a_crash_is_told_beside_what_it_led_to(word: Any) -> None:
    result = conclude(
        context(),
        AgentPart(EndedBy.SUBMITTED),
        Ledger(),
        "s",
        evaluated=Evaluated(word, reason="bad"),
        crash=CRASH,
    )
    assert (result.outcome, result.reason) == (Outcome(word), f"bad; the last script, {CRASH}")


def test_a_crash_of_the_control_agent_is_the_tasks() -> None:
    control = context(id=TrialId("guess", "baseline", "", 1))
    evaluated = Evaluated("no_submission", reason="bad")
    result = conclude(
        control, AgentPart(EndedBy.SUBMITTED), Ledger(), "s", evaluated=evaluated, crash=CRASH
    )
    assert result.outcome is Outcome.TASK_ERROR
    assert result.reason == f"the task's own code does not run here: {CRASH}; so bad"


@pytest.mark.parametrize("agent", ["good", "baseline"])
def test_a_crash_says_nothing_about_a_score_or_a_broken_evaluator(agent: str) -> None:
    at = context(id=TrialId("guess", agent, "", 1))
    part = AgentPart(EndedBy.SUBMITTED)
    assert (
        conclude(at, part, Ledger(), "s", evaluated=Evaluated("scored", 0.9), crash=CRASH).outcome
        is Outcome.SUCCESS
    )
    broken = conclude(
        at, part, Ledger(), "s", evaluated=Evaluated("task_error", reason="bad"), crash=CRASH
    )
    assert (broken.outcome, broken.reason) == (Outcome.TASK_ERROR, "bad")
