"""From a worker's request to the first line of a trial's process, with the model library ready in
it."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.rows import Row
from pytest_mlab.trial.process.child_env import trial_environment
from pytest_mlab.trial.process.watch import Watch

PRELOAD = [
    "pytest_mlab.trial.agent_phase",
    "pytest_mlab.trial.finish_phase",
    "scipy.special",
    "litellm",
    __name__,
]


def note_start(payload: dict[str, Any]) -> None:
    """Runs in the trial's process: say when it began, and that the model library is there."""
    began = time.perf_counter()
    assert "litellm" in sys.modules
    Path(payload["out"]).write_text(str(began))


def _warm(
    runs: int, folder: Path, environ: dict[str, str]
) -> tuple[float, list[float], list[float]]:
    """Seconds of the first start, of the later ones, and of whole processes, kill of leftovers
    included."""
    starts, wholes = [], []
    payload = {"out": str(folder / "began")}
    with Watch(environ=environ, preload=PRELOAD) as watch:
        for _ in range(runs + 1):
            asked = time.perf_counter()
            ending = watch.run("benchmarks.trial_start:note_start", payload, log=folder / "log")
            assert ending.clean, (folder / "log").read_text()
            starts.append(float((folder / "began").read_text()) - asked)
            wholes.append(time.perf_counter() - asked)
    return starts[0], starts[1:], wholes[1:]


def _cold(runs: int, environ: dict[str, str]) -> float:
    """A process of its own that imports the same."""
    program = f"import sys; sys.path[:] = {sys.path!r}; import {', '.join(PRELOAD)}"
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-I", "-c", program], env=environ, check=True, capture_output=True
        )
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def measure(*, quick: bool = False) -> list[Row]:
    """Start of a trial's process by the fork server, against a process that imports what the trial
    needs."""
    environ = trial_environment(os.environ, needs_model=True)
    environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as name:
        first, later, whole = _warm(10 if quick else 100, Path(name), environ)
    cold = _cold(1 if quick else 3, environ)
    start = statistics.median(later)
    return [
        Row("first trial of a worker, start", first * 1000, "ms", None, cold / first, "quicker"),
        Row("trial's process, start", start * 1000, "ms", 20.0, cold / start, "quicker"),
        Row("trial's process, empty, start to end", statistics.median(whole) * 1000, "ms"),
    ]
