"""A task, once its files have been read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Literal

from pytest_mlab.core.budget import BudgetOverride

SubmissionKind = Literal["csv", "directory", "script"]

FOREIGN = "mlagentbench"
"""The kind of source that a task in MLAgentBench's format has."""


class Direction(str, Enum):
    """Which way a metric is better."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"

    @property
    def sign(self) -> int:
        """+1 when higher is better, -1 when lower is better."""
        return 1 if self is Direction.MAXIMIZE else -1


@dataclass(frozen=True)
class Metric:
    """A task's metric. ``low`` and ``high`` bound valid scores (None: unbounded)."""

    name: str
    direction: Direction
    units: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Submission:
    """The file or folder that an agent hands in; ``path`` is relative to the workspace."""

    kind: SubmissionKind
    path: str
    columns: tuple[str, ...] = ()
    rows: str = ""
    max_mb: int = 100


@dataclass(frozen=True)
class Baseline:
    """The measured scores that an agent must beat.

    ``measured`` names the code that was run: ``starter`` (the files under env/ as they are),
    ``filled-starter`` (the hidden version under baseline/) or the name of a trivial predictor.
    ``scores`` are the single runs, ``mean`` and ``std`` (ddof=1) theirs, ``machine`` a fingerprint
    of where they ran."""

    measured: str
    scores: tuple[float, ...]
    mean: float
    std: float
    machine: str = ""

    @property
    def n(self) -> int:
        """Number of measured runs."""
        return len(self.scores)


@dataclass(frozen=True)
class Threshold:
    """The condition of success: a relative ``improvement`` over the baseline, or an ``absolute``
    score. Both are strict: a score exactly at the threshold is not a success."""

    improvement: float = 0.10
    absolute: float | None = None


@dataclass(frozen=True)
class Resources:
    """Limits of a trial's sandbox: memory and disk in MiB; ``pids`` for processes and threads."""

    cpus: int = 1
    memory_mb: int = 4096
    gpus: int = 0
    disk_mb: int = 2048
    pids: int = 256


@dataclass(frozen=True)
class Source:
    """Where raw data come from.

    ``kind`` names an entry of :mod:`pytest_mlab.data.sources`, which says what ``ref`` means;
    ``sha256`` is that of the one file it names, or empty. ``consent`` is the address of rules that
    the user must have accepted, or empty."""

    kind: str
    ref: str = ""
    sha256: str = ""
    size_mb: float = 0.0
    licence: str = ""
    consent: str = ""


@dataclass(frozen=True)
class Variant:
    """One data variant (``mini`` or ``full``) with its sources and its measured baseline and
    reference."""

    name: str
    sources: tuple[Source, ...]
    baseline: Baseline | None = None
    reference: Baseline | None = None


@dataclass(frozen=True)
class Task:
    """One problem, as read from its folder.

    ``folder`` holds task.toml, description.md, env/, data.py, evaluator.py, reference/ and maybe
    baseline/. ``digest`` is the sha256 over all of the task folder's files: it changes when
    anything does. ``description`` is the text for the agent. ``shared`` are globs of files
    among the answers that the agent has as well: the evaluator needs their original form.
    ``fault`` is the reason why a folder could not be read as a task, which is then planned and
    never run; '' for all others."""

    name: str
    suite: str
    version: str
    summary: str
    modality: str
    folder: Path
    description: str
    metric: Metric
    submission: Submission
    variants: Mapping[str, Variant]
    digest: str
    threshold: Threshold = field(default_factory=Threshold)
    resources: Resources = field(default_factory=Resources)
    read_only: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    budget: BudgetOverride = field(default_factory=BudgetOverride)
    timed: bool = False
    slow: bool = False
    starter_script: str = "train.py"
    fault: str = ""

    @property
    def sign(self) -> int:
        """+1 when higher is better, -1 when lower is better."""
        return self.metric.direction.sign
