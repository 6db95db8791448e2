"""The one table of figures: what each is called, how it is computed, and how each report shows it.

The terminal's table, ``report.md``, ``summary.json`` and JUnit read it. To add a figure, add an
entry to :data:`FIGURES`; users add theirs as :class:`pytest_mlab.core.figure.Figure`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from pytest_mlab.core.aggregate import Efficiency, Rate, SubjectSummary, TaskSummary
from pytest_mlab.core.figure import Figure
from pytest_mlab.core.statistics import Interval
from pytest_mlab.core.trial import TrialResult
from pytest_mlab.errors import ConfigError
from pytest_mlab.reporting import text

Cell = Union[TaskSummary, SubjectSummary]


@dataclass(frozen=True)
class Column:
    """How a figure stands in tables: the title in report.md, its text for a task and for the mean.

    ``terminal`` is the terminal's title, right-aligned in ``width`` characters; '' leaves it out
    there, where 80 columns are all there is. ``models``: not applicable without model calls."""

    title: str
    task: Callable[[TaskSummary], str]
    mean: Callable[[SubjectSummary], str] = lambda _: ""
    terminal: str = ""
    width: int = 0
    models: bool = False


@dataclass(frozen=True)
class Entry:
    """One figure. ``section`` is the object of ``summary.json`` that holds it under ``name``, and
    ``junit`` its property after ``mlab.``; '' leaves it out there.

    A figure without ``task`` is of whole subjects only, without ``subject`` of tasks only."""

    name: str
    task: Callable[[TaskSummary], Any] | None
    subject: Callable[[SubjectSummary], Any] | None
    section: str = ""
    junit: str = ""
    column: Column | None = None

    def of(self, cell: Cell) -> Any:
        """Its value for ``cell``; None when it is unknown, or there is no such figure."""
        compute = self._compute(cell)
        return None if compute is None else compute(cell)

    def about(self, cell: Cell) -> bool:
        """True when there is such a figure for ``cell``."""
        return self._compute(cell) is not None

    def _compute(self, cell: Cell) -> Callable[[Any], Any] | None:
        return self.task if isinstance(cell, TaskSummary) else self.subject


def _of(rate: Rate | None) -> str:
    return text.NONE if rate is None else f"{rate.successes}/{rate.n}"


def _per_success(cell: Cell) -> str:
    # Without a success there is no such price, which is not an unknown price.
    cost = cell.efficiency.cost_per_success
    return text.NONE if cost is None else text.dollars(cost)


def by_text(cell: Cell) -> list[TrialResult]:
    """The trials in which a provider refused tools, so that they went by text."""
    tasks = (cell,) if isinstance(cell, TaskSummary) else cell.tasks
    return [result for task in tasks for result in task.results if result.tools_by_text]


def refused_tools(subject: SubjectSummary) -> str:
    """A sentence on how many trials are not of native tools, and on whose account; '' for none."""
    found = by_text(subject)
    if not found:
        return ""
    models = ", ".join(sorted({model for result in found for model in result.tools_by_text}))
    return (
        f"tools by text in {len(found)} of {text.plural(subject.planned, 'trial')}, which say"
        f" nothing on native tools: the provider of {models} refused them"
    )


def _by_k(found: Mapping[int, float]) -> dict[str, float]:
    return {str(k): value for k, value in found.items()}


def _pair(found: Interval | None) -> list[float] | None:
    return None if found is None else [found.low, found.high]


def _used(name: str, of: Callable[[Efficiency], Any], junit: str = "", **more: Any) -> Entry:
    """A figure of what trials used, computed alike for tasks and subjects."""
    section = more.pop("section", "efficiency")
    return Entry(
        name, lambda t: of(t.efficiency), lambda s: of(s.efficiency), section, junit, **more
    )


SUCCESS = Column("success", lambda t: _of(t.rate), lambda s: text.ratio(s.rate), "success", 7)
_INTERVAL = Column(
    "95 % interval",
    lambda t: text.interval(t.rate.interval),
    lambda s: text.interval(s.interval),
    "95% CI",
    9,
)
_VALID = Column("without errors", lambda t: _of(t.valid_rate), lambda s: text.ratio(s.valid_rate))
CONTROL = Column("control", lambda t: _of(t.control), lambda s: text.ratio(s.control), "control", 7)
_GAIN = Column(
    "improvement (median)", lambda t: text.percent(t.gain.median), terminal="improved", width=8
)
_NOISE = Column(
    "within noise",
    lambda t: str(t.successes_within_noise),
    lambda s: str(sum(t.successes_within_noise for t in s.tasks)),
)
_STEPS = Column("steps", lambda t: text.count(t.efficiency.median_steps), terminal="steps", width=5)
_TIME = Column(
    "time", lambda t: text.seconds(t.efficiency.median_seconds), terminal="time", width=6
)
_TOKENS = Column(
    "tokens",
    lambda t: text.count(t.efficiency.median_tokens),
    terminal="tokens",
    width=6,
    models=True,
)
_COST = Column(
    "$",
    lambda t: text.dollars(t.efficiency.cost),
    lambda s: text.dollars(s.efficiency.cost),
    "$",
    6,
    models=True,
)
_PRICE = Column("$ a success", _per_success, _per_success, models=True)

# fmt: off
FIGURES: tuple[Entry, ...] = (
    Entry("rate", lambda t: t.rate.value, lambda s: s.rate, "success", column=SUCCESS),
    Entry("interval", lambda t: _pair(t.rate.interval), lambda s: _pair(s.interval), "success",
          column=_INTERVAL),
    Entry("successes", lambda t: t.rate.successes, lambda s: s.successes, "success", "successes"),
    Entry("planned", lambda t: t.planned, lambda s: s.planned, "success", "trials"),
    Entry("outcomes", lambda t: {o.value: n for o, n in t.outcomes.items()}, None, "success"),
    Entry("rate_without_errors", lambda t: t.valid_rate.value, lambda s: s.valid_rate, "success",
          "success_rate_without_errors", _VALID),
    Entry("interval_without_errors", lambda t: _pair(t.valid_rate.interval), None, "success"),
    Entry("left_out", lambda t: t.excluded, lambda s: s.excluded, "success", "left_out"),
    Entry("not_run", lambda t: len(t.missing), lambda s: len(s.missing), junit="not_run"),
    Entry("pass_at", lambda t: _by_k(t.pass_at), lambda s: _by_k(s.pass_at), "success"),
    Entry("pass_hat", lambda t: _by_k(t.pass_hat), lambda s: _by_k(s.pass_hat), "success"),
    Entry("control_rate", lambda t: t.control and t.control.value, lambda s: s.control, "success",
          "control_rate", CONTROL),
    Entry("mean", lambda t: t.gain.mean, lambda s: s.gain, "improvement", "mean_improvement"),
    Entry("median", lambda t: t.gain.median, None, "improvement", column=_GAIN),
    Entry("interval", lambda t: _pair(t.gain.interval), lambda s: _pair(s.gain_interval),
          "improvement"),
    Entry("tasks", None, lambda s: s.gain_tasks, "improvement"),
    Entry("valid_submissions", lambda t: t.gain.n, None, "improvement"),
    Entry("median_score", lambda t: t.median_score, None, "improvement", "median_score"),
    Entry("successes_within_noise", lambda t: t.successes_within_noise, None, "improvement",
          "successes_within_noise", _NOISE),
    _used("trials", lambda used: used.n),
    _used("steps", lambda used: used.steps, "steps"),
    _used("seconds", lambda used: used.seconds, "seconds"),
    _used("waited_seconds", lambda used: used.waited, "waited_seconds"),
    _used("evaluation_seconds", lambda used: used.evaluation_seconds),
    _used("prompt_tokens", lambda used: used.prompt_tokens),
    _used("completion_tokens", lambda used: used.completion_tokens),
    _used("tokens", lambda used: used.tokens, "tokens", section=""),
    _used("model_calls", lambda used: used.model_calls),
    _used("answered_calls", lambda used: dict(used.answered)),
    Entry("trials_with_tools_by_text", lambda t: len(by_text(t)), lambda s: len(by_text(s)),
          "efficiency", "trials_with_tools_by_text"),
    _used("median_steps", lambda used: used.median_steps, column=_STEPS),
    _used("median_seconds", lambda used: used.median_seconds, column=_TIME),
    _used("median_tokens", lambda used: used.median_tokens, column=_TOKENS),
    _used("cost_usd", lambda used: used.cost, "cost_usd", column=_COST),
    _used("cost_usd_per_trial", lambda used: used.cost_per_trial),
    _used("cost_usd_per_success", lambda used: used.cost_per_success, "cost_usd_per_success",
          column=_PRICE),
)
# fmt: on

OWN = "figures"
"""The object of ``summary.json`` that holds users' own figures."""

_RESERVED = {e.junit for e in FIGURES} | {
    "task", "agent", "model", "success_rate", "success_rate_low", "success_rate_high", "incomplete",
}  # fmt: skip
_AS_TEXT: Mapping[str, Callable[[float | None], str]] = {
    "count": text.count,
    "ratio": text.ratio,
    "percent": text.percent,
    "seconds": text.seconds,
    "dollars": text.dollars,
}


def entries(figures: Iterable[Figure]) -> tuple[Entry, ...]:
    """The built-in figures and those of ``figures``. Raises ConfigError when two have one name."""
    added: dict[str, Entry] = {}
    for figure in figures:
        # Figures are properties of JUnit under their own names, where the second of one name would
        # hide the first.
        if figure.name in added or figure.name in _RESERVED:
            raise ConfigError(f"figure {figure.name}: there is another figure of this name")
        added[figure.name] = _own(figure)
    return (*FIGURES, *added.values())


def _own(figure: Figure) -> Entry:
    def of_task(task: TaskSummary) -> int | float | None:
        return figure.value(task.results)

    def of_subject(subject: SubjectSummary) -> int | float | None:
        return figure.value([r for task in subject.tasks for r in task.results])

    as_text = _AS_TEXT[figure.unit]
    column = Column(figure.label, lambda t: as_text(of_task(t)), lambda s: as_text(of_subject(s)))
    return Entry(figure.name, of_task, of_subject, OWN, figure.name, column)


def own(table: Sequence[Entry]) -> list[Entry]:
    """The users' own figures of ``table``."""
    return [entry for entry in table if entry.section == OWN]


def sections(table: Sequence[Entry], cell: Cell) -> dict[str, dict[str, Any]]:
    """The objects of ``summary.json`` that hold the figures of ``cell``."""
    found: dict[str, dict[str, Any]] = {}
    for entry in table:
        if entry.section and entry.about(cell):
            found.setdefault(entry.section, {})[entry.name] = entry.of(cell)
    return found


def properties(table: Sequence[Entry], cell: Cell) -> dict[str, Any]:
    """JUnit's properties of ``cell``, by their names after ``mlab.``."""
    return {e.junit: e.of(cell) for e in table if e.junit and e.about(cell)}


def columns(table: Sequence[Entry]) -> list[Column]:
    """The columns of tables, in their order."""
    return [e.column for e in table if e.column is not None]
