"""Figures as short ASCII texts; '-' means not applicable, '?' unknown."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from pytest_mlab.core.aggregate import Efficiency, SubjectSummary
from pytest_mlab.core.plan import RunSettings
from pytest_mlab.core.routes import limits_of
from pytest_mlab.core.statistics import Interval
from pytest_mlab.core.trial import Outcome
from pytest_mlab.lib.durations import format_duration
from pytest_mlab.store.shared import Spending

WIDTH = 80
"""Columns that prose is wrapped at, and that a table can count on."""

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
    # The limit is where rounding adds a digit, which the column has no room for.
    if abs(shown) < 999.95:
        return f"{shown:+.1f}%"
    if abs(shown) < 1e5:
        return f"{shown:+.0f}%"
    return f"{shown:+.0e}%"


def seconds(value: float | None) -> str:
    """A duration in at most six characters: ``0.4s``, ``59.9s``, ``12m03s``, ``5h00m``."""
    if value is None:
        return NONE
    # 59.95 and more would be shown as 60.0s.
    if value < 59.95:
        return f"{value:.1f}s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    hours = whole // 3600
    if hours >= 100:
        return f"{hours}h"
    return f"{hours}h{whole % 3600 // 60:02d}m"


def count(value: float | None) -> str:
    """A number of tokens or steps in at most five characters: ``950``, ``31.5``, ``182k``,
    ``1.2M``."""
    if value is None:
        return NONE
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            # Past 99.95 a decimal would be the sixth character.
            digits = 1 if value / size < 99.95 else 0
            return f"{value / size:.{digits}f}{unit}"
    digits = 0 if value == int(value) else 1
    return f"{value:.{digits}f}"


def dollars(value: float | None) -> str:
    """Dollars without the sign: ``0.0012``, ``1.20``, ``1234``; ``?`` when a price is unknown."""
    if value is None:
        return UNKNOWN
    # With two decimals a price below a cent would look like no price.
    if 0 < value < 0.01:
        return f"{value:.4f}"
    if value < 1000:
        return f"{value:.2f}"
    if value < 1e5:
        return f"{value:.0f}"
    return count(value)


def spent(used: Efficiency) -> str:
    """What all trials of a subject used, as a part of a sentence."""
    parts = []
    if used.model_calls:
        cost = "cost unknown" if used.cost is None else f"${dollars(used.cost)}"
        if used.cost_per_success is not None:
            cost += f" (${dollars(used.cost_per_success)} a success)"
        calls = plural(used.model_calls, "model call")
        if len(used.answered) > 1:
            shares = ", ".join(f"{model} {n}" for model, n in used.answered.items())
            calls += f" (answered by {shares})"
        parts.append(f"{cost}, {count(used.tokens)} tokens in {calls}")
    parts.append(f"{used.steps} steps, {seconds(used.seconds)} of agent's time")
    if used.waited >= 1:
        parts.append(f"{seconds(used.waited)} of waiting for providers")
    return ", ".join(parts)


def unknown_cost(used: Efficiency) -> str:
    """Why the dollars of a subject are unknown."""
    if used.unanswered:
        return "no model call was answered, so the cost of a trial is unknown"
    return "the price of a model is unknown, so the cost is as well"


def endings(subject: SubjectSummary) -> str:
    """How all trials ended, such as ``12 success, 3 no_submission``."""
    totals = {o: sum(t.outcomes[o] for t in subject.tasks) for o in Outcome}
    return ", ".join(f"{n} {o.value}" for o, n in totals.items() if n)


def conditions(settings: RunSettings) -> str:
    """The conditions of a run: data, sandbox, budget, and settings that are not the default."""
    budget = settings.budget
    limits = [f"{budget.max_steps} steps", format_duration(budget.max_seconds)]
    if budget.exclude_waits:
        limits[-1] += " without waits for providers"
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
    """Where model calls are recorded to, or where they are replayed from."""
    if not settings.replay:
        return f"model calls are recorded into {settings.record}"
    return (
        f"REPLAYED ({settings.replay_mode}) from {settings.replay}: replies, tokens, dollars and"
        " times of model calls are those of the recording"
    )


def about_limits(settings: RunSettings) -> str:
    """The limits of the whole run, such as ``$5 for the run; gpt-4-turbo 60 requests, 30k tokens a
    minute``; '' without any."""
    parts = []
    if settings.run_max_cost is not None:
        parts.append(f"${dollars(settings.run_max_cost)} for the run")
    for model in settings.models:
        route = limits_of(model.name, settings)
        limits = []
        if route.rpm is not None:
            limits.append(plural(route.rpm, "request"))
        if route.tpm is not None:
            limits.append(f"{count(route.tpm)} tokens")
        if limits:
            parts.append(f"{model.name} {', '.join(limits)} a minute")
    return "; ".join(parts)


def about_spending(spending: Spending, limit: float | None) -> str:
    """What a run with a limit has spent in all of its sessions, such as ``spent $3.20 of $5.00 for
    the run``; '' without a limit."""
    if limit is None:
        return ""
    spent = f"spent ${dollars(spending.dollars)} of ${dollars(limit)} for the run"
    if spending.unpriced:
        spent += f", and {plural(spending.unpriced, 'call')} of unknown price"
    return spent


def subject_name(subject: SubjectSummary) -> str:
    """The subject in words: ``agent research, model gpt-4-turbo``."""
    model = f", model {subject.model}" if subject.model else ""
    return f"agent {subject.agent}{model}"


def plural(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def ascii_only(text: str) -> str:
    """``text`` on one line, with control and non-ASCII characters escaped, for any terminal."""
    flat = " ".join(text.split())
    return "".join(
        c if c.isascii() and c.isprintable() else c.encode("unicode_escape").decode() for c in flat
    )


def printable(line: str) -> str:
    """``line`` with control characters and lone surrogates escaped, which would act on a
    terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def wrapped(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """``text`` in lines of at most ``width`` characters; a longer word, such as a path, is not
    broken."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def terminal_width() -> int:
    """The columns of the terminal (or ``COLUMNS``), at least 80; 80 where the output is no
    terminal."""
    return max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)


def grid(
    rows: Sequence[Sequence[str]],
    right: Sequence[int],
    width: int = WIDTH,
    *,
    least: Sequence[int] = (),
    gap: int = 1,
) -> list[str]:
    """``rows`` as lines of at most ``width`` characters. The last cells stand to the right in
    columns of the widths ``right``; those before them are names, to the left, which are never cut.

    Names get the room that they need, where there is enough of it, else an equal share. Where the
    first one alone needs more, it has a line of its own, so that it can be copied; else they go on
    below. ``least`` are the least widths of the first columns."""
    names = len(rows[0]) - len(right)
    room = width - sum(right) - gap * (len(right) + names - 1)
    widths = _shares([max(len(row[n]) for row in rows) for n in range(names)], room)
    widths = [max(w, w_min) for w, w_min in zip_longest(widths, least, fillvalue=0)]
    space = " " * gap
    lines = []
    for row in rows:
        figures = [figure.rjust(w) for figure, w in zip(row[names:], right, strict=True)]
        left = list(row[:names])
        too_long = [len(name) > w for name, w in zip(left, widths, strict=True)]
        if too_long[0] and not any(too_long[1:]):
            lines.append(left[0])
            left[0] = ""
        parts = [_broken(name, w) for name, w in zip(left, widths, strict=True)]
        for number, below in enumerate(zip_longest(*parts, fillvalue="")):
            cells = [part.ljust(w) for part, w in zip(below, widths, strict=True)]
            lines.append(space.join(cells + (figures if number == 0 else [])).rstrip())
    return lines


def _broken(name: str, width: int) -> list[str]:
    """``name`` in parts of at most ``width``, broken behind a separator where there is one."""
    parts = [""]
    for word in re.findall(r"[^\s/_=[-]*[\s/_=[-]|[^\s/_=[-]+", name):
        if len(parts[-1]) + len(word.rstrip()) > width and parts[-1]:
            parts.append("")
        parts[-1] += word
        while len(parts[-1].rstrip()) > max(1, width):
            parts[-1:] = [parts[-1][: max(1, width)], parts[-1][max(1, width) :]]
    return [part.rstrip() for part in parts]


def _shares(wanted: Sequence[int], room: int) -> list[int]:
    """Widths of at most ``room`` together: what is wanted, else an equal share of what the smaller
    ones leave."""
    found = list(wanted)
    for done, number in enumerate(sorted(range(len(wanted)), key=lambda n: wanted[n])):
        found[number] = max(0, min(wanted[number], room // (len(wanted) - done)))
        room -= found[number]
    return found
