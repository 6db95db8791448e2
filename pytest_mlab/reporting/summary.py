"""``summary.json``: a run's figures for programs.

Format 1. In every subject and task:

- ``success`` depends on the trials' outcomes alone: equal outcomes give equal values, in whatever
  order and on however many workers the trials ran;
- ``improvement`` depends on the measured scores;
- ``efficiency`` holds what the trials used, wall time among it.

``spending`` is what all model calls of all sessions cost, those of attempts that were lost
included.

``null`` is what is unknown or cannot be estimated; fields are added and never change their meaning.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from pytest_mlab.core.aggregate import Efficiency, SubjectSummary, TaskSummary
from pytest_mlab.core.gate import GateResult
from pytest_mlab.core.statistics import Interval
from pytest_mlab.core.trial import TrialResult
from pytest_mlab.reporting.figures import RunFigures

FORMAT_VERSION = 1


def summary(figures: RunFigures) -> dict[str, Any]:
    """The figures as plain values."""
    plan = figures.run.plan
    settings = plan.settings
    return {
        "format_version": FORMAT_VERSION,
        "run": {
            "id": plan.run_id,
            "suites": sorted({task.suite for task in plan.tasks}),
            "tasks": {task.name: task.digest for task in plan.tasks},
            "agents": {agent.name: agent.digest for agent in plan.agents},
            "agent_settings": {agent.name: dict(agent.settings) for agent in plan.agents},
            "identity": figures.run.identity,
        },
        "conditions": {
            "data": settings.data,
            "sandbox": settings.sandbox,
            "network": settings.network,
            "repeats": settings.repeats,
            "threshold": settings.threshold,
            "replayed_from": settings.replay or None,
            "replay_mode": settings.replay_mode if settings.replay else None,
            **asdict(settings.budget),
        },
        "spending": {
            "cost_usd": figures.spending.dollars,
            "calls": figures.spending.calls,
            "unpriced_calls": figures.spending.unpriced,
            "run_max_cost_usd": settings.run_max_cost,
        },
        "planned": len(plan.trials),
        "missing": [{"trial": r.id.name, "reason": r.reason} for r in figures.missing],
        "gate": _gate(figures.gate),
        "subjects": [_subject(s) for s in figures.subjects],
    }


def summary_text(figures: RunFigures) -> str:
    """:func:`summary` as JSON text."""
    return json.dumps(summary(figures), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _subject(subject: SubjectSummary) -> dict[str, Any]:
    return {
        "subject": subject.subject,
        "agent": subject.agent,
        "model": subject.model,
        "is_control": subject.is_control,
        "data": subject.conditions.data,
        "sandbox": subject.conditions.sandbox,
        "success": {
            "rate": subject.rate,
            "interval": _interval(subject.interval),
            "successes": subject.successes,
            "planned": subject.planned,
            "rate_without_errors": subject.valid_rate,
            "left_out": subject.excluded,
            "pass_at": _by_k(subject.pass_at),
            "pass_hat": _by_k(subject.pass_hat),
            "control_rate": subject.control,
        },
        "improvement": {
            "mean": subject.gain,
            "interval": _interval(subject.gain_interval),
            "tasks": subject.gain_tasks,
        },
        "efficiency": _efficiency(subject.efficiency),
        "tasks": [_task(t) for t in subject.tasks],
    }


def _task(task: TaskSummary) -> dict[str, Any]:
    return {
        "task": task.task,
        "success": {
            "rate": task.rate.value,
            "interval": _interval(task.rate.interval),
            "successes": task.rate.successes,
            "planned": task.planned,
            "outcomes": {outcome.value: n for outcome, n in task.outcomes.items()},
            "rate_without_errors": task.valid_rate.value,
            "interval_without_errors": _interval(task.valid_rate.interval),
            "left_out": task.excluded,
            "pass_at": _by_k(task.pass_at),
            "pass_hat": _by_k(task.pass_hat),
            "control_rate": None if task.control is None else task.control.value,
        },
        "improvement": {
            "mean": task.gain.mean,
            "median": task.gain.median,
            "interval": _interval(task.gain.interval),
            "valid_submissions": task.gain.n,
            "median_score": task.median_score,
            "successes_within_noise": task.successes_within_noise,
        },
        "efficiency": _efficiency(task.efficiency),
        "trials": [_trial(r) for r in task.results],
    }


def _trial(result: TrialResult) -> dict[str, Any]:
    ledger = result.ledger
    return {
        "trial": result.id.name,
        "repeat": result.id.repeat,
        "folder": str(result.id.folder),
        "outcome": result.outcome.value,
        "reason": result.reason,
        "score": result.score,
        "baseline": result.baseline,
        "needed": result.needed,
        "improvement": result.improvement,
        "within_noise": result.within_noise,
        "notes": list(result.notes),
        "ended_by": None if result.ended_by is None else result.ended_by.value,
        "efficiency": {
            "steps": ledger.steps,
            "seconds": ledger.seconds,
            "waited_seconds": ledger.waited,
            "evaluation_seconds": result.evaluation_seconds,
            "prompt_tokens": ledger.usage.prompt_tokens,
            "completion_tokens": ledger.usage.completion_tokens,
            "model_calls": ledger.model_calls,
            "cost_usd": ledger.known_cost,
        },
    }


def _efficiency(used: Efficiency) -> dict[str, Any]:
    return {
        "trials": used.n,
        "steps": used.steps,
        "seconds": used.seconds,
        "waited_seconds": used.waited,
        "evaluation_seconds": used.evaluation_seconds,
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "model_calls": used.model_calls,
        "cost_usd": used.cost,
        "cost_usd_per_trial": used.cost_per_trial,
        "cost_usd_per_success": used.cost_per_success,
        "median_steps": used.median_steps,
        "median_seconds": used.median_seconds,
        "median_tokens": used.median_tokens,
    }


def _gate(gate: GateResult) -> dict[str, Any]:
    return {
        "mode": gate.policy.mode,
        "fail_under": gate.policy.fail_under,
        "passed": gate.passed,
        "verdicts": [
            {
                "name": v.name,
                "task": v.task or None,
                "agent": v.agent,
                "model": v.model,
                "passed": v.passed,
                "incomplete": v.incomplete,
                "explanation": v.explanation,
            }
            for v in gate.verdicts
        ],
    }


def _interval(found: Interval | None) -> list[float] | None:
    return None if found is None else [found.low, found.high]


def _by_k(found: Any) -> dict[str, float]:
    return {str(k): value for k, value in found.items()}
