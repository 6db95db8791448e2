"""What a worker needs to know of a run: the frozen plan's place, and the looks of its items.

Travels as plain builtins in xdist's ``workerinput``; a worker never looks at suites, keys or
sandboxes itself, so that all workers, late replacements included, collect the same items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

from pytest_mlab.core.agent_api import Terminal
from pytest_mlab.plugin.paths import Paths


@dataclass(frozen=True)
class TaskBrief:
    """One task: its markers, and ``backstop``, the seconds after which even its slowest trial must
    have ended."""

    modality: str
    slow: bool
    gpus: int
    backstop: float


@dataclass(frozen=True)
class Brief:
    """``blocked`` maps trial names to what is missing and the command that fixes it; ``gate`` is
    the mode of the run's gate; ``paths`` are what the command line's paths mean; ``terminal`` is
    where a person sits, in a run that asks one."""

    run_dir: Path
    tasks: Mapping[str, TaskBrief]
    blocked: Mapping[str, str]
    gate: str
    paths: Paths
    terminal: Terminal | None = None

    @property
    def selection(self) -> Path:
        """The file in which a worker leaves its selection: names of trials by node id."""
        return self.run_dir / "selection.json"

    def to_wire(self) -> dict[str, Any]:
        """As plain builtins."""
        return {
            # xdist sends builtins only: a Path or a dataclass in here ends the session with an
            # internal error.
            "run_dir": str(self.run_dir),
            "tasks": {
                name: (t.modality, t.slow, t.gpus, t.backstop) for name, t in self.tasks.items()
            },
            "blocked": dict(self.blocked),
            "gate": self.gate,
            "paths": asdict(self.paths),
            "terminal": None if self.terminal is None else astuple(self.terminal),
        }

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Brief:
        """The brief again."""
        tasks = {name: TaskBrief(*values) for name, values in data["tasks"].items()}
        terminal = data["terminal"] and Terminal(*data["terminal"])
        paths = Paths(**data["paths"])
        return cls(Path(data["run_dir"]), tasks, data["blocked"], data["gate"], paths, terminal)
