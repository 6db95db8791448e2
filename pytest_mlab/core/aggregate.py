"""From planned trials and their results to success rates, improvements and costs.

Figures are grouped by subject (agent and model) and by conditions (data variant, sandbox, budget):
two conditions are never mixed in one figure. Inside a group every planned trial has exactly one
outcome, ``not_run`` when there is no result. Nothing here depends on the order in which trials
ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, inf

from pytest_mlab.core.budget import Budget, Ledger
from pytest_mlab.core.statistics import (
    Interval,
    bootstrap_mean_interval,
    clustered_mean_interval,
    mean,
    median,
    pass_at_k,
    pass_hat_k,
    proportion_interval,
)
from pytest_mlab.core.trial import Outcome, TrialId, TrialResult

CONTROL_AGENT = "baseline"


@dataclass(frozen=True)
class Conditions:
    """Settings that must be equal for two trials to count in one figure."""

    data: str
    sandbox: str
    budget: Budget


@dataclass(frozen=True)
class Rate:
    """``successes`` of ``n`` with the exact 95 % interval; ``value`` and ``interval`` are None for
    n = 0."""

    successes: int
    n: int
    value: float | None
    interval: Interval | None

    @classmethod
    def of(cls, successes: int, n: int) -> Rate:
        """The rate and its interval."""
        return cls(successes, n, successes / n if n else None, proportion_interval(successes, n))


@dataclass(frozen=True)
class Gain:
    """Relative improvement over the baseline, over the ``n`` valid submissions (0.1 is 10 %).

    None is unknown: there are no valid submissions, or too few for an interval."""

    n: int
    mean: float | None
    median: float | None
    interval: Interval | None


@dataclass(frozen=True)
class Efficiency:
    """What the ``n`` trials that ran used: totals, and medians per trial.

    ``answered`` counts the answered model calls by model, as far as results hold it;
    ``unanswered``: models were to be called, and no call was answered. ``cost``, ``cost_per_trial``
    and ``cost_per_success`` are in dollars, and None when the price of any call is unknown, or when
    none was answered. ``cost_per_success`` is
    the cost of all trials, failed ones included, for each success; None without a success."""

    n: int
    steps: int
    seconds: float
    waited: float
    evaluation_seconds: float
    prompt_tokens: int
    completion_tokens: int
    model_calls: int
    answered: Mapping[str, int]
    unanswered: bool
    cost: float | None
    cost_per_trial: float | None
    cost_per_success: float | None
    median_steps: float | None
    median_seconds: float | None
    median_tokens: float | None

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens of all trials."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class TaskSummary:
    """One task for one subject under one set of conditions.

    ``rate`` is over every planned trial; ``valid_rate`` leaves out the ``excluded`` ones (infra,
    provider and task errors, not run). ``successes_within_noise`` of the successes may be the
    baseline's own noise. ``control`` is the rate of the control agent on the same task under the
    same conditions, when it was in the run."""

    task: str
    outcomes: Mapping[Outcome, int]
    rate: Rate
    valid_rate: Rate
    excluded: int
    pass_at: Mapping[int, float]
    pass_hat: Mapping[int, float]
    gain: Gain
    median_score: float | None
    successes_within_noise: int
    efficiency: Efficiency
    results: tuple[TrialResult, ...]
    control: Rate | None = None

    @property
    def planned(self) -> int:
        """Number of planned trials."""
        return self.rate.n

    @property
    def missing(self) -> tuple[TrialId, ...]:
        """Trials that were not run."""
        return tuple(r.id for r in self.results if r.outcome is Outcome.NOT_RUN)


@dataclass(frozen=True)
class SubjectSummary:
    """One agent with one model under one set of conditions, over its tasks.

    ``rate`` is the mean of the tasks' rates (every task weighs the same); ``interval`` is clustered
    by task, see :func:`pytest_mlab.core.statistics.clustered_mean_interval`. ``valid_rate`` is the
    mean over the tasks that have a trial left when errors are left out; ``excluded`` counts the
    trials left out. ``gain`` is the mean over tasks of their mean improvement, ``gain_tasks`` the
    number of tasks with a valid submission."""

    agent: str
    model: str
    conditions: Conditions
    tasks: tuple[TaskSummary, ...]
    rate: float | None
    interval: Interval | None
    valid_rate: float | None
    excluded: int
    pass_at: Mapping[int, float]
    pass_hat: Mapping[int, float]
    gain: float | None
    gain_interval: Interval | None
    gain_tasks: int
    efficiency: Efficiency
    control: float | None = None

    @property
    def subject(self) -> str:
        """Agent and model as one word, as in folders."""
        return TrialId("", self.agent, self.model, 0).subject

    @property
    def is_control(self) -> bool:
        """True for the agent that runs the starter code and submits."""
        return self.agent == CONTROL_AGENT

    @property
    def planned(self) -> int:
        """Number of planned trials."""
        return sum(t.planned for t in self.tasks)

    @property
    def successes(self) -> int:
        """Number of successful trials."""
        return sum(t.rate.successes for t in self.tasks)

    @property
    def missing(self) -> tuple[TrialId, ...]:
        """Trials that were not run."""
        return tuple(i for t in self.tasks for i in t.missing)


def complete(
    trials: Iterable[TrialId], results: Mapping[TrialId, TrialResult]
) -> tuple[TrialResult, ...]:
    """Exactly one result for every planned trial, sorted; a trial without a result is ``not_run``.

    Raises ValueError for a trial that is planned twice, because it would count double.
    """
    planned = list(trials)
    twice = [i.name for i, n in Counter(planned).items() if n > 1]
    if twice:
        raise ValueError(f"planned more than once: {', '.join(sorted(twice))}")
    return tuple(
        # A trial that is missing stays in the denominator. Without this, a run that broke off would
        # have a better rate.
        results.get(i) or TrialResult(i, Outcome.NOT_RUN, "there is no result")
        for i in sorted(planned)
    )


def summarize(
    trials: Iterable[TrialId], results: Mapping[TrialId, TrialResult], conditions: Conditions
) -> tuple[SubjectSummary, ...]:
    """Summaries of all subjects, sorted by agent, model and conditions.

    ``conditions`` are the plan's; a result with another data variant or sandbox goes into a group
    of its own."""
    groups: dict[tuple[str, str, Conditions], dict[str, list[TrialResult]]] = {}
    for result in complete(trials, results):
        own = replace(
            conditions,
            data=result.data or conditions.data,
            sandbox=result.sandbox or conditions.sandbox,
        )
        tasks = groups.setdefault((result.id.agent, result.id.model, own), {})
        tasks.setdefault(result.id.task, []).append(result)
    subjects = [
        summarize_subject(
            agent,
            model,
            own,
            [summarize_task(task, found) for task, found in sorted(tasks.items())],
        )
        for (agent, model, own), tasks in groups.items()
    ]
    subjects.sort(key=lambda s: (s.agent, s.model, s.conditions.data, s.conditions.sandbox))
    return tuple(_with_control(s, subjects) for s in subjects)


def summarize_task(task: str, results: Sequence[TrialResult]) -> TaskSummary:
    """One task's figures, from one result for every planned trial."""
    ordered = tuple(sorted(results, key=lambda r: r.id))
    n = len(ordered)
    successes = sum(r.outcome is Outcome.SUCCESS for r in ordered)
    valid = sum(r.outcome.is_agents for r in ordered)
    counted = Counter(r.outcome for r in ordered)
    ks = _ks(n)
    return TaskSummary(
        task=task,
        outcomes={outcome: counted.get(outcome, 0) for outcome in Outcome},
        rate=Rate.of(successes, n),
        valid_rate=Rate.of(successes, valid),
        excluded=n - valid,
        pass_at={k: pass_at_k(n, successes, k) for k in ks},
        pass_hat={k: pass_hat_k(n, successes, k) for k in ks},
        gain=_gain(ordered),
        median_score=median(
            [r.score for r in ordered if r.outcome.is_scored and r.score is not None]
        ),
        successes_within_noise=sum(
            r.outcome is Outcome.SUCCESS and r.within_noise is True for r in ordered
        ),
        efficiency=_efficiency(ordered),
        results=ordered,
    )


def summarize_subject(
    agent: str, model: str, conditions: Conditions, tasks: Sequence[TaskSummary]
) -> SubjectSummary:
    """One subject's figures: means over its tasks, in which every task has the same weight."""
    rates = [t.rate.value for t in tasks if t.rate.value is not None]
    gains = [t.gain.mean for t in tasks if t.gain.mean is not None]
    # A k that one task has no trials for is left out: its mean would be over another set of tasks
    # than the others.
    common = [k for k in (tasks[0].pass_at if tasks else ()) if all(k in t.pass_at for t in tasks)]
    return SubjectSummary(
        agent=agent,
        model=model,
        conditions=conditions,
        tasks=tuple(tasks),
        rate=mean(rates),
        interval=clustered_mean_interval(rates, 0.0, 1.0),
        valid_rate=mean([t.valid_rate.value for t in tasks if t.valid_rate.value is not None]),
        excluded=sum(t.excluded for t in tasks),
        pass_at={k: mean([t.pass_at[k] for t in tasks]) or 0.0 for k in common},
        pass_hat={k: mean([t.pass_hat[k] for t in tasks]) or 0.0 for k in common},
        gain=mean(gains),
        gain_interval=clustered_mean_interval(gains, -inf, inf),
        gain_tasks=len(gains),
        efficiency=_efficiency([r for t in tasks for r in t.results]),
    )


def _ks(n: int) -> list[int]:
    """The k of pass@k: powers of two below ``n``, and ``n``."""
    return [k for k in (1, 2, 4, 8, 16, 32, 64) if k < n] + ([n] if n else [])


def _gain(results: Sequence[TrialResult]) -> Gain:
    values = [r.improvement for r in results if r.outcome.is_scored and r.improvement is not None]
    return Gain(len(values), mean(values), median(values), bootstrap_mean_interval(values))


def _efficiency(results: Sequence[TrialResult]) -> Efficiency:
    ran = [r for r in results if r.outcome is not Outcome.NOT_RUN]
    ledgers = [r.ledger for r in ran]
    answered: Counter[str] = Counter()
    for result in ran:
        answered.update(result.answered or {})
    unanswered = _is_unanswered(ran)
    cost = None if unanswered else _cost(ledgers)
    return Efficiency(
        n=len(ran),
        steps=sum(ledger.steps for ledger in ledgers),
        seconds=fsum(ledger.seconds for ledger in ledgers),
        waited=fsum(ledger.waited for ledger in ledgers),
        evaluation_seconds=fsum(r.evaluation_seconds for r in ran),
        prompt_tokens=sum(ledger.usage.prompt_tokens for ledger in ledgers),
        completion_tokens=sum(ledger.usage.completion_tokens for ledger in ledgers),
        model_calls=sum(ledger.model_calls for ledger in ledgers),
        answered=dict(sorted(answered.items())),
        unanswered=unanswered,
        cost=cost,
        cost_per_trial=_share(cost, len(ran)),
        cost_per_success=_share(cost, sum(r.outcome is Outcome.SUCCESS for r in ran)),
        median_steps=median([ledger.steps for ledger in ledgers]),
        median_seconds=median([ledger.seconds for ledger in ledgers]),
        median_tokens=median([ledger.usage.total for ledger in ledgers]),
    )


def _is_unanswered(ran: Sequence[TrialResult]) -> bool:
    """True when models were to be called and no call was answered: no dollars were spent then, but
    none would say what the trials cost."""
    return bool(ran) and any(r.id.model for r in ran) and all(r.unanswered for r in ran)


def _cost(ledgers: Sequence[Ledger]) -> float | None:
    # A sum without the unknown prices would look like the whole cost.
    known = [price for ledger in ledgers if (price := ledger.known_cost) is not None]
    return fsum(known) if len(known) == len(ledgers) else None


def _share(cost: float | None, parts: int) -> float | None:
    return None if cost is None or parts == 0 else cost / parts


def _with_control(subject: SubjectSummary, subjects: Sequence[SubjectSummary]) -> SubjectSummary:
    controls = [s for s in subjects if s.is_control and s.conditions == subject.conditions]
    if subject.is_control or not controls:
        return subject
    rates = {t.task: t.rate for t in controls[0].tasks}
    tasks = tuple(replace(t, control=rates.get(t.task)) for t in subject.tasks)
    shared = [
        t.control.value for t in tasks if t.control is not None and t.control.value is not None
    ]
    return replace(subject, tasks=tasks, control=mean(shared))
