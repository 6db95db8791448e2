"""From a score to a judgement: improvement, needed score, success, possible noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from pytest_mlab.core.task import Baseline, Direction, Metric, Task
from pytest_mlab.core.task_commands import measure_command
from pytest_mlab.core.trial import Outcome
from pytest_mlab.errors import EvaluatorError, ScoringError

TIE_REL = 1e-9
TIE_ABS = 1e-12
SENTINEL_HIGH = 1e9
SENTINEL_LOW = 1e-9
ROUND_HIGH = 1e6
ROUND_LOW = 1e-6

_T_975 = """
12.706204736174694 4.302652729749462 3.1824463052837078 2.7764451051977934 2.5705818356363146
2.4469118511449786 2.364624251592784 2.306004135204166 2.262157162798205 2.228138851986274
2.200985160091639 2.1788128296672284 2.1603686564627913 2.144786687917804 2.131449545559776
2.1199052992212546 2.1098155778333156 2.1009220402410382 2.0930240544083087
"""
T_975 = tuple(map(float, _T_975.split()))
"""t(0.975) for 1 to 19 degrees of freedom, from ``scipy.special.stdtrit``. A baseline has 5 to 20
runs; importing scipy for this one number would cost the process of every trial 0.2 s."""


@dataclass(frozen=True)
class Judgement:
    """A score, judged. ``outcome`` is SUCCESS or BELOW_THRESHOLD; ``needed`` has to be passed
    strictly.

    ``baseline`` and ``improvement`` are None for a task that has an absolute threshold and no
    baseline (``improvement`` also when the baseline is 0); ``within_noise`` is None when fewer than
    two baseline runs are known."""

    outcome: Outcome
    reason: str
    score: float
    needed: float
    baseline: float | None
    improvement: float | None
    within_noise: bool | None


def improvement(score: float, baseline: float, direction: Direction) -> float:
    """``sign * (score - baseline) / abs(baseline)``: 0.1 is 10 % better, negative is worse. Raises
    ScoringError for a baseline of 0."""
    if baseline == 0:
        raise ScoringError(
            "a baseline of 0 has no relative improvement; set threshold.absolute in the task's"
            " task.toml instead"
        )
    return direction.sign * (score - baseline) / abs(baseline)


def beats(score: float, needed: float, direction: Direction) -> bool:
    """True when ``score`` is strictly better than ``needed``.

    Scores that differ by a rounding error (relative 1e-9, absolute 1e-12) are equal, and equal is
    not better: 0.7 + 10 % is 0.7700000000000001 in floating point, and a score of 0.77 must not
    depend on that.
    """
    if math.isclose(score, needed, rel_tol=TIE_REL, abs_tol=TIE_ABS):
        return False
    return direction.sign * (score - needed) > 0


def is_sentinel(value: float) -> bool:
    """True for a number that stands for "no baseline" and was never measured.

    The rule: not finite; or not 0 and of a magnitude of at least 1e9 or at most 1e-9; or an exact
    power of ten of at least a million or at most a millionth (the mean of real runs is never such a
    number)."""
    if not math.isfinite(value):
        return True
    size = abs(value)
    if size == 0:
        return False
    if size >= SENTINEL_HIGH or size <= SENTINEL_LOW:
        return True
    if ROUND_LOW < size < ROUND_HIGH:
        return False
    return math.isclose(size, 10.0 ** round(math.log10(size)), rel_tol=1e-12)


def check_score(score: object, metric: Metric, task: str) -> float:
    """``score`` as a plain float. Raises EvaluatorError unless it is a finite number in the
    metric's range."""
    # numpy's numbers are Real too. They become plain floats, which may travel between processes
    # (core/wire.py).
    if isinstance(score, bool) or not isinstance(score, Real):
        raise EvaluatorError(
            f"task {task}: the evaluator gave {score!r} ({type(score).__name__}); it must return a"
            " finite number"
        )
    value = float(score)
    if not math.isfinite(value):
        raise EvaluatorError(
            f"task {task}: the evaluator gave {value!r}; it must return a finite number"
        )
    for bound, outside, word in (
        (metric.low, metric.low is not None and value < metric.low, "below the lowest"),
        (metric.high, metric.high is not None and value > metric.high, "above the highest"),
    ):
        if (
            outside
            and bound is not None
            and not math.isclose(value, bound, rel_tol=TIE_REL, abs_tol=TIE_ABS)
        ):
            raise EvaluatorError(
                f"task {task}: the evaluator gave {metric.name} = {value!r}, {word} valid value"
                f" {bound!r}; fix the evaluator or the range in task.toml"
            )
    return value


def needed_score(task: Task, variant: str, override: float | None = None) -> float:
    """The score that has to be passed (strictly) on ``variant``.

    The task's absolute threshold if it has one; otherwise its baseline, improved by ``override`` or
    else by the task's own relative threshold. ``override`` replaces relative thresholds only: an
    absolute one exists because a relative one makes no sense for the task. Raises ScoringError when
    there is nothing sound to compare with."""
    baseline = _baseline(task, variant)
    # Refused beside an absolute threshold too, because judge() computes the improvement from it.
    if baseline is not None and is_sentinel(baseline.mean):
        raise ScoringError(
            f"task {task.name}, data {variant}: the baseline {baseline.mean!r} is a placeholder and"
            f" not a measurement; measure one ({measure_command(task, variant)})"
            " or set threshold.absolute instead"
        )
    if task.threshold.absolute is not None:
        return _sound_absolute(task, task.threshold.absolute)
    if baseline is None:
        raise ScoringError(
            f"task {task.name}: no baseline was measured on data {variant!r}; measure one"
            f" ({measure_command(task, variant)}) or set threshold.absolute in task.toml"
        )
    # abs(0) leaves nothing to improve by, and a negative mean makes a share of it meaningless.
    if baseline.mean <= 0:
        raise ScoringError(
            f"task {task.name}, data {variant}: the baseline is {baseline.mean!r}; a relative"
            " threshold needs one above 0, so set threshold.absolute in task.toml"
        )
    relative = task.threshold.improvement if override is None else override
    if not math.isfinite(relative) or relative < 0:
        raise ScoringError(
            f"task {task.name}: the threshold {relative!r} must be a number of at least 0, such"
            " as 0.1"
        )
    return baseline.mean + task.sign * relative * abs(baseline.mean)


def judge(task: Task, variant: str, score: object, override: float | None = None) -> Judgement:
    """Judge the evaluator's ``score`` of a submission on data ``variant``.

    ``override`` is the run's threshold (RunSettings.threshold). Raises EvaluatorError for an
    invalid score and ScoringError for a baseline or threshold that cannot judge one; both make the
    trial a ``task_error``."""
    value = check_score(score, task.metric, task.name)
    needed = needed_score(task, variant, override)
    baseline = _baseline(task, variant)
    direction = task.metric.direction
    gain = None
    if baseline is not None and baseline.mean != 0:
        gain = improvement(value, baseline.mean, direction)
    success = beats(value, needed, direction)
    return Judgement(
        outcome=Outcome.SUCCESS if success else Outcome.BELOW_THRESHOLD,
        reason=_reason(task.metric, value, needed, success),
        score=value,
        needed=needed,
        baseline=None if baseline is None else baseline.mean,
        improvement=gain,
        within_noise=None if baseline is None else within_noise(value, baseline),
    )


def within_noise(score: float, baseline: Baseline) -> bool | None:
    """True when one more run of the baseline could well have given ``score``.

    The two-sided 95 % prediction interval for one further observation of a normal sample, ``mean +-
    t(0.975; n - 1) * std * sqrt(1 + 1/n)`` (Hahn and Meeker, Statistical Intervals, Wiley 1991),
    its ends included. None when it does not exist (fewer than two runs). Runs without any spread
    predict their mean."""
    interval = prediction_interval(baseline)
    if interval is None:
        return None
    low, high = interval
    if any(math.isclose(score, end, rel_tol=TIE_REL, abs_tol=TIE_ABS) for end in interval):
        return True
    return low <= score <= high


def prediction_interval(baseline: Baseline) -> tuple[float, float] | None:
    """Where one more baseline run lies with 95 % probability; see :func:`within_noise`. None for n
    < 2."""
    n = baseline.n
    if n < 2:
        return None
    half = _t_975(n - 1) * baseline.std * math.sqrt(1 + 1 / n)
    return baseline.mean - half, baseline.mean + half


def _t_975(freedom: int) -> float:
    if freedom <= len(T_975):
        return T_975[freedom - 1]
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def _baseline(task: Task, variant: str) -> Baseline | None:
    if variant not in task.variants:
        raise ScoringError(
            f"task {task.name} has no data variant {variant!r}; it has"
            f" {', '.join(sorted(task.variants)) or 'none'}"
        )
    return task.variants[variant].baseline


def _sound_absolute(task: Task, absolute: float) -> float:
    if not math.isfinite(absolute):
        raise ScoringError(
            f"task {task.name}: threshold.absolute is {absolute!r}; it must be a finite number"
        )
    return absolute


def _reason(metric: Metric, score: float, needed: float, success: bool) -> str:
    word = "above" if metric.direction is Direction.MAXIMIZE else "below"
    verb = "is" if success else "is not"
    return f"{metric.name} {score:.6g} {verb} {word} {needed:.6g}"
