"""What the plugin costs a project that has it installed and does not use it, and what collecting a
suite costs."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.rows import Row

TASKS, REPEATS, MODELS = 13, 8, 3


def _seconds(command: list[str], cwd: Path) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)
    return time.perf_counter() - began


def _idle(runs: int) -> Row:
    """pytest on one empty test, with the plugin and without it, in turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing(): pass\n")
        # No other plugin: what those cost swings by more than what is measured.
        bare = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--disable-plugin-autoload",
            ".",
        ]
        pairs = [
            (_seconds([*bare, "-p", "mlab"], folder), _seconds(bare, folder))
            for _ in range(runs + 1)
        ][1:]
    extra = statistics.median(with_it - without for with_it, without in pairs)
    ratio = statistics.median(with_it / without for with_it, without in pairs)
    return Row("idle plugin, start-up", extra * 1000, "ms", 30.0, ratio, "bare pytest")


def _collect(runs: int) -> Row:
    """`--collect-only` of 13 tasks, 8 repeats and 3 models, less a bare start of pytest."""
    from pytest_mlab.lib.locate import builtin

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        template = builtin("task_suites") / "mlagentbench" / "vectorization"
        suites = folder / "task_suites"
        for number in range(TASKS):
            copy = suites / "mlagentbench" / f"task-{number}"
            shutil.copytree(template, copy)
            toml = copy / "task.toml"
            toml.write_text(
                toml.read_text().replace('name = "vectorization"', f'name = "task-{number}"', 1)
            )
        shutil.copy(builtin("task_suites") / "test_mlagentbench.py", suites)
        (folder / "pytest.ini").write_text("[pytest]\n")
        command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
        wanted = [
            *command,
            f"--mlab-repeats={REPEATS}",
            *(f"--mlab-model=openai/m{n}" for n in range(MODELS)),
        ]
        empty = folder / "empty"
        empty.mkdir()
        (empty / "test_nothing.py").write_text("def test_nothing(): pass\n")
        pairs = [
            (_seconds(wanted, folder), _seconds([*command, "."], empty)) for _ in range(runs + 1)
        ][1:]
    extra = statistics.median(full - bare for full, bare in pairs)
    return Row(f"collect {TASKS} x {REPEATS} x {MODELS} trials", extra, "s", 1.0)


def measure(*, quick: bool = False) -> list[Row]:
    """Idle start-up and collection."""
    runs = 5 if quick else 21
    return [_idle(runs), _collect(3 if quick else 5)]
