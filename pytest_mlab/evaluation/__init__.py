"""What a task's evaluator may import. Standard library only: it runs in sandboxes that may have
nothing else.

An evaluator is a file with ``evaluate(submission_dir: Path, answers_dir: Path) -> float``. It
raises :class:`NoSubmission` when nothing was handed in and :class:`InvalidSubmission` when what was
handed in cannot be scored; any other exception, and a score that is not a finite number, is
the evaluator's own fault (``task_error``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_mlab.evaluation.csvfile import (
    boolean,
    number,
    number_within,
    read_answers,
    read_file,
    read_submission,
    text,
)
from pytest_mlab.evaluation.refusals import InvalidSubmission, NoSubmission, record
from pytest_mlab.evaluation.secrecy import withdraw_answers

if TYPE_CHECKING:
    from pytest_mlab.evaluation.timing import (
        Comparison,
        Round,
        Worker,
        WorkerError,
        compare_speed,
        run_code,
    )

__all__ = [
    "Comparison",
    "InvalidSubmission",
    "NoSubmission",
    "Round",
    "Worker",
    "WorkerError",
    "boolean",
    "compare_speed",
    "number",
    "number_within",
    "read_answers",
    "read_file",
    "read_submission",
    "record",
    "run_code",
    "text",
    "withdraw_answers",
]

_TIMING = frozenset({"Comparison", "Round", "Worker", "WorkerError", "compare_speed", "run_code"})


def __getattr__(name: str) -> Any:
    if name not in _TIMING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pytest_mlab.evaluation import timing

    return getattr(timing, name)
