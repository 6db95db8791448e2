"""What a sandbox costs: its start, its end, and one execution of ``true``, against a bare ``posix_spawn`` of it.

Backends that do not work on this machine are left out. The docker figures need an image that has python3
(``MLAB_TEST_DOCKER_IMAGE`` and ``MLAB_TEST_DOCKER_HOST``, as ``.ci/docker-engine`` prints them).
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.rows import Row
from pytest_mlab.adapters.sandboxes import make
from pytest_mlab.core.ports import Sandbox, SandboxSpec

ROUNDS = 300
OPENINGS = 7
TRUE = "/bin/true"
# Milliseconds, measured on an idle machine when the supervisor was designed.
TARGET_EXECUTION = {"local": 0.66, "bubblewrap": 0.76, "docker": 0.87}
TARGET_START = {"bubblewrap": 43.0, "docker": 240.0}


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
    host, image = os.environ.get("MLAB_TEST_DOCKER_HOST"), os.environ.get("MLAB_TEST_DOCKER_IMAGE", "")
    if host:
        os.environ.setdefault("DOCKER_HOST", host)
    made = [make("local"), make("bubblewrap"), make("docker", docker_image=image)]
    return [sandbox for sandbox in made if not sandbox.check()]


def measure_one(sandbox: Sandbox, spec: SandboxSpec) -> list[Row]:
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
        bare = median_ms(spawn_true, ROUNDS)
        cost = median_ms(lambda: connection.execute([TRUE]), ROUNDS)
        connection.repl("pass")
        repl = median_ms(lambda: connection.repl("pass"), ROUNDS)
    finally:
        connection.close()
    name = f"sandbox {sandbox.name}"
    return [
        Row(f"{name}: execute true", cost, "ms", TARGET_EXECUTION[sandbox.name], cost / bare, "bare posix_spawn"),
        Row(f"{name}: bare posix_spawn", bare, "ms"),
        Row(f"{name}: repl pass", repl, "ms"),
        Row(f"{name}: start", statistics.median(starts), "ms", TARGET_START.get(sandbox.name)),
        Row(f"{name}: close", statistics.median(ends), "ms"),
    ]


def measure() -> list[Row]:
    """All rows; takes some ten seconds."""
    with tempfile.TemporaryDirectory() as folder:
        spec = SandboxSpec(Path(folder), f"benchmark-{os.getpid()}")
        return [row for sandbox in backends() for row in measure_one(sandbox, spec)]


if __name__ == "__main__":
    for row in measure():
        target = "" if row.target is None else f"target {row.target:g}"
        ratio = "" if row.ratio is None else f"{row.ratio:.2f} x {row.against}"
        print(f"{row.name:<36} {row.value:9.3f} {row.unit}  {target:<12} {ratio}")
