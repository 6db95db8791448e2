"""What a sandbox costs: its start, its end, and one execution of ``true``, against a bare
``posix_spawn`` of it.

Backends that do not work on this machine are left out. The docker figures need an image that has
python3 (``MLAB_TEST_DOCKER_IMAGE`` and ``MLAB_TEST_DOCKER_HOST``, as ``.ci/docker-engine`` prints
them)."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.rows import Row
from pytest_mlab.core.sandbox_api import Sandbox, SandboxOptions, SandboxSpec
from pytest_mlab.sandboxes import make

ROUNDS = 300
OPENINGS = 7
TRUE = "/bin/true"
TARGET_ADDED = {"bubblewrap": 0.5, "docker": 0.5}
"""Milliseconds that an execution may add to a bare spawn."""
TARGET_START = {"bubblewrap": 43.0, "docker": 240.0}
"""Milliseconds, measured when the supervisor was designed."""


def median_ms(work: Callable[[], object], rounds: int) -> float:
    """Median wall time of ``work`` in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def spawn_true() -> None:
    """The bare cost of a process."""
    os.waitpid(os.posix_spawn(TRUE, [TRUE], os.environ), 0)


def backends() -> list[Sandbox]:
    """The sandboxes that work here."""
    host = os.environ.get("MLAB_TEST_DOCKER_HOST")
    image = os.environ.get("MLAB_TEST_DOCKER_IMAGE", "")
    if host:
        os.environ.setdefault("DOCKER_HOST", host)
    made = [make("local"), make("bubblewrap"), make(SandboxOptions("docker", image))]
    return [sandbox for sandbox in made if not sandbox.check()]


def measure_one(sandbox: Sandbox, spec: SandboxSpec, rounds: int) -> list[Row]:
    """The rows of one backend."""
    starts, ends = [], []
    for _ in range(OPENINGS):
        begin = time.perf_counter()
        connection = sandbox.open(spec)
        opened = time.perf_counter()
        connection.close()
        starts.append((opened - begin) * 1000)
        ends.append((time.perf_counter() - opened) * 1000)
    connection = sandbox.open(spec)
    try:
        median_ms(lambda: connection.execute([TRUE]), 20)
        bare = median_ms(spawn_true, rounds)
        cost = median_ms(lambda: connection.execute([TRUE]), rounds)
        connection.repl("pass")
        repl = median_ms(lambda: connection.repl("pass"), rounds)
    finally:
        connection.close()
    name = f"sandbox {sandbox.name}"
    return [
        Row(f"{name}: execute true", cost, "ms", None, cost / bare, "posix_spawn"),
        Row(f"{name}: added to a spawn", cost - bare, "ms", TARGET_ADDED.get(sandbox.name)),
        Row(f"{name}: repl pass", repl, "ms"),
        Row(f"{name}: start", statistics.median(starts), "ms", TARGET_START.get(sandbox.name)),
        Row(f"{name}: close", statistics.median(ends), "ms"),
    ]


def measure(*, quick: bool = False) -> list[Row]:
    """All rows; takes some ten seconds."""
    rounds = ROUNDS // 3 if quick else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        spec = SandboxSpec(Path(folder), f"benchmark-{os.getpid()}")
        return [row for sandbox in backends() for row in measure_one(sandbox, spec, rounds)]
