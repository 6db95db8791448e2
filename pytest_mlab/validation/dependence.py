"""Does one column determine another? Sequences of the same length, row by row."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from pytest_mlab.evaluation.csvfile import normal_id

DISTINCT = 20
"""Different numbers that a column needs for its ranks to mean something."""


def normal(value: str) -> str:
    """A value as it is compared: numbers to 9 digits, words without case; ``1.0``, ``01`` and ``1``
    are the same."""
    whole = normal_id(value)
    try:
        return f"{float(whole):.9g}"
    except ValueError:
        return whole.lower()


def bits(values: Sequence[object]) -> float:
    """Bits of information in the values: their number times the entropy of their frequencies."""
    count = len(values)
    return sum(times * math.log2(count / times) for times in Counter(values).values())


def saved(visible: Sequence[str], answers: Sequence[str]) -> float:
    """Share of the errors that knowing ``visible`` saves, compared with always saying the most
    frequent answer.

    A row's answer is predicted as the visible value itself, or as the most frequent answer of the
    *other* rows with the same value (so that a column of unique ids predicts nothing). 1 means all
    errors are saved, 0 or less none."""
    count = len(answers)
    frequencies = Counter(answers)
    errors = count - frequencies.most_common(1)[0][1]
    if not errors:
        return 0.0
    same = sum(v != a for v, a in zip(visible, answers, strict=True))
    return 1 - min(same, _errors_knowing(visible, answers, frequencies)) / errors


def _errors_knowing(
    visible: Sequence[str], answers: Sequence[str], frequencies: Counter[str]
) -> int:
    groups: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for value, answer in zip(visible, answers, strict=True):
        groups[value][answer] += 1
    fallback = frequencies.most_common(1)[0][0]
    wrong = 0
    for group in groups.values():
        ranked = group.most_common(2)
        runner_up = ranked[1][1] if len(ranked) > 1 else 0
        for answer, times in group.items():
            if sum(group.values()) == 1:
                wrong += answer != fallback
            # Without the row itself, its answer has one count fewer and may lose to the next.
            elif answer != ranked[0][0] or times - 1 < runner_up:
                wrong += times
    return wrong


def rank_correlation(visible: Sequence[str], answers: Sequence[str]) -> float:
    """Absolute Spearman correlation; 0.0 unless both are numbers with enough different values."""
    try:
        left, right = [float(v) for v in visible], [float(a) for a in answers]
    except ValueError:
        return 0.0
    if min(len(set(left)), len(set(right))) < DISTINCT or not all(
        map(math.isfinite, (*left, *right))
    ):
        return 0.0
    from scipy.stats import spearmanr

    return abs(float(spearmanr(left, right).statistic))
