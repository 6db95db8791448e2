"""``report.md``: a run's figures for people, to paste into a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_mlab.core.aggregate import Efficiency, SubjectSummary
from pytest_mlab.core.gate import GateResult
from pytest_mlab.core.plan import PlannedAgent
from pytest_mlab.core.trial import Outcome, TrialResult
from pytest_mlab.reporting import text
from pytest_mlab.reporting.figure_table import Column, columns, refused_tools
from pytest_mlab.reporting.figures import RunFigures

_REASON = 200


def markdown(figures: RunFigures) -> str:
    """The whole report."""
    plan = figures.run.plan
    lines = [
        f"# Run {plan.run_id}",
        "",
        f"{text.plural(len(plan.trials), 'trial')}; {text.conditions(plan.settings)}.",
        "",
    ]
    if spent := text.about_spending(figures.spending, plan.settings.run_max_cost):
        lines += [_sentence(spent), ""]
    lines += _gate(figures.gate)
    for subject in figures.subjects:
        lines += ["", *_subject(subject, columns(figures.table))]
    lines += ["", *_unsuccessful(figures)]
    if notes := _notes(figures):
        lines += ["", *notes]
    lines += ["", *_identity(figures)]
    return "\n".join(lines).rstrip() + "\n"


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> list[str]:
    """A Markdown table: the first ``texts`` columns to the left, the others, which are numbers, to
    the right."""
    lines = [head, ["---"] * texts + ["--:"] * (len(head) - texts), *rows]
    return [f"| {' | '.join(map(_cell, line))} |" for line in lines]


def _cell(value: str) -> str:
    """``value`` on one line, with characters of Markdown's and HTML's markup escaped."""
    flat = " ".join(value.split())
    # The backslash first, so that the escapes are not escaped. Reasons hold text of agents, which
    # must not become markup or HTML in a pull request.
    for mark in ("\\", "|", "`", "*", "<", "["):
        flat = flat.replace(mark, f"\\{mark}")
    return flat


def _gate(gate: GateResult) -> list[str]:
    floor = ""
    if gate.policy.fail_under is not None:
        floor = f", at least {gate.policy.fail_under:.4g} mean success rate"
    lines = [f"Gate `{gate.policy.mode}`{floor}: **{gate.word}**."]
    bad = [v for v in gate.verdicts if v.failed or v.incomplete]
    if bad and not gate.passed:
        lines += ["", *(f"- `{v.name}`: {_cell(v.explanation)}" for v in bad)]
    if gate.nothing_ran:
        lines += ["", "**Nothing ran**: no trial shows what its agent can do."]
    for warning in gate.warnings:
        lines += ["", f"**Warning**: {_cell(warning)}."]
    return lines


def _subject(subject: SubjectSummary, shown: Sequence[Column]) -> list[str]:
    lines = [f"## {_cell(text.subject_name(subject))}", ""]
    lines += [f"Data {subject.conditions.data}, sandbox {subject.conditions.sandbox}.", ""]
    rows = [
        [task.task, *(_text(c, c.task(task), task.efficiency) for c in shown)]
        for task in subject.tasks
    ]
    mean = [_text(c, c.mean(subject), subject.efficiency) for c in shown]
    rows.append([f"mean of {text.plural(len(subject.tasks), 'task')}", *mean])
    lines += grid(["task", *(c.title for c in shown)], rows)
    lines += ["", f"Ended as: {text.endings(subject)}. {_sentence(text.spent(subject.efficiency))}"]
    lines += [
        "",
        (
            "Success counts every planned trial; the mean weighs every task the same, its interval"
            " is clustered by task. Steps, time and tokens are medians a trial, dollars are of all"
            " trials."
        ),
    ]
    if refused := refused_tools(subject):
        lines += ["", f"**{_sentence(_cell(refused))}**"]
    if subject.pass_at:
        chances = ", ".join(
            f"pass@{k} {v:.2f}, pass^{k} {subject.pass_hat[k]:.2f}"
            for k, v in subject.pass_at.items()
        )
        lines += ["", f"Of k repeats at least one, and all: {chances}."]
    return lines


def _sentence(part: str) -> str:
    return part[:1].upper() + part[1:] + "."


def _text(column: Column, shown: str, used: Efficiency) -> str:
    """``shown``; a dash in its place where the figure says nothing of an agent without models."""
    if shown and column.models and not (used.model_calls or used.unanswered):
        return text.NONE
    return shown


def _unsuccessful(figures: RunFigures) -> list[str]:
    found = [r for r in figures.trials if r.outcome is not Outcome.SUCCESS]
    if not found:
        return []
    return [
        "## Trials without success",
        "",
        *grid(["trial", "outcome", "score", "reason"], [_trial(r) for r in found], 4),
    ]


def _notes(figures: RunFigures) -> list[str]:
    rows = [[result.id.name, note] for result in figures.trials for note in result.notes]
    return ["## Notes", "", *grid(["trial", "note"], rows, 2)] if rows else []


def _trial(result: TrialResult) -> list[str]:
    reason = result.reason
    if len(reason) > _REASON:
        reason = f"{reason[: _REASON - 3]}..."
    score = text.NONE if result.score is None else f"{result.score:.6g}"
    return [result.id.name, result.outcome.value, score, reason]


def _identity(figures: RunFigures) -> list[str]:
    identity = figures.run.identity
    lines = ["## What ran", ""]
    rows = [[name, _value(value)] for name, value in sorted(identity.items())]
    rows += [[f"task {t.name}", t.digest[:12]] for t in figures.run.plan.tasks]
    rows += [
        [f"agent {a.name}", ", ".join(filter(None, _agent(a)))] for a in figures.run.plan.agents
    ]
    return lines + grid(["", "value"], rows, 2)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{k} {_value(v)}" for k, v in value.items() if v not in (None, "", [], {})
        )
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_value, value))
    return str(value)


def _agent(agent: PlannedAgent) -> tuple[str, ...]:
    unmetered = "without a model: calls of its own are not counted" if agent.unmetered else ""
    return agent.digest[:12], agent.said, unmetered
