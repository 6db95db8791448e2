"""The package aideml (AIDE: a search in the tree of solutions) as it is, in the sandbox, its model
calls metered.

Its code model is the trial's main model, its feedback model the fast one. It works in a folder of
its own outside the workspace; what its best solution wrote is copied into the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from string import Template

from pydantic import BaseModel, ConfigDict, Field

from pytest_mlab import ConfigError, Environment, ProgramFailed

from .command import ended

RUNNER = "aide_runner.py"
ABSENT = 69
"""The runner's exit status when aideml cannot be imported."""

CODE_MODEL, FEEDBACK_MODEL = "mlab", "mlab-fast"
"""Names that aideml takes for a server of one's own: it uses chat completions then, at
OPENAI_BASE_URL."""

INSTALL = "python -m pip install 'pytest-mlab[aide]' && python -m pip install --no-deps aideml"


class AideSettings(BaseModel):
    """What can be changed about the agent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int = Field(
        default=0,
        ge=0,
        description=(
            "solutions to try; 0: half the budget's steps, since each takes two model calls"
        ),
    )
    drafts: int = Field(
        default=5,
        ge=1,
        description="solutions that are written from nothing before any is improved",
    )
    debug_depth: int = Field(
        default=3, ge=0, description="attempts in a row to fix a solution that fails"
    )
    debug_prob: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="how often a failing solution is fixed, when there is one",
    )
    folds: int = Field(
        default=5,
        ge=1,
        description="of the cross-validation that the model is asked to use; 1: none",
    )
    temperature: float = Field(default=0.5, ge=0, description="of both models")
    timeout: int = Field(default=3600, ge=1, description="seconds that one solution may run")
    python: str = Field(
        default="",
        description=(
            "the Python that has aideml: a virtual environment's own (venv/bin/python), or a name"
            " in the sandbox; empty: the one of pytest-mlab"
        ),
    )


class AideAgent:
    """Runs aideml once."""

    needs_model = True
    needs_endpoint = True
    Settings = AideSettings

    def __init__(self, settings: AideSettings | None = None) -> None:
        self.settings = settings or self.Settings()
        self.requirements = () if self.settings.python else ("aideml>=0.2.2",)
        self.requirements_fix = INSTALL

    def program_files(self, rootdir: Path) -> Mapping[str, Path]:
        """The runner, and the virtual environment that the settings name."""
        found = {RUNNER: Path(__file__).with_name(RUNNER)}
        if "/" in self.settings.python:
            folder = str(PurePosixPath(self.settings.python).parent.parent)
            if not (rootdir / self.settings.python).exists():
                raise ConfigError(
                    f"the agent aide: python={self.settings.python} does not exist, seen from"
                    f" {rootdir}"
                )
            found[folder] = rootdir / folder
        return found

    def run(self, env: Environment) -> None:
        """Until as many solutions were tried as are asked for, or the budget ends."""
        prompt = Template(Path(__file__).with_name("aide_prompt.md").read_text(encoding="utf-8"))
        task = env.put_file(
            "task.md", prompt.substitute(task=env.task_description.strip()).encode()
        )
        done = env.run_program(
            [self.settings.python or "python3", RUNNER, *self._options(env, PurePosixPath(task))]
        )
        if done.exit_status != 0:
            absent = f"; to fix: {INSTALL}" if done.exit_status == ABSENT else ""
            raise ProgramFailed(f"aideml {ended(done)}{absent}")

    def _options(self, env: Environment, task: PurePosixPath) -> list[str]:
        """aideml's own options."""
        chosen = self.settings
        options = {
            "data_dir": ".",
            "desc_file": task,
            "copy_data": False,
            "preprocess_data": False,
            "generate_report": False,
            "exp_name": "mlab",
            "log_dir": task.parent / "aide" / "logs",
            "workspace_dir": task.parent / "aide" / "work",
            "exec.timeout": min(chosen.timeout, int(env.budget.max_seconds) + 1),
            "agent.steps": chosen.steps or max(1, env.budget.max_steps // 2),
            "agent.k_fold_validation": chosen.folds,
            "agent.code.model": CODE_MODEL,
            "agent.code.temp": chosen.temperature,
            "agent.feedback.model": FEEDBACK_MODEL,
            "agent.feedback.temp": chosen.temperature,
            "agent.search.num_drafts": chosen.drafts,
            "agent.search.max_debug_depth": chosen.debug_depth,
            "agent.search.debug_prob": chosen.debug_prob,
        }
        return [f"{name}={value}" for name, value in options.items()]
