"""The gate: whether a run passes; one verdict for each task and one for each subject's suite.

- ``trial``: every trial must succeed. A verdict fails when a trial that ran did not; the run also
  fails when a trial is missing.
- ``aggregate``: trials below their target are data. A verdict fails when the run is incomplete: a
  planned trial has no result, or ended in an infra, provider or task error. With ``fail_under``, a
  subject's suite verdict also fails when its mean success rate over tasks (every planned trial
  counted) is below that number, as with coverage's ``--fail-under``; single tasks have no floor.
  ``fail_under`` does not judge the control agent, unless it is the only agent of the run.
- ``none``: everything is recorded, nothing fails.

A verdict about trials of which none shows what the agent can do (none ran, or, under ``none``, all
ended in errors that are not the agent's) is skipped: it neither passes nor fails. Under
``aggregate`` the suite's verdict still fails when other subjects of the run have run, because the
run is incomplete. The control agent is measured beside other agents: its verdicts never fail, and
its successes are warnings, because they mean that the threshold lies in the baseline's own noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_mlab.core.aggregate import CONTROL_AGENT, Rate, SubjectSummary, TaskSummary
from pytest_mlab.core.statistics import Interval
from pytest_mlab.core.trial import Outcome, TrialId
from pytest_mlab.errors import ConfigError

GateMode = Literal["trial", "aggregate", "none"]
GATE_MODES: tuple[GateMode, ...] = get_args(GateMode)

Status = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class GatePolicy:
    """How a run is judged. ``fail_under`` (0 to 1) is the least mean success rate; it needs
    ``aggregate``."""

    mode: GateMode = "trial"
    fail_under: float | None = None

    def __post_init__(self) -> None:
        if self.mode not in GATE_MODES:
            raise ConfigError(f"gate {self.mode!r} is unknown; choose from {', '.join(GATE_MODES)}")
        if self.fail_under is None:
            return
        if not 0 <= self.fail_under <= 1:
            raise ConfigError(
                f"fail-under is {self.fail_under!r}; give a success rate from 0 to 1, such as 0.25"
            )
        if self.mode != "aggregate":
            raise ConfigError(
                f"fail-under judges the mean success rate and gate={self.mode} does not; "
                "use gate=aggregate with it, or leave one of the two out"
            )

    @classmethod
    def resolve(cls, mode: str | None, fail_under: float | None) -> GatePolicy:
        """The policy for a user's options; ``fail_under`` alone implies ``aggregate``.

        Raises ConfigError."""
        if mode is None:
            mode = "trial" if fail_under is None else "aggregate"
        return cls(mode, fail_under)  # type: ignore[arg-type]  # checked in __post_init__


@dataclass(frozen=True)
class Verdict:
    """The gate's decision on one task (or, with ``task`` '', on the suite) for one subject.

    ``value`` and ``interval`` are the success rate that was judged; ``need`` is the condition to
    pass; ``explanation`` joins the figures, ``need`` and the other outcomes in one line.
    ``incomplete``: a trial is missing or ended in an error that is not the agent's."""

    task: str
    agent: str
    model: str
    status: Status
    incomplete: bool
    value: float | None
    interval: Interval | None
    need: str
    explanation: str

    @property
    def passed(self) -> bool:
        """False for one that failed, and for one that has nothing to judge."""
        return self.status == "passed"

    @property
    def failed(self) -> bool:
        """True when it fails the session."""
        return self.status == "failed"

    @property
    def name(self) -> str:
        """A stable id, such as ``cifar10-research-gpt-4-turbo`` or
        ``suite-research-gpt-4-turbo``."""
        # A verdict is of no single repeat, so the 0 is taken off again.
        return TrialId(self.task or "suite", self.agent, self.model, 0).name.removesuffix("-0")


@dataclass(frozen=True)
class GateResult:
    """All verdicts of a run: ``tasks`` for each task and subject, ``suites`` for each subject.

    ``nothing_ran``: no trial of the run shows what its agent can do. ``warnings`` are sentences
    about successes of the control agent."""

    policy: GatePolicy
    tasks: tuple[Verdict, ...]
    suites: tuple[Verdict, ...]
    nothing_ran: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Tasks first, then suites."""
        return self.tasks + self.suites

    @property
    def passed(self) -> bool:
        """Whether the whole run passes. With missing trials it does so under ``none`` only."""
        if self.policy.mode == "none":
            return True
        return all(v.passed and not v.incomplete for v in self.verdicts)

    @property
    def word(self) -> str:
        """``passed``, ``FAILED``, ``recorded only`` (no gate) or ``INCOMPLETE`` (no verdict failed,
        but trials are missing)."""
        if self.policy.mode == "none":
            return "recorded only"
        if self.passed:
            return "passed"
        return "FAILED" if any(v.failed for v in self.verdicts) else "INCOMPLETE"


def judge_run(subjects: Sequence[SubjectSummary], policy: GatePolicy) -> GateResult:
    """Judge all subjects of a run."""
    # The control agent is expected to miss its target, so judging it would fail every run. Alone,
    # it is what the run is about.
    beside = not all(s.is_control for s in subjects)
    nothing_ran = not any(_shows_agents(s.tasks) for s in subjects)
    tasks = tuple(
        _judge_task(s, t, policy, control=s.is_control and beside)
        for s in subjects
        for t in s.tasks
    )
    suites = tuple(
        _judge_suite(s, policy, control=s.is_control and beside, alone=nothing_ran)
        for s in subjects
    )
    return GateResult(policy, tasks, suites, nothing_ran, tuple(_warnings(subjects)))


def is_measured_only(trial: TrialId, agents: Iterable[str]) -> bool:
    """True for a trial of the control agent beside any other of the run's ``agents`` (names)."""
    return trial.agent == CONTROL_AGENT and any(agent != CONTROL_AGENT for agent in agents)


def _warnings(subjects: Sequence[SubjectSummary]) -> Iterator[str]:
    for subject in subjects:
        for task in subject.tasks:
            if subject.is_control and task.rate.successes:
                yield (
                    f"the control agent {subject.agent}, which only runs the starter code,"
                    f" succeeds in {task.rate.successes} of {task.planned} trials of {task.task}:"
                    " the threshold lies in the noise of the baseline, and a success shows little"
                )


def rate_text(rate: Rate) -> str:
    """Such as ``3/8 = 0.38 [0.09, 0.76]``."""
    if rate.value is None:
        return "0/0"
    return f"{rate.successes}/{rate.n} = {rate.value:.2f}{interval_text(rate.interval)}"


def interval_text(interval: Interval | None) -> str:
    """Such as `` [0.09, 0.76]``, or '' when there is none."""
    return "" if interval is None else f" [{interval.low:.2f}, {interval.high:.2f}]"


def _judge_task(
    subject: SubjectSummary, task: TaskSummary, policy: GatePolicy, *, control: bool
) -> Verdict:
    status, need = _decide([task], policy, control=control)
    if task.outcomes[Outcome.NOT_RUN] == task.planned:
        status = "skipped"
    return Verdict(
        task=task.task,
        agent=subject.agent,
        model=subject.model,
        status=status,
        incomplete=_is_incomplete([task]),
        value=task.rate.value,
        interval=task.rate.interval,
        need=need,
        explanation=_explain(f"success rate {rate_text(task.rate)}", need, [task]),
    )


def _judge_suite(
    subject: SubjectSummary, policy: GatePolicy, *, control: bool, alone: bool
) -> Verdict:
    """``alone``: no other subject of the run has anything to judge either."""
    status, need = _decide(subject.tasks, policy, control=control)
    if policy.fail_under is not None and not control:
        if status == "passed" and not _reaches(subject.rate, policy.fail_under):
            status = "failed"
        need = f"mean success rate of at least {policy.fail_under:.4g}, nothing missing"
    not_run = len(subject.missing) == subject.planned
    if not_run and (alone or control or policy.mode != "aggregate"):
        status = "skipped"
    mean = "mean success rate unknown"
    if subject.rate is not None:
        mean = f"mean success rate {subject.rate:.4g}{interval_text(subject.interval)}"
    count = len(subject.tasks)
    mean += f" over {count} task{'' if count == 1 else 's'}"
    return Verdict(
        task="",
        agent=subject.agent,
        model=subject.model,
        status=status,
        incomplete=_is_incomplete(subject.tasks),
        value=subject.rate,
        interval=subject.interval,
        need=need,
        explanation=_explain(mean, need, subject.tasks),
    )


def _decide(
    tasks: Sequence[TaskSummary], policy: GatePolicy, *, control: bool
) -> tuple[Status, str]:
    """How ``tasks``, some of which ran, are judged, whatever ``fail_under`` is; and the condition
    in words."""
    if control or policy.mode == "none":
        need = "nothing (the control)" if control else "nothing (record only)"
        return "passed" if _shows_agents(tasks) else "skipped", need
    if policy.mode == "trial":
        ran = sum(task.planned - task.outcomes[Outcome.NOT_RUN] for task in tasks)
        passed = sum(task.rate.successes for task in tasks) == ran
        return "passed" if passed else "failed", "every trial succeeds"
    need = "every planned trial ends in a result of the agent's own"
    return "failed" if _is_incomplete(tasks) else "passed", need


def _shows_agents(tasks: Iterable[TaskSummary]) -> bool:
    """True when any trial ended in an outcome of the agent's own."""
    return any(n and outcome.is_agents for task in tasks for outcome, n in task.outcomes.items())


def _reaches(rate: float | None, floor: float) -> bool:
    if rate is None:
        return False
    # The mean of rates may miss the floor by rounding alone: 0.1 + 0.2 must reach 0.3.
    return rate >= floor or math.isclose(rate, floor, rel_tol=1e-9, abs_tol=1e-12)


def _is_incomplete(tasks: Sequence[TaskSummary]) -> bool:
    return any(
        n and not outcome.is_agents for task in tasks for outcome, n in task.outcomes.items()
    )


def _explain(figure: str, need: str, tasks: Sequence[TaskSummary]) -> str:
    """The figure, the need, and how many trials ended otherwise than in success, such as
    ``2 below_threshold, 1 not_run``."""
    counts = {o: sum(t.outcomes[o] for t in tasks) for o in Outcome if o is not Outcome.SUCCESS}
    others = ", ".join(f"{n} {outcome.value}" for outcome, n in counts.items() if n)
    return "; ".join(filter(None, (figure, f"need: {need}", others)))
