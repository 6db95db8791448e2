"""Check: the reference solution beats the threshold."""

from __future__ import annotations

from pytest_mlab.core.scoring import beats, needed_score
from pytest_mlab.suites.foreign.reader import origin_of
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.finding import Finding, fail, not_applicable, ok


class Reference:
    """A task that nothing is known to solve may be unsolvable."""

    name = "reference"
    about = "the reference solution beats the threshold"

    def run(self, bench: Bench) -> Finding:
        """Replay the reference and judge its score."""
        if origin_of(bench.task):
            return not_applicable("MLAgentBench's format has no reference solution")
        run, task = bench.reference, bench.task
        if run.score is None:
            return fail(run.problem)
        if run.tampered:
            return fail(f"the reference changes read-only files: {', '.join(run.tampered[:3])}")
        needed = needed_score(task, bench.settings.variant)
        word = "above" if task.sign > 0 else "below"
        facts = {"score": run.score, "needed": needed, "seconds": round(run.seconds, 3)}
        finding = ok if beats(run.score, needed, task.metric.direction) else fail
        return finding(f"{run.score:.5g}, needed {word} {needed:.5g}; {run.seconds:.1f} s", **facts)
