"""Tables of the measured baselines and reference solutions of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_mlab.core.scoring import improvement, needed_score
from pytest_mlab.core.task import Baseline, Task
from pytest_mlab.errors import ScoringError
from pytest_mlab.reporting import text
from pytest_mlab.reporting.markdown import grid

WIDTH = 80
_NAMES, _FIGURES = (17, 4, 15), (18, 7, 7, 6)


@dataclass(frozen=True)
class Row:
    """One task on one data variant. ``needed`` is None when trials cannot be judged, and
    ``problem`` says why."""

    task: Task
    variant: str
    baseline: Baseline | None
    needed: float | None
    reference: Baseline | None
    problem: str = ""

    @property
    def gain(self) -> float | None:
        """The reference's relative improvement over the baseline."""
        if self.baseline is None or self.reference is None or self.baseline.mean == 0:
            return None
        return improvement(self.reference.mean, self.baseline.mean, self.task.metric.direction)

    @property
    def empty(self) -> bool:
        """True when nothing was measured."""
        return self.baseline is None and self.reference is None


def rows(tasks: Sequence[Task]) -> list[Row]:
    """One row for each task and data variant, sorted by name."""
    return [
        _row(task, variant)
        for task in sorted(tasks, key=lambda t: t.name)
        for variant in sorted(task.variants)
    ]


def baselines_table(found: Sequence[Row]) -> list[str]:
    """The rows for a terminal."""
    cells = [("task", "data", "metric", "baseline", "needed", "known", "gain")]
    shown = [*cells, *map(_cells, found)]
    lines = text.grid(shown, _FIGURES, text.terminal_width(), least=_NAMES)
    lines += ["", *text.wrapped(_LEGEND, WIDTH)]
    for problem in _problems(found):
        lines += ["", *text.wrapped(problem, WIDTH)]
    return lines


_LEGEND = (
    "baseline: mean +- standard deviation (runs) of the starter code; needed: to be passed"
    " strictly; known: mean of the reference solution; > higher is better, < lower is better"
)


def baselines_markdown(found: Sequence[Row], suite: str) -> str:
    """The rows as a page of the documentation."""
    head = ["task", "data", "metric", "what was run", "baseline (mean ± sd, n)", "needed"]
    head += ["reference (mean ± sd, n)", "reference's improvement"]
    cells = [
        [
            row.task.name,
            row.variant,
            f"{row.task.metric.name}, {'higher' if row.task.sign > 0 else 'lower'} is better",
            row.baseline.measured if row.baseline else text.NONE,
            _spread(row.baseline, " ± "),
            _score(row.needed),
            _spread(row.reference, " ± "),
            text.percent(row.gain),
        ]
        for row in found
    ]
    lines = [
        f"# Tasks of the suite {suite}",
        "",
        (
            "Written by `mlab tasks --markdown` from the scores that `mlab measure` recorded in"
            " each task.toml."
        ),
        "A trial succeeds when its score is strictly better than the one needed.",
        "",
        *grid(head, cells, 4),
    ]
    for problem in _problems(found):
        lines += ["", problem[:1].upper() + problem[1:] + "."]
    machines = sorted(
        {b.machine for r in found for b in (r.baseline, r.reference) if b is not None and b.machine}
    )
    if machines:
        lines += ["", "Measured on:", "", *(f"- {machine}" for machine in machines)]
    return "\n".join(lines) + "\n"


def _row(task: Task, variant: str) -> Row:
    facts = task.variants[variant]
    try:
        return Row(task, variant, facts.baseline, needed_score(task, variant), facts.reference)
    except ScoringError as error:
        return Row(task, variant, facts.baseline, None, facts.reference, str(error))


def _cells(row: Row) -> tuple[str, ...]:
    mark = ">" if row.task.sign > 0 else "<"
    reference = None if row.reference is None else row.reference.mean
    return (
        row.task.name,
        row.variant,
        f"{mark} {row.task.metric.name}",
        _spread(row.baseline, "+-"),
        _score(row.needed),
        _score(reference),
        text.percent(row.gain),
    )


def _score(value: float | None) -> str:
    if value is None:
        return text.NONE
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def _spread(found: Baseline | None, sign: str) -> str:
    if found is None:
        return text.NONE
    return f"{_score(found.mean)}{sign}{found.std:.2g} ({found.n})"


def _problems(found: Sequence[Row]) -> list[str]:
    """Why tasks cannot be judged; those that were not measured yet share one line."""
    problems = [row.problem for row in found if row.problem and not row.empty]
    unmeasured = [f"{row.task.name} on {row.variant}" for row in found if row.problem and row.empty]
    if unmeasured:
        problems.append(f"not measured yet (mlab measure --write): {', '.join(unmeasured)}")
    return problems
