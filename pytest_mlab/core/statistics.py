"""The few statistics that reports need; scipy computes the tests and intervals.

Every function takes and returns plain numbers (never numpy's), and gives the same result for every
order of its input. Where an interval cannot be estimated it is None: an interval of width 0 would
claim certainty. scipy is imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, fsum, isfinite, sqrt
from typing import NamedTuple

CONFIDENCE = 0.95
BOOTSTRAP_RESAMPLES = 9999
BOOTSTRAP_SEED = 20240310


class Interval(NamedTuple):
    """A 95 % confidence interval, ends included."""

    low: float
    high: float


def proportion_interval(successes: int, n: int) -> Interval | None:
    """The exact (Clopper-Pearson) interval of a success rate; None for n = 0. 8 of 8 gives [0.63,
    1]."""
    if n == 0:
        return None
    # scipy.special alone: scipy.stats takes a second of processor time to import, in every session.
    from scipy.special import betaincinv

    tail, failures = (1 - CONFIDENCE) / 2, n - successes
    low = 0.0 if successes == 0 else betaincinv(successes, failures + 1, tail)
    high = 1.0 if failures == 0 else betaincinv(successes + 1, failures, 1 - tail)
    return Interval(float(low), float(high))


def clustered_mean_interval(
    cluster_means: Sequence[float], low: float, high: float
) -> Interval | None:
    """The interval of a mean over clusters of equal weight, cut to [``low``, ``high``].

    The estimator: every cluster (task) is one observation, its own mean, and the interval is
    Student's t of those with clusters - 1 degrees of freedom. That is the cluster-robust interval
    for equally weighted clusters: repeats inside a task are never taken for independent evidence
    about other tasks. None for fewer than two clusters and for clusters that all agree."""
    values = sorted(float(v) for v in cluster_means)
    if len(values) < 2 or _agree(values):
        return None
    from scipy.special import stdtrit

    n = len(values)
    center = fsum(values) / n
    error = sqrt(fsum((value - center) ** 2 for value in values) / (n - 1) / n)
    reach = float(stdtrit(n - 1, 1 - (1 - CONFIDENCE) / 2)) * error
    return Interval(max(float(low), center - reach), min(float(high), center + reach))


def bootstrap_mean_interval(values: Sequence[float]) -> Interval | None:
    """The BCa bootstrap interval of a mean (9999 resamples, fixed seed: the same values give the
    same interval).

    None for fewer than three values and for values that all agree.
    """
    # A resample picks values by their position, so the order would change the interval.
    ordered = sorted(float(v) for v in values)
    if len(ordered) < 3 or _agree(ordered):
        return None
    import numpy as np
    from scipy.stats import bootstrap

    found = bootstrap(
        (np.asarray(ordered),),
        np.mean,
        n_resamples=BOOTSTRAP_RESAMPLES,
        confidence_level=CONFIDENCE,
        method="BCa",
        random_state=np.random.default_rng(BOOTSTRAP_SEED),
    ).confidence_interval
    low, high = float(found.low), float(found.high)
    # scipy gives NaN where the resampled means are degenerate.
    if not (isfinite(low) and isfinite(high)) or low == high:
        return None
    return Interval(low, high)


def pass_at_k(n: int, successes: int, k: int) -> float:
    """The chance that at least one of ``k`` trials succeeds, unbiased: 1 - C(n-c, k) / C(n, k)
    (Chen et al. 2021)."""
    _check_k(n, successes, k)
    return 1.0 - comb(n - successes, k) / comb(n, k)


def pass_hat_k(n: int, successes: int, k: int) -> float:
    """The chance that all of ``k`` trials succeed (pass^k), unbiased: C(c, k) / C(n, k) (Yao et al.
    2024)."""
    _check_k(n, successes, k)
    return comb(successes, k) / comb(n, k)


def mean(values: Sequence[float]) -> float | None:
    """The mean, the same for every order of ``values``; None of nothing."""
    # sum() rounds after each addition, so its result depends on the order.
    return fsum(values) / len(values) if values else None


def median(values: Sequence[float]) -> float | None:
    """The median; None of nothing."""
    from statistics import median as of

    return float(of(values)) if values else None


def _agree(ordered: Sequence[float]) -> bool:
    first, last = ordered[0], ordered[-1]
    # Equal values may differ by rounding after they were averaged.
    return last - first <= 1e-12 * max(1.0, abs(first), abs(last))


def _check_k(n: int, successes: int, k: int) -> None:
    if not (0 <= successes <= n and 1 <= k <= n):
        raise ValueError(
            f"need 0 <= successes <= n and 1 <= k <= n, got n={n}, successes={successes}, k={k}"
        )
