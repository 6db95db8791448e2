"""The terminal's table: at most 80 columns, ASCII, readable without colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_mlab.core.aggregate import SubjectSummary, TaskSummary
from pytest_mlab.core.gate import GateResult
from pytest_mlab.core.trial import Outcome, TrialResult
from pytest_mlab.reporting import text
from pytest_mlab.reporting.figures import RunFigures

WIDTH = 80
_HEAD = ("task", "success", "95% CI", "control", "improved", "steps", "time", "tokens", "$")
_WIDTHS = (18, 7, 9, 7, 8, 5, 6, 6, 6)
_ERRORS = (Outcome.INFRA_ERROR, Outcome.PROVIDER_ERROR, Outcome.TASK_ERROR)
_REASONS = 5
_NAMES = 8
_MORE_LINES = 5


def table(figures: RunFigures, resume: str = "") -> list[str]:
    """The lines. ``resume`` is the command that runs what is missing, when there is one."""
    plan = figures.run.plan
    about = (
        f"run {plan.run_id}: {text.plural(len(plan.trials), 'trial')};"
        f" {text.conditions(plan.settings)}"
    )
    lines = text.wrapped(about, WIDTH)
    for subject in figures.subjects:
        lines += ["", *_subject(subject, plan.settings.sandbox, plan.settings.data)]
    if any(t.efficiency.n for s in figures.subjects for t in s.tasks):
        lines += ["", *text.wrapped(_LEGEND, WIDTH)]
    failed = [r for r in figures.trials if r.outcome in _ERRORS]
    if failed:
        lines += ["", *_errors(failed)]
    noted = [replace(r, reason=note) for r in figures.trials for note in r.notes]
    if noted:
        lines += [
            "",
            f"NOTES on {text.plural(len({r.id for r in noted}), 'trial')}",
            *_reasons(noted),
        ]
    if figures.missing:
        lines += ["", *_missing(figures, resume)]
    if spent := text.about_spending(figures.spending, plan.settings.run_max_cost):
        lines += ["", spent]
    lines += ["", *gate_lines(figures.gate)]
    return lines


_LEGEND = (
    "success: of all planned trials; improved: median over valid submissions; steps, time, tokens:"
    " median a trial; $: all trials; control: the starter code's own success"
)


def gate_lines(gate: GateResult) -> list[str]:
    """What the gate says: one line when it passes, the reasons when it does not."""
    floor = "" if gate.policy.fail_under is None else f", fail-under {gate.policy.fail_under:.4g}"
    name = f"gate {gate.policy.mode}{floor}"
    lines = [f"{name}: {gate.word}"]
    if gate.passed:
        return lines
    for verdict in gate.verdicts:
        if not verdict.passed or verdict.incomplete:
            lines += text.wrapped(f"{verdict.name}: {verdict.explanation}", WIDTH, "  ", "    ")
    return lines


def _subject(subject: SubjectSummary, sandbox: str, data: str) -> list[str]:
    title = text.who(subject)
    if (subject.conditions.sandbox, subject.conditions.data) != (sandbox, data):
        title += f" (data {subject.conditions.data}, sandbox {subject.conditions.sandbox})"
    shown = [True] * len(_HEAD)
    shown[3] = subject.control is not None
    shown[7] = shown[8] = subject.efficiency.model_calls > 0
    rows = [_HEAD, *(_row(t) for t in subject.tasks)]
    if len(subject.tasks) > 1:
        rows.append(_mean(subject))
    lines = text.wrapped(text.ascii_only(title), WIDTH)
    lines += [_line(row, shown) for row in rows]
    return lines + [line for note in _notes(subject) for line in text.wrapped(note, WIDTH, "  ")]


def _line(cells: Sequence[str], shown: Sequence[bool]) -> str:
    kept = [(cell, width) for cell, width, show in zip(cells, _WIDTHS, shown, strict=True) if show]
    return text.columns([cell for cell, _ in kept], [width for _, width in kept])


def _row(task: TaskSummary) -> tuple[str, ...]:
    used = task.efficiency
    star = "*" if task.successes_within_noise else ""
    return (
        task.task,
        f"{task.rate.successes}/{task.rate.n}{star}",
        text.interval(task.rate.interval),
        text.NONE if task.control is None else f"{task.control.successes}/{task.control.n}",
        text.percent(task.gain.median),
        text.count(used.median_steps),
        text.seconds(used.median_seconds),
        text.count(used.median_tokens),
        text.dollars(used.cost),
    )


def _mean(subject: SubjectSummary) -> tuple[str, ...]:
    return (
        f"mean of {len(subject.tasks)} tasks",
        text.ratio(subject.rate),
        text.interval(subject.interval),
        text.ratio(subject.control),
        "",
        "",
        "",
        "",
        text.dollars(subject.efficiency.cost),
    )


def _notes(subject: SubjectSummary) -> list[str]:
    notes = [f"ended as: {text.endings(subject)}"]
    if subject.excluded:
        errors = sum(t.outcomes[o] for t in subject.tasks for o in _ERRORS)
        gone = len(subject.missing)
        parts = [f"{text.plural(errors, 'error')} that the agent did not make"] if errors else []
        parts += [f"{gone} not run"] if gone else []
        notes.append(
            f"mean success without {' and '.join(parts)}: {text.ratio(subject.valid_rate)}"
        )
    noisy = sum(t.successes_within_noise for t in subject.tasks)
    if noisy:
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
    notes.append(text.spent(subject.efficiency))
    if subject.efficiency.cost is None:
        notes.append("? the price of a model is unknown, so the cost is as well")
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
    """Why, the most frequent reason first, with the trials' names."""
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
