"""Check: the same submission gets the same score."""

from __future__ import annotations

from statistics import median

from pytest_mlab.core.scoring import TIE_ABS, TIE_REL
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.finding import Finding, Unavailable, fail, ok

TIMES = 3
TIMED_SPREAD = 0.20
"""Of times: largest minus smallest score of the starter, as a share of their median. Where a busy
machine exceeds it, the middle three of five decide."""

TIMED_TIMES = 5


class Repeatable:
    """For a timed task the starter's own code is evaluated: its ratio, near 1, is the least
    noisy."""

    name = "deterministic"
    about = f"{TIMES} evaluations of one submission agree"

    def run(self, bench: Bench) -> Finding:
        """Evaluate the same folder several times."""
        run = bench.baselines(1)[0] if bench.task.timed else bench.reference
        if run.score is None:
            raise Unavailable(f"there is no valid submission: {run.problem}")
        timed, scores = bench.task.timed, [run.score]
        while len(scores) < TIMES or (
            timed and _excess(scores, timed) > 0 and len(scores) < TIMED_TIMES
        ):
            verdict = bench.evaluate(run.workspace.root)
            if verdict.score is None:
                return fail(f"scored {run.score:.6g} first, then {verdict.word}: {verdict.reason}")
            scores.append(verdict.score)
        words = ", ".join(f"{score:.6g}" for score in scores)
        if _excess(scores, timed) > 0:
            return fail(f"{words}: further apart than {_allowed(scores, timed):.3g}", scores=scores)
        if timed:
            words += f" (times, {_allowed(scores, timed):.2g} apart)"
        return ok(words, scores=scores)


def _allowed(scores: list[float], timed: bool) -> float:
    return TIMED_SPREAD * median(scores) if timed else TIE_REL * max(map(abs, scores)) + TIE_ABS


def _excess(scores: list[float], timed: bool) -> float:
    """How much further apart the scores are than allowed; of five times the middle three count."""
    kept = sorted(scores)[1:-1] if len(scores) == TIMED_TIMES else scores
    return max(kept) - min(kept) - _allowed(scores, timed)
