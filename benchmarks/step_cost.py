"""What the harness costs a step: 104 trials of 50 steps, each of them ``true`` run in the sandbox
``local``.

A step is counted, executed, snapshot (20 files) and traced. Bare ``posix_spawn`` of the same
program takes turns with the trials. CPU time covers the harness, the supervisor and the executed
program; a trial without steps is taken off."""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, NoReturn

from benchmarks.rows import Row
from pytest_mlab.core.actions import Action
from pytest_mlab.core.budget import Budget
from pytest_mlab.core.sandbox_api import SandboxSpec
from pytest_mlab.core.task import Direction, Metric, Resources, Submission, Task
from pytest_mlab.core.trial import TrialId
from pytest_mlab.sandboxes import make
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.snapshots import Snapshots
from pytest_mlab.store.trialdir import TrialDir
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.environment import TrialEnvironment
from pytest_mlab.trial.provision import provision

TRIALS, STEPS, FILES = 104, 50, 20
TRUE = "/bin/true"
TARGET_CPU = 1.5


class _Cost(NamedTuple):
    """Seconds of CPU (children included) and of wall time."""

    cpu: float
    wall: float


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def _spawns(count: int) -> _Cost:
    cpu, wall = _cpu(), time.perf_counter()
    for _ in range(count):
        os.waitpid(os.posix_spawn(TRUE, [TRUE], os.environ), 0)
    return _Cost(_cpu() - cpu, time.perf_counter() - wall)


def _stop() -> NoReturn:
    raise SystemExit("the scripted agent went on after its end")


def _task(folder: Path) -> Task:
    (folder / "env").mkdir(parents=True)
    for number in range(FILES - 1):
        (folder / "env" / f"file{number}.txt").write_text("x" * 1000)
    (folder / "env" / "true.py").write_text("")
    return Task(
        name="true",
        suite="benchmark",
        version="1",
        summary="",
        modality="none",
        folder=folder,
        description="",
        metric=Metric("none", Direction.MAXIMIZE),
        submission=Submission("csv", "submission.csv"),
        variants={},
        digest="",
        resources=Resources(pids=4096),
    )


def _trial(task: Task, folder: Path, number: int, steps: int) -> tuple[_Cost, float]:
    """Cost of a whole trial, and wall seconds of its steps alone."""
    cpu, wall = _cpu(), time.perf_counter()
    workspace = provision(task, folder, {}, folder / "workspaces" / str(number), mounts=False)
    trial_dir = TrialDir(folder / "run" / str(number), TrialId("true", "scripted", "", number))
    snapshots = Snapshots(ContentStore(folder / "run" / "store"), workspace.root)
    snapshots.begin()
    spec = SandboxSpec(
        workspace.root, f"benchmark-{os.getpid()}-{number}", resources=task.resources
    )
    connection = make("local").open(spec)
    connection.python = TRUE  # what "Execute Script" runs
    try:
        with trial_dir.journal() as journal:
            environment = TrialEnvironment(
                task=task,
                workspace=workspace,
                connection=connection,
                account=Account(Budget()),
                journal=journal,
                snapshots=snapshots,
                trial_dir=trial_dir,
                model=None,
                scripts=lambda _: [],
                on_runaway=_stop,
            )
            began = time.perf_counter()
            for _ in range(steps):
                seen = environment.execute(Action("Execute Script", {"script_name": "true.py"}))
                assert seen.ok, seen.text
            stepping = time.perf_counter() - began
    finally:
        connection.close()
    return _Cost(_cpu() - cpu, time.perf_counter() - wall), stepping


def measure(*, quick: bool = False) -> list[Row]:
    """CPU and wall time a step, and the bare spawn's, in milliseconds; some twenty seconds, or two
    when quick."""
    trials = 8 if quick else TRIALS
    costs: list[_Cost] = []
    empty: list[_Cost] = []
    bare: list[_Cost] = []
    stepping: list[float] = []
    with tempfile.TemporaryDirectory(prefix="mlab-steps-") as name:
        folder = Path(name)
        task = _task(folder / "task")
        _trial(task, folder, 0, 1)  # imports and caches
        for number in range(1, trials + 1):
            cost, seconds = _trial(task, folder, number, STEPS)
            costs.append(cost)
            stepping.append(seconds / STEPS)
            empty.append(_trial(task, folder, trials + number, 0)[0])
            bare.append(_spawns(STEPS))
    unloaded = statistics.median(e.cpu for e in empty)
    cpu = statistics.median((c.cpu - unloaded) / STEPS for c in costs) * 1000
    wall = statistics.median(stepping) * 1000
    spawn_cpu = statistics.median(b.cpu / STEPS for b in bare) * 1000
    spawn_wall = statistics.median(b.wall / STEPS for b in bare) * 1000
    return [
        Row("step: CPU", cpu, "ms", TARGET_CPU, cpu / spawn_cpu, "bare spawn"),
        Row("step: wall", wall, "ms", None, wall / spawn_wall, "bare spawn"),
        Row("bare posix_spawn: CPU", spawn_cpu, "ms", 0.65),
        Row("bare posix_spawn: wall", spawn_wall, "ms"),
    ]


if __name__ == "__main__":
    for row in measure(quick="--quick" in sys.argv):
        print(row)
