"""Run one evaluator on one submission and write its verdict: the program that runs in the
evaluation sandbox.

    python -I .../pytest_mlab/evaluation/main.py --evaluator FILE --submission DIR \\
        --answers DIR --result FILE

With ``--each SECONDS``, ``--submission`` is a folder of submissions and ``--result`` one of their
results (:mod:`pytest_mlab.evaluation.batch`).

The result is a JSON object: ``verdict`` (``scored``, ``invalid_submission``, ``no_submission``,
``task_error``), ``score`` (a finite number, null unless scored), ``reason`` (one line, '' when
scored), ``details`` (plain values that the evaluator recorded). It is written last and atomically;
no file at all means that the program was killed."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True


def _use_own_library() -> None:
    """Import ``pytest_mlab`` from beside this file, whatever else the interpreter has installed.

    The folder leaves ``sys.path`` again: an evaluator's other imports are the interpreter's own.
    """
    library = str(Path(__file__).resolve().parents[2])
    sys.path.insert(0, library)
    try:
        importlib.import_module("pytest_mlab.evaluation")
    finally:
        sys.path.remove(library)


if __name__ == "__main__":
    _use_own_library()

from pytest_mlab.evaluation import batch, secrecy  # noqa: E402
from pytest_mlab.evaluation.refusals import InvalidSubmission, NoSubmission, take_details  # noqa: E402


def main(argv: list[str] | None = None) -> int:
    """Evaluate and write the result; 0 whenever there is one."""
    parser = argparse.ArgumentParser(
        prog="main.py", description="run one evaluator on one submission"
    )
    for option in ("--evaluator", "--submission", "--answers", "--result"):
        parser.add_argument(option, type=Path, required=True)
    parser.add_argument(
        "--private-answers", action="store_true", help="the answers are a copy that may be deleted"
    )
    parser.add_argument(
        "--each", type=float, metavar="SECONDS", help="evaluate each folder in the submission's"
    )
    options = parser.parse_args(argv)
    # Before anything reads the answers or runs the submission's code.
    secrecy.close_memory()
    secrecy.declare_private(options.answers if options.private_answers else None)

    def one(submission: Path, result: Path) -> None:
        _write(result, judge(options.evaluator, submission, options.answers))

    if options.each is None:
        one(options.submission, options.result)
    else:
        # First, because it may set variables that the modules read which it imports later.
        load_evaluator(options.evaluator)
        batch.evaluate_each(options.submission, options.result, options.each, one)
    return 0


def judge(evaluator: Path, submission: Path, answers: Path) -> dict[str, Any]:
    """The verdict of the evaluator file with its details; never raises for what the evaluator
    does."""
    # Drops what an earlier evaluation in this process recorded, as in a test of several.
    take_details()
    return {**_judge(evaluator, submission, answers), "details": take_details()}


def _judge(evaluator: Path, submission: Path, answers: Path) -> dict[str, Any]:
    try:
        score = load_evaluator(evaluator).evaluate(submission, answers)
    except InvalidSubmission as error:
        return _verdict("invalid_submission", reason=_one_line(error))
    except NoSubmission as error:
        return _verdict("no_submission", reason=_one_line(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an evaluator may raise anything; it is a task_error
        return _verdict("task_error", reason=_blame(error, evaluator))
    plain = as_plain_number(score)
    if plain is None:
        found = f"{ascii(score)[:80]} ({type(score).__name__})"
        return _verdict(
            "task_error",
            reason=f"{evaluator.name}: evaluate() returned {found}; expected a finite number",
        )
    return _verdict("scored", score=plain)


def load_evaluator(path: Path) -> Any:
    """The evaluator file as a module."""
    spec = importlib.util.spec_from_file_location("evaluator", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["evaluator"] = module
    spec.loader.exec_module(module)
    return module


def as_plain_number(score: object) -> float | None:
    """``score`` as a float: Python numbers, NumPy and torch scalars; None for anything that is
    not a finite number."""
    if getattr(score, "shape", None) == () and hasattr(score, "item"):
        score = score.item()
    # A bool is an int to isinstance.
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        return None
    try:
        plain = float(score)
    except OverflowError:
        return None
    return plain if math.isfinite(plain) else None


def _verdict(verdict: str, *, score: float | None = None, reason: str = "") -> dict[str, Any]:
    return {"verdict": verdict, "score": score, "reason": reason}


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _blame(error: BaseException, evaluator: Path) -> str:
    """What was raised, and the evaluator's own line that led to it."""
    what = " ".join(traceback.format_exception_only(type(error), error)[-1].split())
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(evaluator)]
    if own:
        line = own[-1].lineno
    elif isinstance(error, SyntaxError):
        line = error.lineno
    else:
        line = None
    return f"{evaluator.name}:{line}: {what}" if line else f"{evaluator.name}: {what}"


def _write(path: Path, result: dict[str, Any]) -> None:
    temporary = path.with_name(path.name + ".part")
    for place in (path, temporary):  # what code of the submission may have left there
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
    temporary.write_text(json.dumps(result, allow_nan=False), encoding="utf-8")
    os.replace(temporary, path)


if __name__ == "__main__":
    sys.exit(main())
