"""Check: a submission that is broken is refused with a reason, and never taken for a fault of the
task."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence

from pytest_mlab.trial.evaluate import Evaluated
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.finding import Finding, fail, ok
from pytest_mlab.validation.mutants import Mutant, mutants

CLEAN = ("invalid_submission", "no_submission")

BATCH = 64
"""Broken submissions that exist at a time."""

PATIENCE = 20.0
"""Seconds that refusing may take, beside ten times those of the valid submission: an evaluator that
waits at a pipe would keep a trial waiting, too."""


class Fuzz:
    """Each field of the reference's submission in turn."""

    name = "fuzz"
    about = "broken submissions are refused cleanly, never a task_error"

    def run(self, bench: Bench) -> Finding:
        """Evaluate them all."""
        valid = bench.reference.verdict
        patience = PATIENCE + 10 * (valid.seconds if valid else 0.0)
        faults: list[str] = []
        verdicts: dict[str, str] = {}
        made = mutants(bench.submission, bench.task.submission)
        # The copies of a batch go with it: a task has dozens of mutants.
        while batch := tuple(itertools.islice(made, BATCH)):
            for mutant, verdict in _evaluated(bench, batch, patience):
                verdicts[mutant.name] = verdict.word
                if fault := _fault(mutant, verdict):
                    faults.append(fault)
        if faults:
            more = f" (and {len(faults) - 3} more of {len(verdicts)})" if len(faults) > 3 else ""
            return fail("; ".join(faults[:3]) + more, verdicts=verdicts, faults=faults)
        return ok(
            f"{len(verdicts)} broken submissions, all refused cleanly{_scored(verdicts)}",
            verdicts=verdicts,
        )


def _evaluated(
    bench: Bench, batch: Sequence[Mutant], patience: float
) -> list[tuple[Mutant, Evaluated]]:
    home = bench.folder("broken")
    home.mkdir()
    for number, mutant in enumerate(batch):
        mutant.make(bench.copy_submission(home / str(number)))
    verdicts = bench.evaluate_each(home, timeout=patience)
    shutil.rmtree(home)
    return [(mutant, verdicts[str(number)]) for number, mutant in enumerate(batch)]


def _fault(mutant: Mutant, verdict: Evaluated) -> str:
    if verdict.word in CLEAN:
        return "" if verdict.reason.strip() else f"{mutant.name}: {verdict.word} without a reason"
    if verdict.word == "scored":
        return f"{mutant.name}: scored {verdict.score:.5g} all the same" if mutant.broken else ""
    return f"{mutant.name}: {verdict.word}: {verdict.reason}"


def _scored(verdicts: dict[str, str]) -> str:
    kept = [name for name, word in verdicts.items() if word == "scored"]
    return (
        f" or, still whole, scored ({', '.join(kept[:2])}{', ...' if len(kept) > 2 else ''})"
        if kept
        else ""
    )
