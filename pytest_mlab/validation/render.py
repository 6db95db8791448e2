"""What the checks found, for a terminal of 80 columns and as a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_mlab.core.task import Baseline, Task
from pytest_mlab.reporting import text
from pytest_mlab.reporting.markdown import grid
from pytest_mlab.validation.finding import Status
from pytest_mlab.validation.run import Report, Result

WIDTH = 80
_WORDS: dict[Status, str] = {
    "ok": "ok",
    "fail": "FAIL",
    "not_applicable": "n/a",
    "not_run": "NOT RUN",
}
_HEAD = (
    "task",
    "metric",
    "direction",
    "baseline (mean ± sd)",
    "degenerate",
    "reference",
    "seconds",
    "validated",
)


def lines(result: Result) -> list[str]:
    """One line a check; a reason that needs more goes on below it."""
    head = f"  {_WORDS[result.finding.status]:<7} {result.check:<13} "
    reason = text.ascii_only(" ".join(result.finding.reason.split()))
    return text.wrapped(head + reason, WIDTH, "", " " * len(head)) if reason else [head.rstrip()]


def summary(reports: Sequence[Report]) -> list[str]:
    """Of several tasks a line each; then how many passed, and which did not."""
    failed = [report.name for report in reports if not report.passed]
    told = f"{len(reports) - len(failed)} of {text.plural(len(reports), 'task')} passed"
    width = max(len(report.name) for report in reports)
    rows = (
        [f"  {report.name:<{width}}  {_outcome(report)}" for report in reports]
        if len(reports) > 1
        else []
    )
    return [*rows, f"{told}; not: {', '.join(failed)}" if failed else told]


def _outcome(report: Report) -> str:
    wrong = [
        result.check for result in report.results if result.finding.status in ("fail", "not_run")
    ]
    took = f"{sum(result.seconds for result in report.results):.0f} s"
    return f"FAILED ({', '.join(wrong)}), {took}" if wrong else f"passed, {took}"


def markdown(reports: Sequence[Report]) -> str:
    """The table of tasks with what was measured while they were validated."""
    first = reports[0]
    page = [
        f"# Validated tasks of the suite {first.suite}",
        "",
        (
            f"Written by `mlab validate {first.suite} --data {first.variant} --markdown`. Baseline:"
            " as recorded in task.toml; degenerate: the best score of a null, constant or shuffled"
            " submission; reference: one run; seconds: one run of the baseline / of the reference,"
            f" in the sandbox {first.sandbox}."
        ),
        "",
        *grid(list(_HEAD), [_row(report) for report in reports], 4),
        "",
        f"Checks: {', '.join(result.check for result in first.results)}.",
    ]
    for report in reports:
        for result in report.results:
            if result.finding.status in ("fail", "not_run"):
                page += [
                    "",
                    (
                        f"- **{report.name}**, {result.check}:"
                        f" {' '.join(result.finding.reason.split())}"
                    ),
                ]
    return "\n".join(page) + "\n"


def _row(report: Report) -> list[str]:
    verdict = "yes" if report.passed else "no"
    if report.task is None:
        return [report.name, *[text.NONE] * (len(_HEAD) - 2), verdict]
    starter, reference = report.facts("starter"), report.facts("reference")
    return [
        *recorded_cells(report.task, report.variant),
        _score(report.facts("degenerate").get("best")),
        _score(reference.get("score")),
        f"{_seconds(starter.get('seconds'))} / {_seconds(reference.get('seconds'))}",
        verdict,
    ]


def recorded_cells(task: Task, variant: str) -> list[str]:
    """The first cells of a task's row: those that its task.toml alone decides."""
    known = task.variants.get(variant)
    direction = "higher is better" if task.sign > 0 else "lower is better"
    return [task.name, task.metric.name, direction, _spread(known.baseline if known else None)]


def _spread(baseline: Baseline | None) -> str:
    return text.NONE if baseline is None else f"{_score(baseline.mean)} ± {baseline.std:.2g}"


def _score(value: float | None) -> str:
    return text.NONE if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def _seconds(value: float | None) -> str:
    return text.NONE if value is None else f"{value:.1f}"
