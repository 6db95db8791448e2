"""``summary.json``: a run's figures for programs.

Format 1. In every subject and task:

- ``success`` depends on the trials' outcomes alone: equal outcomes give equal values, in whatever
  order and on however many workers the trials ran;
- ``improvement`` depends on the measured scores;
- ``efficiency`` holds what the trials used, wall time among it; ``trials_with_tools_by_text``
  counts those in which a provider refused tools: their figures are not of native tools;
- ``figures`` holds users' own figures (the hook ``pytest_mlab_figures``), when there are some.

``spending`` is what all model calls of all sessions cost, including lost attempts.

``null`` is what is unknown or cannot be estimated; fields are added and never change their meaning.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pytest_mlab.core.aggregate import SubjectSummary
from pytest_mlab.core.gate import GateResult
from pytest_mlab.core.trial import TrialResult
from pytest_mlab.reporting.figure_table import Entry, sections
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
        "earlier_attempts": asdict(figures.earlier),
        "planned": len(plan.trials),
        "missing": [{"trial": r.id.name, "reason": r.reason} for r in figures.missing],
        "gate": _gate(figures.gate),
        "subjects": [_subject(figures.table, s) for s in figures.subjects],
    }


def summary_text(figures: RunFigures) -> str:
    """:func:`summary` as JSON text."""
    # JSON has no NaN: a file with one is refused by other languages, so it fails here.
    return json.dumps(summary(figures), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _subject(table: Sequence[Entry], subject: SubjectSummary) -> dict[str, Any]:
    return {
        "subject": subject.subject,
        "agent": subject.agent,
        "model": subject.model,
        "is_control": subject.is_control,
        "data": subject.conditions.data,
        "sandbox": subject.conditions.sandbox,
        **sections(table, subject),
        "tasks": [
            {
                "task": task.task,
                **sections(table, task),
                "trials": [_trial(result) for result in task.results],
            }
            for task in subject.tasks
        ],
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
        "tools_by_text": list(result.tools_by_text),
        "answered_calls": None if result.answered is None else dict(result.answered),
        "ended_by": None if result.ended_by is None else result.ended_by.value,
        "efficiency": {
            "steps": ledger.steps,
            "seconds": ledger.seconds,
            "waited_seconds": ledger.waited,
            "evaluation_seconds": result.evaluation_seconds,
            "prompt_tokens": ledger.usage.prompt_tokens,
            "completion_tokens": ledger.usage.completion_tokens,
            "model_calls": ledger.model_calls,
            "cost_usd": result.cost,
        },
    }


def _gate(gate: GateResult) -> dict[str, Any]:
    return {
        "mode": gate.policy.mode,
        "fail_under": gate.policy.fail_under,
        "passed": gate.passed,
        "nothing_ran": gate.nothing_ran,
        "warnings": list(gate.warnings),
        "verdicts": [
            {
                "name": v.name,
                "task": v.task or None,
                "agent": v.agent,
                "model": v.model,
                "status": v.status,
                "passed": v.passed,
                "incomplete": v.incomplete,
                "explanation": v.explanation,
            }
            for v in gate.verdicts
        ],
    }
