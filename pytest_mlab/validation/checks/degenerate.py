"""Check: submissions made without a model do not beat the threshold."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from pytest_mlab.core.scoring import beats, needed_score
from pytest_mlab.trial.evaluate import Evaluated
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.csv_table import constants, read_table, write
from pytest_mlab.validation.finding import Finding, fail, ok
from pytest_mlab.validation.mutants import remove

SEED = 0


class Degenerate:
    """Nothing at all, the workspace as it was handed out, constants, the reference's own values
    among the wrong ids."""

    name = "degenerate"
    about = "null, constant and shuffled submissions do not succeed"

    def run(self, bench: Bench) -> Finding:
        """Build them from the reference's submission and score them."""
        task = bench.task
        needed = needed_score(task, bench.settings.variant)
        found: dict[str, float | str] = {}
        faults = []
        for name, verdict in _evaluated(bench, needed):
            found[name] = verdict.word if verdict.score is None else verdict.score
            if verdict.word in ("task_error", "infra_error"):
                faults.append(f"{name}: {verdict.word}: {verdict.reason}")
            elif verdict.score is not None and beats(verdict.score, needed, task.metric.direction):
                faults.append(
                    f"{name} scores {verdict.score:.5g}, which is success (needed {needed:.5g})"
                )
        scores = [score for score in found.values() if isinstance(score, float)]
        best = max(scores, key=lambda score: task.sign * score, default=None)
        facts = {"submissions": found, "best": best}
        if faults:
            return fail("; ".join(faults), **facts)
        words = f"{len(found)} tried, none is scored"
        if best is not None:
            words = f"{len(found)} tried, the best scores {best:.5g}, needed {needed:.5g}"
        if task.submission.kind != "csv":
            words += f"; constant, shuffled: not applicable to a {task.submission.kind}"
        return ok(words, **facts)


def _evaluated(bench: Bench, needed: float) -> Iterator[tuple[str, Evaluated]]:
    home = bench.folder("degenerate")
    home.mkdir()
    folders = dict(_submissions(bench, home))
    if bench.task.timed:
        # One at a time, each where nothing has run before it.
        yield from ((name, judged(bench, folder, needed)) for name, folder in folders.items())
    else:
        verdicts = bench.evaluate_each(home)
        yield from ((name, verdicts[folder.name]) for name, folder in folders.items())


def judged(bench: Bench, folder: Path, needed: float) -> Evaluated:
    """The evaluation; a time that looks like success is measured twice more: the median counts."""
    verdicts = [bench.evaluate(folder)]
    direction = bench.task.metric.direction
    first = verdicts[0].score
    if bench.task.timed and first is not None and beats(first, needed, direction):
        verdicts += [bench.evaluate(folder) for _ in range(2)]
    scored = sorted(
        (verdict for verdict in verdicts if verdict.score is not None), key=lambda v: v.score or 0.0
    )
    return scored[len(scored) // 2] if scored else verdicts[0]


def _submissions(bench: Bench, home: Path) -> Iterator[tuple[str, Path]]:
    """Names and folders, made in ``home``, of what is tried."""
    yield "untouched workspace", bench.fresh(home / "untouched").root
    path = bench.task.submission.path
    for name in ("nothing", "empty"):
        folder = bench.copy_submission(home / name)
        remove(folder / path)
        if name == "empty":
            if bench.task.submission.kind == "directory":
                (folder / path).mkdir()
            else:
                (folder / path).touch()
        yield name, folder
    if bench.task.submission.kind == "csv":
        yield from _tables(bench, home)


def _tables(bench: Bench, home: Path) -> Iterator[tuple[str, Path]]:
    table = read_table(bench.submission / bench.task.submission.path, bench.task.submission.columns)
    rows = list(table.rows)
    random.Random(SEED).shuffle(rows)
    shuffled = table.with_columns({n: [row[n] for row in rows] for n in table.values})
    for number, (name, changed) in enumerate((*constants(table), ("shuffled values", shuffled))):
        folder = bench.copy_submission(home / f"table-{number}")
        write(folder / bench.task.submission.path, changed.text())
        yield name, folder
