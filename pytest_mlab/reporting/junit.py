"""JUnit's properties of trials, of the gate's verdicts and of the whole suite: names and values."""

from __future__ import annotations

import os

from pytest_mlab.core.aggregate import SubjectSummary
from pytest_mlab.core.gate import Verdict
from pytest_mlab.core.trial import TrialResult
from pytest_mlab.core.wire import Builtin, to_wire
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.reporting.figure_table import Cell, properties
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
        "mlab.tools_by_text": ", ".join(result.tools_by_text) or None,
        "mlab.ended_by": None if result.ended_by is None else result.ended_by.value,
        "mlab.steps": ledger.steps,
        "mlab.seconds": ledger.seconds,
        "mlab.waited_seconds": ledger.waited,
        "mlab.evaluation_seconds": result.evaluation_seconds,
        "mlab.model_calls": ledger.model_calls,
        "mlab.answered_calls": _by_model(result),
        "mlab.prompt_tokens": ledger.usage.prompt_tokens,
        "mlab.completion_tokens": ledger.usage.completion_tokens,
        "mlab.cost_usd": result.cost,
        "mlab.data": result.data or None,
        "mlab.data_digest": result.data_digest or None,
        "mlab.sandbox": result.sandbox or None,
        "mlab.trace": trace_path or None,
    }
    return to_wire({name: value for name, value in values.items() if value is not None})


def _by_model(result: TrialResult) -> str | None:
    """How many calls each model answered, where there are several."""
    found = result.answered or {}
    return ", ".join(f"{model} {n}" for model, n in found.items()) if len(found) > 1 else None


def verdict_properties(figures: RunFigures, verdict: Verdict) -> list[tuple[str, Builtin]]:
    """The properties of a verdict's testcase; what is unknown is left out."""
    cell = _cell(figures, verdict)
    values: dict[str, object] = {
        "mlab.task": verdict.task or None,
        "mlab.agent": verdict.agent,
        "mlab.model": verdict.model or None,
        "mlab.success_rate": verdict.value,
        "mlab.success_rate_low": None if verdict.interval is None else verdict.interval.low,
        "mlab.success_rate_high": None if verdict.interval is None else verdict.interval.high,
        "mlab.incomplete": verdict.incomplete,
    }
    if cell is not None:
        values |= {f"mlab.{k}": value for k, value in properties(figures.table, cell).items()}
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
        ("mlab.replayed_from", settings.replay or None),
        ("mlab.gate", figures.gate.policy.mode),
        ("mlab.gate_passed", figures.gate.passed),
    ]
    for subject in figures.subjects:
        values: dict[str, object] = {
            "success_rate": subject.rate,
            "success_rate_low": None if subject.interval is None else subject.interval.low,
            "success_rate_high": None if subject.interval is None else subject.interval.high,
            **properties(figures.table, subject),
        }
        key = _key(figures, subject)
        found += [(f"mlab.{key}.{name}", value) for name, value in values.items()]
    return [(name, str(value)) for name, value in found if value is not None]


def _key(figures: RunFigures, subject: SubjectSummary) -> str:
    """The subject's name, with its conditions where another group has the same name."""
    # Names of properties are read by dashboards over many runs: conditions are added only where two
    # groups would share a name.
    alike = [s for s in figures.subjects if s.subject == subject.subject]
    if len(alike) == 1:
        return subject.subject
    return f"{subject.subject}.{subject.conditions.data}.{subject.conditions.sandbox}"


def _cell(figures: RunFigures, verdict: Verdict) -> Cell | None:
    """The figures that ``verdict`` is about."""
    for subject in figures.subjects:
        if (subject.agent, subject.model) == (verdict.agent, verdict.model):
            if not verdict.task:
                return subject
            for task in subject.tasks:
                if task.task == verdict.task:
                    return task
    return None
