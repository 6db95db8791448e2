"""Check: the starter scores here what task.toml records."""

from __future__ import annotations

from pytest_mlab.core.scoring import beats, needed_score, prediction_interval
from pytest_mlab.core.task import Baseline, Task
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.finding import Finding, Unavailable, fail, ok

SLACK = 0.01
"""Share of the recorded mean by which other versions of libraries may shift a score."""

TIMED_SPREAD = 0.10
"""Share of the recorded mean by which a time may differ from one machine, and one moment, to
another."""

REPEATS, MORE_REPEATS = 3, 5


class ReproducedBaseline:
    """One run in twenty lies outside a 95 % interval by chance. Then the baseline is run three
    times, and when two of those lie outside, five times: the majority decides, so that a sound task
    fails less than once in a thousand validations."""

    name = "baseline"
    about = "the baseline's score lies within the spread that was recorded"

    def run(self, bench: Bench) -> Finding:
        """Run the baseline as often as was asked for, and compare."""
        task = bench.task
        recorded = task.variants[bench.settings.variant].baseline
        if recorded is None:
            raise Unavailable("no baseline was measured: see schema")
        low, high = expected(task, recorded)
        scores = self._scores(bench, bench.settings.runs)
        if _outside(scores, low, high):
            scores = self._scores(bench, max(REPEATS, bench.settings.runs))
        if 2 * len(_outside(scores, low, high)) > len(scores):
            scores = self._scores(bench, max(MORE_REPEATS, bench.settings.runs))
        gone = _outside(scores, low, high)
        facts = {
            "scores": scores,
            "low": low,
            "high": high,
            "mean": recorded.mean,
            "std": recorded.std,
        }
        words = f"{_list(scores)}; expected {low:.5g} to {high:.5g} (n = {recorded.n})"
        if 2 * len(gone) > len(scores):
            return fail(f"{len(gone)} of {len(scores)} runs lie outside: {words}", **facts)
        lucky = sum(
            beats(score, needed_score(task, bench.settings.variant), task.metric.direction)
            for score in scores
        )
        if lucky:
            words += f"; {lucky} beat the threshold"
        return ok(words, **facts)

    @staticmethod
    def _scores(bench: Bench, count: int) -> list[float]:
        runs = bench.recorded(count)
        if problem := runs[-1].problem:
            raise Unavailable(f"the starter gives no score: {problem}")
        return [run.score for run in runs if run.score is not None]


def expected(task: Task, recorded: Baseline) -> tuple[float, float]:
    """The range for a run of the baseline: the 95 % prediction interval, widened by SLACK; for
    times the mean, give or take TIMED_SPREAD."""
    share = TIMED_SPREAD if task.timed else SLACK
    interval = prediction_interval(recorded) or (recorded.mean, recorded.mean)
    slack = share * abs(recorded.mean)
    if task.timed:
        return recorded.mean - slack, recorded.mean + slack
    return interval[0] - slack, interval[1] + slack


def _outside(scores: list[float], low: float, high: float) -> list[float]:
    return [score for score in scores if not low <= score <= high]


def _list(scores: list[float]) -> str:
    shown = ", ".join(f"{score:.5g}" for score in scores[:3])
    return shown if len(scores) <= 3 else f"{shown}, ..."
