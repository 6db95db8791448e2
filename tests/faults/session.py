"""A user's project in which a command was run: what the terminal said, at 80 columns, and what is
on disk.

Each module of this package provokes one row of faults and does so in as few sessions as it can:
every fault is an agent, a task or a model of its own, and the tests look at their trials."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.project import COMMON, RUN, JunitCase, Project
from tests.support.toy_suite import write_toy_suite

COLUMNS = 80

PATIENCE = 120.0
"""Seconds that a session may take before it is given up."""


@dataclass(frozen=True)
class Said:
    """How a command ended and what it wrote."""

    ret: int
    out: str
    err: str

    def part(self, title: str) -> str:
        """The part of pytest's output under the failure heading that ends in ``title``."""
        found = re.search(
            rf"^_+ [^\n]*{re.escape(title)} _+\n(.*?)^[_=]{{3,}}", self.out, re.M | re.S
        )
        assert found, f"no part {title!r} in\n{self.out}"
        return re.sub(r"^\[gw\d+\] [^\n]*\n", "", found[1])  # xdist's line about the worker


class Session(Project):
    """A project with the toy suite whose commands run in processes of their own, in the real
    sandbox; ``patience`` is how many seconds each may take."""

    def __init__(
        self,
        root: Path,
        *,
        tasks: tuple[str, ...] = ("guess",),
        name: str = RUN,
        patience: float = PATIENCE,
    ) -> None:
        self.root = root
        self.name = name
        self.patience = patience
        write_toy_suite(root, tasks=tasks)

    def __repr__(self) -> str:
        return f"Session({str(self.root)!r})"

    @property
    def path(self) -> Path:
        return self.root

    def environ(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment: no keys, no CI, a cache of the project's own."""
        dropped = (
            "CI",
            "BUILD_NUMBER",
            "PYTEST_ADDOPTS",
            "OPENAI_BASE_URL",
            "FORCE_COLOR",
            "PY_COLORS",
        )
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in dropped
            and not name.endswith("_API_KEY")
            and not name.startswith(("PYTEST_", "MLAB_"))
        }
        return {
            **kept,
            "COLUMNS": str(COLUMNS),
            "MLAB_CACHE_DIR": str(self.root / "cache"),
            **(extra or {}),
        }

    def words(self, *args: str) -> list[str]:
        """The command line of pytest: the usual arguments of the tests, but in bubblewrap; none to
        resume a run."""
        usual = [*COMMON, "--mlab-sandbox=bubblewrap", f"--mlab-run-dir={self.name}"]
        if any(word.startswith("--mlab-resume") for word in args):
            usual = ["-p", "no:cacheprovider"]
        return [sys.executable, "-m", "pytest", *usual, *args]

    def pytest(self, *args: str, env: Mapping[str, str] | None = None) -> Said:
        """pytest in the project."""
        return self._command(self.words(*args), env)

    def mlab(self, *args: str, env: Mapping[str, str] | None = None) -> Said:
        """The command ``mlab`` in the project."""
        return self._command([sys.executable, "-m", "pytest_mlab", *args], env)

    def background(
        self, *args: str, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """pytest, not waited for, the first of a process group like a command of a shell; writes to
        ``out.txt``."""
        with open(self.root / "out.txt", "wb") as out:
            return subprocess.Popen(
                self.words(*args),
                cwd=self.root,
                env=self.environ(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=heed_ctrl_c,
            )

    def _command(self, words: list[str], env: Mapping[str, str] | None) -> Said:
        done = subprocess.run(
            words,
            cwd=self.root,
            env=self.environ(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=self.patience,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def case(self, trial: str) -> JunitCase:
        """The JUnit test case of a trial, by the trial's name."""
        return self.junit()[f"task_suites.test_toy::test_beats_baseline[{trial}]"]

    def observations(self, trial: str) -> list[str]:
        """What the agent of ``task/subject/repeat`` was answered, step by step."""
        from pytest_mlab.store.events import StepDone
        from pytest_mlab.store.journal import read_events

        events = read_events(self.trial(trial) / "trace.jsonl")
        return [event.observation for event in events if isinstance(event, StepDone)]


def heed_ctrl_c() -> None:
    """Undo that a shell starts background jobs with SIGINT ignored, which all children inherit: a
    suite that runs in the background would wait for sessions that cannot be interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def fits(text: str) -> list[str]:
    """Lines that are wider than the terminal though they could have been broken: not single words,
    as paths are."""
    return [line for line in text.splitlines() if len(line) > COLUMNS and " " in line.strip()]


def marked(marker: str) -> list[psutil.Process]:
    """Running processes with ``marker`` in their command line or environment."""

    def is_marked(process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            words = [*process.cmdline(), *process.environ().values()]
            return process.status() != psutil.STATUS_ZOMBIE and any(
                marker in word for word in words
            )
        return False

    return [process for process in psutil.process_iter() if is_marked(process)]


def wait_for(what: Callable[[], object], process: subprocess.Popen[bytes] | None = None) -> None:
    """Until ``what`` is true; fails when ``process`` ends or patience does."""
    until = time.monotonic() + PATIENCE
    while not what():
        assert process is None or process.poll() is None, "pytest ended early"
        assert time.monotonic() < until, "it never came"
        time.sleep(0.02)
