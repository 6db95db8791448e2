"""Figures as short ASCII texts; '-' is what does not apply, '?' what is not known."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from pytest_mlab.core.aggregate import Efficiency, SubjectSummary
from pytest_mlab.core.plan import RunSettings
from pytest_mlab.core.routes import limits_of
from pytest_mlab.core.statistics import Interval
from pytest_mlab.core.trial import Outcome
from pytest_mlab.lib.durations import format_duration
from pytest_mlab.store.shared import Spending

NONE = "-"
UNKNOWN = "?"


def ratio(value: float | None) -> str:
    """A rate: ``0.38``."""
    return NONE if value is None else f"{value:.2f}"


def interval(found: Interval | None) -> str:
    """An interval: ``0.09-0.76``."""
    return NONE if found is None else f"{found.low:.2f}-{found.high:.2f}"


def percent(value: float | None) -> str:
    """An improvement: ``+12.3%``, ``+1234%``."""
    if value is None:
        return NONE
    shown = value * 100
    return (
        f"{shown:+.1f}%"
        if abs(shown) < 999.95
        else f"{shown:+.0f}%"
        if abs(shown) < 1e5
        else f"{shown:+.0e}%"
    )


def seconds(value: float | None) -> str:
    """A duration in at most six characters: ``0.4s``, ``59.9s``, ``12m03s``, ``5h00m``."""
    if value is None:
        return NONE
    if value < 59.95:
        return f"{value:.1f}s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    hours = whole // 3600
    return f"{hours}h{whole % 3600 // 60:02d}m" if hours < 100 else f"{hours}h"


def count(value: float | None) -> str:
    """A number of tokens or steps in at most five characters: ``950``, ``31.5``, ``182k``,
    ``1.2M``."""
    if value is None:
        return NONE
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            scaled = value / size
            return f"{scaled:.1f}{unit}" if scaled < 99.95 else f"{scaled:.0f}{unit}"
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def dollars(value: float | None) -> str:
    """Dollars without the sign: ``0.0012``, ``1.20``, ``1234``; ``?`` when a price is unknown."""
    if value is None:
        return UNKNOWN
    if 0 < value < 0.01:
        return f"{value:.4f}"
    return f"{value:.2f}" if value < 1000 else f"{value:.0f}" if value < 1e5 else count(value)


def spent(used: Efficiency) -> str:
    """What all trials of a subject used, as one sentence part."""
    parts = []
    if used.model_calls:
        cost = "cost unknown" if used.cost is None else f"${dollars(used.cost)}"
        each = (
            ""
            if used.cost_per_success is None
            else f" (${dollars(used.cost_per_success)} a success)"
        )
        parts.append(f"{cost}{each}, {count(used.tokens)} tokens in {used.model_calls} model calls")
    parts.append(f"{used.steps} steps, {seconds(used.seconds)} of agent's time")
    if used.waited >= 1:
        parts.append(f"{seconds(used.waited)} of waiting for providers")
    return ", ".join(parts)


def endings(subject: SubjectSummary) -> str:
    """How all trials ended, such as ``12 success, 3 no_submission``."""
    totals = {o: sum(t.outcomes[o] for t in subject.tasks) for o in Outcome}
    return ", ".join(f"{n} {o.value}" for o, n in totals.items() if n)


def conditions(settings: RunSettings) -> str:
    """What a run's figures are about: data, sandbox, budget, and what departs from the usual."""
    budget = settings.budget
    uncounted = " without waits for providers" if budget.exclude_waits else ""
    limits = [f"{budget.max_steps} steps", format_duration(budget.max_seconds) + uncounted]
    if budget.max_tokens is not None:
        limits.append(f"{count(budget.max_tokens)} tokens")
    if budget.max_cost is not None:
        limits.append(f"${dollars(budget.max_cost)}")
    isolation = " (NO ISOLATION)" if not settings.isolated else ""
    parts = [
        f"data {settings.data}",
        f"sandbox {settings.sandbox}{isolation}",
        f"at most {', '.join(limits)} a trial",
    ]
    if settings.network:
        parts.append("network on")
    if settings.threshold is not None:
        parts.append(f"threshold {settings.threshold:.4g}")
    if settings.replay:
        parts.append(about_recording(settings))
    return "; ".join(parts)


def about_recording(settings: RunSettings) -> str:
    """Where model calls are recorded, or that they are replayed and nothing of them was measured
    now."""
    if not settings.replay:
        return f"model calls are recorded into {settings.record}"
    return (
        f"REPLAYED ({settings.replay_mode}) from {settings.replay}: replies, tokens, dollars and"
        " times of model calls are those of the recording"
    )


def about_limits(settings: RunSettings) -> str:
    """What bounds the whole run, such as ``$5 for the run; gpt-4-turbo 60 requests, 30k tokens a
    minute``; or ''."""
    parts = (
        [] if settings.run_max_cost is None else [f"${dollars(settings.run_max_cost)} for the run"]
    )
    for model in settings.models:
        route = limits_of(model.name, settings)
        limits = [] if route.rpm is None else [plural(route.rpm, "request")]
        limits += [] if route.tpm is None else [f"{count(route.tpm)} tokens"]
        if limits:
            parts.append(f"{model.name} {', '.join(limits)} a minute")
    return "; ".join(parts)


def about_spending(spending: Spending, limit: float | None) -> str:
    """What a run with a limit has spent in all of its sessions, such as ``spent $3.20 of $5.00 for
    the run``; or ''."""
    if limit is None:
        return ""
    unpriced = (
        f", and {plural(spending.unpriced, 'call')} of unknown price" if spending.unpriced else ""
    )
    return f"spent ${dollars(spending.dollars)} of ${dollars(limit)} for the run{unpriced}"


def who(subject: SubjectSummary) -> str:
    """Agent and model as people say it."""
    return f"agent {subject.agent}" + (f", model {subject.model}" if subject.model else "")


def plural(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def ascii_only(text: str) -> str:
    """``text`` with control and non-ASCII characters escaped, on one line: terminals differ."""
    flat = " ".join(text.split())
    return "".join(
        c if c.isascii() and c.isprintable() else c.encode("unicode_escape").decode() for c in flat
    )


def printable(line: str) -> str:
    """``line`` with what would steer a terminal escaped (control characters, lone surrogates);
    other text stays."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def wrapped(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """``text`` in lines of at most ``width``; only a single word that is longer (a path) sticks
    out."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def columns(cells: Iterable[str], widths: Iterable[int]) -> str:
    """One row: the first column to the left, the others to the right; a first cell that is too long
    ends in ``~``."""
    found = []
    for number, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        if number == 0:
            found.append((cell if len(cell) <= width else cell[: width - 1] + "~").ljust(width))
        else:
            found.append(cell.rjust(width))
    return " ".join(found).rstrip()
