"""What JUnit says beside the trials: properties of verdicts and of the whole suite. Names and
values only."""

from __future__ import annotations

import os

from pytest_mlab.core.aggregate import SubjectSummary, TaskSummary
from pytest_mlab.core.gate import Verdict
from pytest_mlab.core.trial import TrialResult
from pytest_mlab.core.wire import Builtin, to_wire
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.reporting.figures import RunFigures


def trial_properties(result: TrialResult, trace_path: str) -> list[tuple[str, Builtin]]:
    """A trial's result as properties of its test report, in JUnit and between workers.

    Unknown values (no score, unknown price) are left out: a property is either true or absent.
    ``trace_path`` is the path of trace.jsonl, relative to the folder in which the run started."""
    ledger = result.ledger
    values: dict[str, object] = {
        "mlab.task": result.id.task,
        "mlab.agent": result.id.agent,
        "mlab.model": result.id.model or None,
        "mlab.repeat": result.id.repeat,
        "mlab.outcome": result.outcome.value,
        "mlab.reason": Redactor(os.environ)(result.reason) or None,
        "mlab.score": result.score,
        "mlab.baseline": result.baseline,
        "mlab.needed": result.needed,
        "mlab.improvement": result.improvement,
        "mlab.within_noise": result.within_noise,
        "mlab.ended_by": None if result.ended_by is None else result.ended_by.value,
        "mlab.steps": ledger.steps,
        "mlab.seconds": ledger.seconds,
        "mlab.waited_seconds": ledger.waited,
        "mlab.evaluation_seconds": result.evaluation_seconds,
        "mlab.model_calls": ledger.model_calls,
        "mlab.prompt_tokens": ledger.usage.prompt_tokens,
        "mlab.completion_tokens": ledger.usage.completion_tokens,
        "mlab.cost_usd": ledger.known_cost,
        "mlab.data": result.data or None,
        "mlab.data_digest": result.data_digest or None,
        "mlab.sandbox": result.sandbox or None,
        "mlab.trace": trace_path or None,
    }
    return to_wire({name: value for name, value in values.items() if value is not None})


def verdict_properties(figures: RunFigures, verdict: Verdict) -> list[tuple[str, Builtin]]:
    """The properties of a verdict's testcase; what is unknown is left out."""
    subject, task = _found(figures, verdict)
    values: dict[str, object] = {
        "mlab.task": verdict.task or None,
        "mlab.agent": verdict.agent,
        "mlab.model": verdict.model or None,
        "mlab.success_rate": verdict.value,
        "mlab.success_rate_low": None if verdict.interval is None else verdict.interval.low,
        "mlab.success_rate_high": None if verdict.interval is None else verdict.interval.high,
        "mlab.incomplete": verdict.incomplete,
    }
    if task is not None:
        values |= _task_values(task)
    elif subject is not None:
        values |= _subject_values(subject)
    return to_wire({name: value for name, value in values.items() if value is not None})


def suite_properties(figures: RunFigures) -> list[tuple[str, str]]:
    """The properties of the whole testsuite, as texts: conditions, and one set of figures a
    subject."""
    plan = figures.run.plan
    settings = plan.settings
    found: list[tuple[str, object]] = [
        ("mlab.run", plan.run_id),
        ("mlab.data", settings.data),
        ("mlab.sandbox", settings.sandbox),
        ("mlab.max_steps", settings.budget.max_steps),
        ("mlab.max_seconds", settings.budget.max_seconds),
        ("mlab.repeats", settings.repeats),
        ("mlab.planned", len(plan.trials)),
        ("mlab.missing", len(figures.missing)),
        ("mlab.spent_usd", figures.spending.dollars if figures.spending.calls else None),
        ("mlab.run_max_cost_usd", settings.run_max_cost),
        *([("mlab.replayed_from", settings.replay)] if settings.replay else []),
        ("mlab.gate", figures.gate.policy.mode),
        ("mlab.gate_passed", figures.gate.passed),
    ]
    for subject in figures.subjects:
        values: dict[str, object] = {
            "success_rate": subject.rate,
            "success_rate_low": None if subject.interval is None else subject.interval.low,
            "success_rate_high": None if subject.interval is None else subject.interval.high,
        } | {name.removeprefix("mlab."): value for name, value in _subject_values(subject).items()}
        found += [
            (f"mlab.{_key(figures, subject)}.{name}", v)
            for name, v in values.items()
            if v is not None
        ]
    return [(name, str(value)) for name, value in found if value is not None]


def _key(figures: RunFigures, subject: SubjectSummary) -> str:
    """The subject's name, with its conditions where another group has the same name."""
    alike = [s for s in figures.subjects if s.subject == subject.subject]
    if len(alike) == 1:
        return subject.subject
    return f"{subject.subject}.{subject.conditions.data}.{subject.conditions.sandbox}"


def _found(
    figures: RunFigures, verdict: Verdict
) -> tuple[SubjectSummary | None, TaskSummary | None]:
    for subject in figures.subjects:
        if (subject.agent, subject.model) == (verdict.agent, verdict.model):
            if not verdict.task:
                return subject, None
            for task in subject.tasks:
                if task.task == verdict.task:
                    return subject, task
    return None, None


def _task_values(task: TaskSummary) -> dict[str, object]:
    used = task.efficiency
    return {
        "mlab.trials": task.planned,
        "mlab.successes": task.rate.successes,
        "mlab.success_rate_without_errors": task.valid_rate.value,
        "mlab.left_out": task.excluded,
        "mlab.not_run": len(task.missing),
        "mlab.control_rate": None if task.control is None else task.control.value,
        "mlab.median_score": task.median_score,
        "mlab.mean_improvement": task.gain.mean,
        "mlab.successes_within_noise": task.successes_within_noise,
        "mlab.steps": used.steps,
        "mlab.seconds": used.seconds,
        "mlab.waited_seconds": used.waited,
        "mlab.tokens": used.tokens,
        "mlab.cost_usd": used.cost,
        "mlab.cost_usd_per_success": used.cost_per_success,
    }


def _subject_values(subject: SubjectSummary) -> dict[str, object]:
    used = subject.efficiency
    return {
        "mlab.trials": subject.planned,
        "mlab.successes": subject.successes,
        "mlab.success_rate_without_errors": subject.valid_rate,
        "mlab.left_out": subject.excluded,
        "mlab.not_run": len(subject.missing),
        "mlab.control_rate": subject.control,
        "mlab.mean_improvement": subject.gain,
        "mlab.steps": used.steps,
        "mlab.seconds": used.seconds,
        "mlab.waited_seconds": used.waited,
        "mlab.tokens": used.tokens,
        "mlab.cost_usd": used.cost,
        "mlab.cost_usd_per_success": used.cost_per_success,
    }
