"""Run a task's data.py: alone, in a process of its own that dies with this one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pytest_mlab.core.task import FOREIGN, Task
from pytest_mlab.errors import DataUnavailable, SuiteError

# What the host's Python needs to start and to find its libraries. Keys stay out.
_ENVIRONMENT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
)
_TAIL_BYTES = 4000
_TAIL_LINES = 12

# Its standard input is held open by the parent: when that ends, however it ends, so does this.
_DRIVER = """
import importlib.util, os, sys, threading
from pathlib import Path
def watch():
    os.read(0, 1)
    os._exit(75)
threading.Thread(target=watch, daemon=True).start()
file, raw, public, answers, variant = sys.argv[1:]
spec = importlib.util.spec_from_file_location("data", file)
module = importlib.util.module_from_spec(spec)
sys.modules["data"] = module
spec.loader.exec_module(module)
module.prepare(Path(raw), Path(public), Path(answers), variant)
sys.stdout.flush()
sys.stderr.flush()
"""


def run_data_py(task: Task, variant: str, scratch: Path) -> None:
    """Call ``prepare`` of the task's data.py with ``raw``, ``made/public`` and ``made/answers``
    below ``scratch``.

    It is a copy of the one file that runs, so that nothing but its arguments can enter the data.
    Raises SuiteError with the end of what it wrote, DataUnavailable when a package is missing."""
    code, log = scratch / "data.py", scratch / "data.log"
    shutil.copyfile(task.folder / "data.py", code)
    folders = [str(scratch / name) for name in ("raw", "made/public", "made/answers")]
    # A file, not a pipe: the standard output is not read while the process runs, and a full pipe
    # would stop it.
    with log.open("wb") as out:
        process = subprocess.Popen(
            # -I keeps PYTHONPATH, the user's site-packages and the working directory out of
            # sys.path.
            [sys.executable, "-I", "-B", "-c", _DRIVER, str(code), *folders, variant],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            cwd=scratch,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        )
        with process:
            try:
                # Not communicate(): that closes the pipe, and its end means to the child that the
                # parent has died.
                status = process.wait()
            finally:
                # Also on an interrupt of the wait. After a normal end there is no process left to
                # kill, and Popen.kill() does nothing.
                process.kill()
    if status != 0:
        raise _fault(task, variant, status, log, code)


def _fault(
    task: Task, variant: str, status: int, log: Path, code: Path
) -> SuiteError | DataUnavailable:
    lines = _tail(log).replace(str(code), "data.py").splitlines()
    where = f"{task.folder / 'data.py'} ({variant})"
    if lines and lines[-1].startswith("ModuleNotFoundError"):
        needed = " ".join(f'"{line}"' for line in _needed(task, variant, lines[-1]))
        return DataUnavailable(f"{where} cannot run: {lines[-1]}", fix=f"pip install {needed}")
    how = f"was killed by signal {-status}" if status < 0 else f"failed with exit status {status}"
    shown = "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])
    return SuiteError(f"{where} {how}; the end of its output:\n{shown or '  (none)'}")


def _needed(task: Task, variant: str, error: str) -> list[str]:
    """What to install: all that the task requires; for a prepare.py, which lists nothing, the
    module that it named."""
    if any(source.kind == FOREIGN for source in task.variants[variant].sources):
        return [error.rpartition("No module named ")[2].strip("'\"").partition(".")[0]]
    return [
        *(task.requirements or ("pytest-mlab[tasks]",)),
        *(["pytest-mlab[full]"] if variant == "full" else []),
    ]


def _tail(log: Path) -> str:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        return stream.read().decode("utf-8", errors="replace")
