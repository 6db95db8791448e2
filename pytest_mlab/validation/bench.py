"""What the checks of one task share: its data, its sandbox, runs of its baseline and reference.

Each is made when a check first asks for it and kept until the task's last check is done.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

from pytest_mlab import sandboxes
from pytest_mlab.core.sandbox_api import Connection, SandboxOptions, SandboxSpec
from pytest_mlab.core.task import Task
from pytest_mlab.data.prepare import Prepared, prepare
from pytest_mlab.errors import SuiteError
from pytest_mlab.suites.scripts import recorded_script
from pytest_mlab.trial.evaluate import Evaluated, evaluate
from pytest_mlab.trial.evaluate_batch import evaluate_batch
from pytest_mlab.trial.packages import check_packages
from pytest_mlab.trial.provision import provision
from pytest_mlab.trial.scripted import run_script
from pytest_mlab.trial.workspace import Workspace
from pytest_mlab.validation.finding import Unavailable
from pytest_mlab.validation.scratch import label_of, scratch_folder
from pytest_mlab.validation.usage import MeteredSandbox

_Self = TypeVar("_Self", bound="Bench")

EVALUATION_TIMEOUT = 600.0
"""Seconds that one evaluation may take here."""


@dataclass(frozen=True)
class LeakLimits:
    """Limits beyond which something visible counts as a leak (docs/validation.md argues for the
    defaults).

    ``error`` (0 to 1): share of the errors of the most frequent answer that a visible column saves.
    ``rank`` (0 to 1): absolute rank correlation of a visible number with a numeric answer.
    ``bits``: least information of a run of answers that is searched for.
    ``windows`` (0 to 1): share of the pieces of an answer file, one without columns, that a visible
    file holds."""

    error: float = 0.9
    rank: float = 0.99
    bits: float = 64.0
    windows: float = 0.5


@dataclass(frozen=True)
class Settings:
    """How to validate: ``runs`` of the baseline, on the data ``variant``, in the ``sandbox``;
    ``consent`` names the rules of a task's data that the user has accepted, ``progress`` reports to
    stderr how they are fetched."""

    cache: Path
    variant: str = "mini"
    sandbox: SandboxOptions = SandboxOptions()
    runs: int = 1
    network: bool = False
    leaks: LeakLimits = field(default_factory=LeakLimits)
    consent: Callable[[Task], Collection[str]] = lambda _: ()
    progress: bool = False


@dataclass(frozen=True)
class Subject:
    """A task that is to be validated; ``load`` raises SuiteError when it is broken."""

    name: str
    suite: str
    load: Callable[[], Task]


@dataclass(frozen=True)
class Run:
    """One replay of ``baseline`` or ``reference`` and its evaluation. ``fault`` says why a script
    failed, and then there is no ``verdict``; ``tampered`` are read-only files that it changed;
    memory is that of the largest process."""

    workspace: Workspace
    seconds: float
    memory_mb: float
    fault: str = ""
    verdict: Evaluated | None = None
    evaluation_mb: float = 0.0
    tampered: tuple[str, ...] = ()

    @property
    def score(self) -> float | None:
        """The score, or None."""
        return self.verdict.score if self.verdict else None

    @property
    def problem(self) -> str:
        """Why there is no score; '' when there is one."""
        if self.fault or self.verdict is None:
            return self.fault
        return (
            "" if self.verdict.word == "scored" else f"{self.verdict.word}: {self.verdict.reason}"
        )


class Bench:
    """Where one task is tried out. A context manager: what was made is removed at the end."""

    def __init__(self, subject: Subject, settings: Settings) -> None:
        self.subject = subject
        self.settings = settings
        self._numbers = itertools.count(1)
        self._baselines: list[Run] = []
        self._trivials: list[Run] = []
        self._made = ExitStack()
        self.searched: list[str] | None = None
        """What the thief found in its last search. Kept because a search takes seconds and two
        checks need it."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._made.close()

    @cached_property
    def task(self) -> Task:
        """The task. Raises Unavailable when it does not load."""
        try:
            return self.subject.load()
        except SuiteError:
            raise Unavailable("the task's files are wrong: see schema") from None

    @cached_property
    def prepared(self) -> Prepared:
        """The data. Raises SuiteError, DataUnavailable, ConfigError."""
        settings = self.settings
        consent = settings.consent(self.task)
        return prepare(
            self.task, settings.variant, settings.cache, consent=consent, progress=settings.progress
        )

    @cached_property
    def scratch(self) -> Path:
        """A folder of the bench's own, where sandboxes can show what is in it."""
        return self._made.enter_context(scratch_folder(self.settings.cache, self.sandbox.name))

    @cached_property
    def sandbox(self) -> MeteredSandbox:
        """The sandbox of a trial: the cache and the task's suite are hidden. Raises
        RequirementMissing."""
        hidden = (self.settings.cache, self.task.folder.parent)
        chosen = sandboxes.choose(self.settings.sandbox, trusted_agents=True, hidden=hidden)
        return MeteredSandbox(chosen.sandbox)

    def folder(self, word: str) -> Path:
        """A new path in the scratch folder."""
        return self.scratch / f"{word}-{next(self._numbers)}"

    def fresh(self, target: Path | None = None) -> Workspace:
        """A workspace as an agent gets it: at ``target``, or in a folder of its own."""
        target = target or self.folder("workspace")
        public, files = self.prepared.public, self.prepared.files
        return provision(self.task, public, files, target, mounts=self.sandbox.mounts)

    def open(self, workspace: Workspace) -> Connection:
        """The sandbox of an agent. Raises SandboxError, RequirementMissing."""
        settings, resources = self.settings, self.task.resources
        spec = SandboxSpec(
            workspace.root, self._label(), workspace.mounts, resources, settings.network
        )
        return self.sandbox.open(spec)

    def evaluate(
        self, submission: Path, answers: Path | None = None, *, timeout: float = EVALUATION_TIMEOUT
    ) -> Evaluated:
        """The evaluator's verdict on a folder, in a sandbox of its own; it has ``timeout``
        seconds."""
        return evaluate(
            self.task,
            self.sandbox,
            submission=submission,
            answers=answers or self.prepared.answers,
            label=self._label(),
            scratch=self.scratch,
            timeout=timeout,
        )

    def evaluate_each(
        self, submissions: Path, *, timeout: float = EVALUATION_TIMEOUT
    ) -> dict[str, Evaluated]:
        """The evaluator's verdicts on the folders in ``submissions`` by name; it has ``timeout``
        seconds for each."""
        verdicts = evaluate_batch(
            self.task,
            self.sandbox,
            submissions=submissions,
            answers=self.prepared.answers,
            label=self._label(),
            scratch=self.scratch,
            timeout=timeout,
        )
        return {
            folder.name: verdicts.get(folder.name) or self.evaluate(folder, timeout=timeout)
            for folder in submissions.iterdir()
        }

    def baselines(self, count: int) -> Sequence[Run]:
        """At least ``count`` runs of the baseline; a run that failed is the last."""
        return self._runs("baseline", self._baselines, count)

    def recorded(self, count: int) -> Sequence[Run]:
        """The same of what the recorded baseline was measured with: starter, or a trivial predictor
        that beat it."""
        if recorded_script(self.task, self.settings.variant) == "baseline":
            return self.baselines(count)
        return self._runs("trivial", self._trivials, count)

    @cached_property
    def reference(self) -> Run:
        """A run of the reference."""
        return self._run("reference")

    @cached_property
    def submission(self) -> Path:
        """A folder that holds a valid submission, the reference's. Raises Unavailable."""
        if problem := self.reference.problem:
            raise Unavailable(f"the reference gives no valid submission: {problem}")
        return self.reference.workspace.root

    @cached_property
    def valid_score(self) -> float:
        """What :attr:`submission` scores. Raises Unavailable."""
        score = self.reference.score if self.submission else None
        assert score is not None
        return score

    def copy_submission(self, target: Path | None = None) -> Path:
        """A copy of the valid submission's workspace, without the public data, to be changed (never
        in place): at ``target``, or in a folder of its own."""
        target = target or self.folder("submission")
        root, public = self.submission, self.prepared.files
        shutil.copytree(
            root, target, symlinks=True, copy_function=_link, ignore=_without(root, public)
        )
        return target

    def _runs(
        self, what: Literal["baseline", "trivial"], made: list[Run], count: int
    ) -> Sequence[Run]:
        while len(made) < count and not any(run.problem for run in made):
            made.append(self._run(what))
        return tuple(made)

    def _run(self, what: Literal["baseline", "reference", "trivial"]) -> Run:
        workspace = self.fresh()
        self.sandbox.peak_mb = 0.0
        fault, begin = "", time.perf_counter()
        connection = self.open(workspace)
        try:
            check_packages(self.task, self.sandbox, connection)
            begin = time.perf_counter()
            run_script(self.task, what, workspace, connection, self.folder("outputs"))
        except SuiteError as error:
            fault = str(error)
        finally:
            connection.close()
        seconds, memory = time.perf_counter() - begin, self.sandbox.peak_mb
        tampered = tuple(workspace.tampered())
        if fault:
            return Run(workspace, seconds, memory, fault, tampered=tampered)
        self.sandbox.peak_mb = 0.0
        verdict = self.evaluate(workspace.root)
        # The machine failed, not the task: the check counts as not made.
        if verdict.word == "infra_error":
            raise Unavailable(verdict.reason)
        return Run(workspace, seconds, memory, "", verdict, self.sandbox.peak_mb, tampered)

    def _label(self) -> str:
        return f"{label_of(self.scratch)}{self.subject.name}-{next(self._numbers)}"


def _link(source: str, target: str) -> str:
    """A hard link where that works: files of a copy are replaced, never changed in place."""
    try:
        # Dozens of copies are made, and submissions may be large.
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
    return target


def _without(root: Path, names: Collection[str]) -> Callable[[str, list[str]], list[str]]:
    def ignored(folder: str, entries: list[str]) -> list[str]:
        return [
            entry
            for entry in entries
            if os.path.relpath(os.path.join(folder, entry), root) in names
        ]

    return ignored
