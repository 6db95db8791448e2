"""Check: rows are joined by id, not by their position."""

from __future__ import annotations

import math

from pytest_mlab.core.scoring import TIE_ABS, TIE_REL
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.csv_table import read_table, write
from pytest_mlab.validation.finding import Finding, fail, not_applicable, ok


class Order:
    """The reference's submission with its rows from last to first."""

    name = "order"
    about = "rows of a submission count by id, or another order is refused"

    def run(self, bench: Bench) -> Finding:
        """Score it in both orders."""
        submission = bench.task.submission
        if submission.kind != "csv":
            return not_applicable(f"a {submission.kind} has no rows")
        table = read_table(bench.submission / submission.path, submission.columns)
        folder = bench.copy_submission()
        turned = table.with_columns({n: table.column(n)[::-1] for n in range(len(table.header))})
        write(folder / submission.path, turned.text())
        verdict = bench.evaluate(folder)
        if verdict.word == "invalid_submission":
            return ok(f"another order is refused: {verdict.reason}")
        if verdict.score is None:
            return fail(f"rows from last to first: {verdict.word}: {verdict.reason}")
        if not math.isclose(verdict.score, bench.valid_score, rel_tol=TIE_REL, abs_tol=TIE_ABS):
            return fail(
                f"{bench.valid_score:.6g}, but {verdict.score:.6g} with the rows from last to first"
            )
        return ok("rows from last to first score the same")
