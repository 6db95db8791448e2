"""The terminal's table: for 80 columns and more, ASCII, readable without colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pytest_mlab.core.aggregate import SubjectSummary, TaskSummary
from pytest_mlab.core.gate import GateResult
from pytest_mlab.core.trial import Outcome, TrialResult
from pytest_mlab.planning.retry import proposal
from pytest_mlab.reporting import text
from pytest_mlab.reporting.figure_table import CONTROL, SUCCESS, Column, columns, own, refused_tools
from pytest_mlab.reporting.figures import RunFigures

WIDTH = text.WIDTH
_TASK_WIDTH = 18
_ERRORS = (Outcome.INFRA_ERROR, Outcome.PROVIDER_ERROR, Outcome.TASK_ERROR)
_REASONS = 5
_NAMES = 8
_MORE_LINES = 5


def table(figures: RunFigures, resume: str = "", width: int = WIDTH) -> list[str]:
    """The lines. ``resume`` is the command that runs the missing trials; '' without one. Names of
    tasks have the room of ``width`` columns; prose is wrapped at 80."""
    plan = figures.run.plan
    about = (
        f"run {plan.run_id}: {text.plural(len(plan.trials), 'trial')};"
        f" {text.conditions(plan.settings)}"
    )
    lines = text.wrapped(about, WIDTH)
    for subject in figures.subjects:
        lines += ["", *_subject(subject, figures, width)]
    if any(t.efficiency.n for s in figures.subjects for t in s.tasks):
        lines += ["", *text.wrapped(_LEGEND, WIDTH)]
    failed = [r for r in figures.trials if r.outcome in _ERRORS]
    if failed:
        lines += ["", *_errors(failed)]
        if again := proposal(failed, resume):
            lines += text.wrapped(again, WIDTH, "  ")
    noted = [replace(r, reason=note) for r in figures.trials for note in r.notes]
    if noted:
        lines += [
            "",
            f"NOTES on {text.plural(len({r.id for r in noted}), 'trial')}",
            *_reasons(noted),
        ]
    if figures.missing:
        lines += ["", *_missing(figures, resume)]
    for problem in figures.problems:
        lines += ["", *text.wrapped(text.ascii_only(problem), WIDTH, rest="  ")]
    if spent := text.about_spending(figures.spending, plan.settings.run_max_cost):
        lines += ["", spent]
    for warning in figures.gate.warnings:
        lines += ["", *text.wrapped(text.ascii_only(f"WARNING: {warning}"), WIDTH, rest="  ")]
    if earlier := figures.earlier.text():
        lines += ["", *text.wrapped(earlier, WIDTH, rest="  ")]
    lines += ["", *gate_lines(figures.gate)]
    if figures.gate.nothing_ran:
        lines += ["", *text.wrapped(nothing_ran(figures), WIDTH, rest="  ")]
    return lines


_LEGEND = (
    "success: of all planned trials; improved: median over valid submissions; steps, time, tokens:"
    " median a trial; $: all trials; control: the starter code's own success"
)


def nothing_ran(figures: RunFigures) -> str:
    """The sentence about a run that shows nothing of its agents, with the most frequent reason."""
    reasons = Counter((r.outcome.value, r.reason) for r in figures.trials)
    (outcome, reason), number = reasons.most_common(1)[0]
    return text.ascii_only(
        f"NOTHING RAN: none of {text.plural(len(figures.trials), 'planned trial')} shows what its"
        f" agent can do; {number} {outcome}: {reason}"
    )


def gate_lines(gate: GateResult) -> list[str]:
    """The gate's decision: one line when it passes, the reasons when it does not."""
    name = f"gate {gate.policy.mode}"
    if gate.policy.fail_under is not None:
        name += f", fail-under {gate.policy.fail_under:.4g}"
    lines = [f"{name}: {gate.word}"]
    if gate.passed:
        return lines
    for verdict in gate.verdicts:
        if verdict.failed or verdict.incomplete:
            lines += text.wrapped(f"{verdict.name}: {verdict.explanation}", WIDTH, "  ", "    ")
    return lines


def _subject(subject: SubjectSummary, figures: RunFigures, width: int) -> list[str]:
    title = text.subject_name(subject)
    own, settings = subject.conditions, figures.run.plan.settings
    if (own.sandbox, own.data) != (settings.sandbox, settings.data):
        title += f" (data {own.data}, sandbox {own.sandbox})"
    shown = [column for column in columns(figures.table) if _is_shown(column, subject)]
    rows = [["task", *(column.terminal for column in shown)]]
    rows += [[t.task, *(_cell(c, t) for c in shown)] for t in subject.tasks]
    if len(subject.tasks) > 1:
        rows.append([f"mean of {len(subject.tasks)} tasks", *(c.mean(subject) for c in shown)])
    lines = text.wrapped(text.ascii_only(title), WIDTH)
    lines += text.grid(rows, [column.width for column in shown], width, least=[_TASK_WIDTH])
    notes = [*_notes(subject), *_own_figures(subject, figures)]
    return lines + [line for note in notes for line in text.wrapped(note, WIDTH, "  ")]


def _cell(column: Column, task: TaskSummary) -> str:
    noisy = column is SUCCESS and task.successes_within_noise
    return column.task(task) + ("*" if noisy else "")


def _is_shown(column: Column, subject: SubjectSummary) -> bool:
    used = subject.efficiency
    if column.models and not (used.model_calls or used.unanswered):
        return False
    if column is CONTROL:
        return subject.control is not None
    return bool(column.terminal)


def _own_figures(subject: SubjectSummary, figures: RunFigures) -> list[str]:
    """Users' own figures, a line each: the columns fill the terminal's 80 characters."""
    found = []
    for column in columns(own(figures.table)):
        parts = [f"{task.task} {column.task(task)}" for task in subject.tasks]
        if len(subject.tasks) > 1:
            parts.append(f"all tasks {column.mean(subject)}")
        found.append(text.ascii_only(f"{column.title}: {', '.join(parts)}"))
    return found


def _notes(subject: SubjectSummary) -> list[str]:
    notes = [f"ended as: {text.endings(subject)}"]
    if subject.excluded:
        parts = []
        if errors := sum(t.outcomes[o] for t in subject.tasks for o in _ERRORS):
            parts.append(f"{text.plural(errors, 'error')} that the agent did not make")
        if subject.missing:
            parts.append(f"{len(subject.missing)} not run")
        notes.append(
            f"mean success without {' and '.join(parts)}: {text.ratio(subject.valid_rate)}"
        )
    if noisy := sum(t.successes_within_noise for t in subject.tasks):
        verb = "lies" if noisy == 1 else "lie"
        notes.append(
            f"* {noisy} of {subject.successes} successes {verb} within the baseline's own noise"
        )
    if subject.pass_at and max(subject.pass_at) > 1:
        k = max(subject.pass_at)
        notes.append(f"pass@{k} {subject.pass_at[k]:.2f}, pass^{k} {subject.pass_hat[k]:.2f}")
    if subject.gain is not None:
        notes.append(
            f"mean improvement over {text.plural(subject.gain_tasks, 'task')} with a valid"
            f" submission: {text.percent(subject.gain)}"
        )
    if refused := refused_tools(subject):
        notes.append(text.ascii_only(f"! {refused}"))
    notes.append(text.spent(subject.efficiency))
    if subject.efficiency.cost is None:
        notes.append(f"? {text.unknown_cost(subject.efficiency)}")
    return notes


def _missing(figures: RunFigures, resume: str) -> list[str]:
    missing = figures.missing
    lines = [
        f"MISSING: {len(missing)} of {text.plural(len(figures.trials), 'planned trial')} did"
        " not run"
    ]
    lines += _reasons(missing)
    if resume:
        lines += text.wrapped(f"run what is missing: {resume}", WIDTH, "  ", "    ")
    return lines


def _errors(failed: Sequence[TrialResult]) -> list[str]:
    verb = "trial ended" if len(failed) == 1 else "trials ended"
    return [
        f"ERRORS: {len(failed)} {verb} in an error that the agent did not make",
        *_reasons(failed),
    ]


def _reasons(results: Sequence[TrialResult]) -> list[str]:
    """The reasons of ``results``, the most frequent first, each with its trials' names."""
    names: dict[str, list[str]] = {}
    for result in results:
        names.setdefault(result.reason, []).append(result.id.name)
    ordered = sorted(names.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = []
    for reason, found in ordered[:_REASONS]:
        others = f" and {len(found) - _NAMES} more" if len(found) > _NAMES else ""
        first, *more = reason.splitlines() or [""]
        lines += text.wrapped(
            text.ascii_only(f"{', '.join(found[:_NAMES])}{others}: {first}"), WIDTH, "  ", "    "
        )
        lines += [
            line
            for part in more[:_MORE_LINES]
            for line in text.wrapped(text.ascii_only(part), WIDTH, "      ")
        ]
    if len(ordered) > _REASONS:
        lines.append(
            f"  and {text.plural(len(ordered) - _REASONS, 'other reason')}, all of them in"
            " summary.json"
        )
    return lines
