from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.core.aggregate import summarize
from pytest_mlab.core.gate import GatePolicy, GateResult, is_measured_only, judge_run
from pytest_mlab.core.trial import Outcome, TrialId, TrialResult
from pytest_mlab.errors import ConfigError
from tests.core.builders import CONDITIONS, a_result, by_id

SUCCESS, BELOW, NOT_RUN = Outcome.SUCCESS, Outcome.BELOW_THRESHOLD, Outcome.NOT_RUN
TRIAL, AGGREGATE, NONE = GatePolicy("trial"), GatePolicy("aggregate"), GatePolicy("none")


def judged(
    policy: GatePolicy, results: list[TrialResult], missing: tuple[TrialId, ...] = ()
) -> GateResult:
    return judge_run(
        summarize([*(r.id for r in results), *missing], by_id(results), CONDITIONS), policy
    )


def trials(
    *outcomes: Outcome, task: str = "toy", agent: str = "research", model: str = "m"
) -> list[TrialResult]:
    return [
        a_result(k, o, task=task, agent=agent, model=model) for k, o in enumerate(outcomes, start=1)
    ]


@pytest.mark.parametrize(
    ("mode", "fail_under", "policy"),
    [
        (None, None, TRIAL),
        (None, 0.5, GatePolicy("aggregate", 0.5)),
        ("aggregate", 0.5, GatePolicy("aggregate", 0.5)),
        ("none", None, NONE),
        (None, 0.0, GatePolicy("aggregate", 0.0)),
    ],
)
def test_a_floor_implies_aggregate(
    mode: str | None, fail_under: float | None, policy: GatePolicy
) -> None:
    assert GatePolicy.resolve(mode, fail_under) == policy


@pytest.mark.parametrize("mode", ["trial", "none"])
def test_a_floor_that_would_be_ignored_is_refused(mode: str) -> None:
    with pytest.raises(ConfigError, match=f"gate={mode}"):
        GatePolicy.resolve(mode, 0.5)


@pytest.mark.parametrize("fail_under", [-0.1, 1.1, 25.0, float("nan")])
def test_a_floor_is_a_rate(fail_under: float) -> None:
    with pytest.raises(ConfigError, match="from 0 to 1"):
        GatePolicy.resolve(None, fail_under)


def test_an_unknown_gate_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="'all' is unknown; choose from trial, aggregate, none"):
        GatePolicy.resolve("all", None)


def test_trials_below_target_fail_the_trial_gate_only() -> None:
    results = trials(SUCCESS, BELOW)
    assert not judged(TRIAL, results).passed
    assert not judged(TRIAL, results).tasks[0].passed
    assert judged(AGGREGATE, results).passed
    assert judged(NONE, results).passed


def test_all_successes_pass_every_gate() -> None:
    for policy in (TRIAL, AGGREGATE, NONE, GatePolicy("aggregate", 1.0)):
        assert judged(policy, trials(SUCCESS, SUCCESS)).passed


def test_a_missing_trial_fails_the_run_unless_it_is_only_recorded() -> None:
    missing = (TrialId("toy", "research", "m", 9),)
    for policy, verdict_passes, run_passes in (
        (TRIAL, True, False),
        (AGGREGATE, False, False),
        (NONE, True, True),
    ):
        gate = judged(policy, trials(SUCCESS), missing)
        assert [v.passed for v in gate.verdicts] == [verdict_passes] * 2
        assert [v.incomplete for v in gate.verdicts] == [True, True]
        assert gate.passed is run_passes
        assert "1 not_run" in gate.tasks[0].explanation


@pytest.mark.parametrize("error", [Outcome.INFRA_ERROR, Outcome.PROVIDER_ERROR, Outcome.TASK_ERROR])
def test_errors_that_are_not_the_agents_fail_the_aggregate_gate(error: Outcome) -> None:
    gate = judged(AGGREGATE, [*trials(SUCCESS, error), *trials(SUCCESS, SUCCESS, task="other")])
    assert not gate.passed
    assert [(v.task, v.passed) for v in gate.tasks] == [("other", True), ("toy", False)]
    assert f"1 {error.value}" in gate.tasks[1].explanation


@pytest.mark.parametrize(
    "failure", [Outcome.AGENT_ERROR, Outcome.NO_SUBMISSION, Outcome.INVALID_SUBMISSION]
)
def test_the_agents_own_failures_are_data_to_the_aggregate_gate(failure: Outcome) -> None:
    assert judged(AGGREGATE, trials(failure, failure)).passed


def test_the_floor_is_one_number_for_the_mean_over_tasks() -> None:
    results = [*trials(SUCCESS, SUCCESS, task="a"), *trials(BELOW, BELOW, task="b")]
    assert judged(GatePolicy("aggregate", 0.5), results).passed
    gate = judged(GatePolicy("aggregate", 0.51), results)
    assert not gate.passed
    assert [v.passed for v in gate.tasks] == [True, True]
    (suite,) = gate.suites
    assert not suite.passed
    assert (
        suite.explanation
        == "mean success rate 0.5 [0.00, 1.00] over 2 tasks; need: mean success rate of at least"
        " 0.51, nothing missing; 2 below_threshold"
    )


def test_a_mean_that_equals_the_floor_but_for_rounding_passes() -> None:
    results = [
        r
        for t, n in (("a", 1), ("b", 2), ("c", 0))
        for r in trials(*[SUCCESS] * n, *[BELOW] * (3 - n), task=t)
    ]
    assert judged(GatePolicy("aggregate", 1 / 3), results).passed


def test_a_missing_trial_fails_the_floor_even_when_the_mean_reaches_it() -> None:
    missing = (TrialId("toy", "research", "m", 9),)
    gate = judged(GatePolicy("aggregate", 0.1), trials(SUCCESS), missing)
    assert not gate.suites[0].passed


def test_the_control_has_no_floor_beside_an_agent() -> None:
    control = trials(BELOW, agent="baseline", model="")
    policy = GatePolicy("aggregate", 0.5)
    assert judged(policy, [*control, *trials(SUCCESS)]).passed
    assert not judged(policy, control).passed
    assert judged(AGGREGATE, control).passed


def test_every_agent_must_reach_the_floor() -> None:
    results = [*trials(SUCCESS, model="good"), *trials(BELOW, model="bad")]
    gate = judged(GatePolicy("aggregate", 0.5), results)
    assert [(v.model, v.passed) for v in gate.suites] == [("bad", False), ("good", True)]


def test_verdicts_have_stable_names_figures_and_text() -> None:
    gate = judged(AGGREGATE, trials(SUCCESS, SUCCESS, BELOW, NOT_RUN, model="openai/gpt-5"))
    task, suite = gate.verdicts
    assert (task.name, suite.name) == ("toy-research-openai-gpt-5", "suite-research-openai-gpt-5")
    assert task.value == 0.5
    assert task.interval == pytest.approx((0.0676, 0.9324), abs=1e-4)
    assert (
        task.explanation
        == "success rate 2/4 = 0.50 [0.07, 0.93]; need: every planned trial ends in a result of the"
        " agent's own; 1 below_threshold, 1 not_run"
    )


def test_the_word_tells_missing_trials_from_failed_ones() -> None:
    missing = (TrialId("toy", "research", "m", 9),)
    assert judged(TRIAL, trials(SUCCESS)).word == "passed"
    assert judged(TRIAL, trials(SUCCESS), missing).word == "INCOMPLETE"
    assert judged(TRIAL, trials(SUCCESS, BELOW), missing).word == "FAILED"
    assert judged(AGGREGATE, trials(SUCCESS), missing).word == "FAILED"
    assert judged(NONE, trials(BELOW)).word == "recorded only"


@given(
    policy=st.sampled_from([TRIAL, AGGREGATE, NONE, GatePolicy("aggregate", 0.5)]),
    ended=st.dictionaries(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.sampled_from([("research", "m"), ("research", "n"), ("baseline", "")]),
        ),
        st.lists(st.sampled_from(list(Outcome)), min_size=1, max_size=3),
        min_size=1,
        max_size=4,
    ),
)
def test_of_all_outcomes_under_all_gates(
    policy: GatePolicy, ended: dict[tuple[str, tuple[str, str]], list[Outcome]]
) -> None:
    results = [
        result
        for (task, (agent, model)), outcomes in ended.items()
        for result in trials(*outcomes, task=task, agent=agent, model=model)
    ]
    gate = judged(policy, results)
    agents = {agent for _, (agent, _) in ended}
    own = [outcome.is_agents for outcomes in ended.values() for outcome in outcomes]
    assert gate.nothing_ran is not any(own)
    for verdict in gate.verdicts:
        about = [
            outcome
            for (task, subject), outcomes in ended.items()
            if subject == (verdict.agent, verdict.model) and verdict.task in ("", task)
            for outcome in outcomes
        ]
        shown = any(outcome.is_agents for outcome in about)
        none_ran = set(about) == {NOT_RUN}
        # passed is said of trials that ran, and never of none
        assert shown or not verdict.passed
        assert verdict.status != "skipped" or not shown
        if none_ran and (verdict.task or gate.nothing_ran or policy.mode != "aggregate"):
            assert verdict.status == "skipped"
        # the control beside another agent is measured only
        if is_measured_only(TrialId(verdict.task, verdict.agent, verdict.model, 1), agents):
            assert not verdict.failed
        elif policy is TRIAL and any(o not in (SUCCESS, NOT_RUN) for o in about):
            assert verdict.failed
        if policy is NONE:
            assert not verdict.failed
    if policy is not NONE and any(v.failed or v.incomplete for v in gate.verdicts):
        assert not gate.passed
    successes = [t for (t, (a, _)), o in ended.items() if a == "baseline" and SUCCESS in o]
    assert len(gate.warnings) == len(successes)
    assert all(f"of {task}:" in "".join(gate.warnings) for task in successes)


def test_the_control_is_judged_where_it_is_the_only_agent() -> None:
    assert judged(TRIAL, trials(BELOW, agent="baseline", model="")).word == "FAILED"
    beside = judged(TRIAL, [*trials(BELOW, agent="baseline", model=""), *trials(SUCCESS)])
    assert (beside.word, beside.warnings) == ("passed", ())
