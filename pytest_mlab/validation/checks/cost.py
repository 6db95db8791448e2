"""Check: time and memory stay within what the task declares."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_mlab.core.task import Task
from pytest_mlab.validation.bench import Bench, Run
from pytest_mlab.validation.finding import Finding, Unavailable, fail, ok


class Cost:
    """Seconds of wall time; memory is the resident set of the largest process."""

    name = "cost"
    about = "starter, reference, evaluator keep to declared memory and time"

    def run(self, bench: Bench) -> Finding:
        """Compare the runs that other checks made with the declared limits."""
        runs = {"starter": bench.baselines(1)[0], "reference": bench.reference}
        if broken := [word for word, run in runs.items() if run.problem]:
            raise Unavailable(f"no complete run to look at: see {broken[0]}")
        faults = [fault for word, run in runs.items() for fault in _faults(word, run, bench.task)]
        evaluation = max(run.verdict.seconds for run in runs.values() if run.verdict)
        peak = max(run.evaluation_mb for run in runs.values())
        parts = {word: (run.seconds, run.memory_mb) for word, run in runs.items()} | {
            "evaluator": (evaluation, peak)
        }
        facts = {
            word: {"seconds": round(s, 3), "memory_mb": round(mb, 1)}
            for word, (s, mb) in parts.items()
        }
        if faults:
            return fail("; ".join(faults), **facts)
        largest = max(megabytes for _, megabytes in parts.values())
        times = ", ".join(f"{word} {seconds:.1f}" for word, (seconds, _) in parts.items())
        return ok(f"{times} s; {largest:.0f} MiB", **facts)


def _faults(word: str, run: Run, task: Task) -> Iterator[str]:
    memory, limit = task.resources.memory_mb, task.budget.max_seconds
    for what, used in ((word, run.memory_mb), (f"the evaluator on the {word}", run.evaluation_mb)):
        if used > memory:
            yield f"{what} uses {used:.0f} MiB of {memory}"
    if limit is not None and run.seconds > limit:
        yield f"{word} takes {run.seconds:.1f} s of a budget of {limit:g} s"
