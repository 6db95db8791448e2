"""A task, its data, and a trial's environment over a real local sandbox, for the tests of this
folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pytest_mlab.core.actions import Action, ActionSpec, Observation
from pytest_mlab.core.budget import Budget, Usage
from pytest_mlab.core.model_api import Message, ModelFacts, ModelReply, Role
from pytest_mlab.core.sandbox_api import Connection, SandboxSpec
from pytest_mlab.core.task import Direction, Metric, Resources, Submission, Task
from pytest_mlab.core.trial import TrialId
from pytest_mlab.sandboxes.local import Local
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.events import StepDone, TrialStarted
from pytest_mlab.store.journal import Journal
from pytest_mlab.store.snapshots import Snapshots
from pytest_mlab.store.trialdir import TrialDir
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.environment import TrialEnvironment
from pytest_mlab.trial.provision import provision
from pytest_mlab.trial.workspace import Workspace


class Clock:
    """Seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeModel:
    """Answers from a list, or fails with the exceptions in it; remembers what it was asked."""

    replies: list[str | Exception] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    max_tokens: list[int | None] = field(default_factory=list)
    finish_reason: str = "stop"

    def complete(
        self,
        prompt: str | Sequence[Message],
        *,
        role: Role = "main",
        temperature: float | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        tools: Sequence[ActionSpec] = (),
        must_call: bool = False,
        schema: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        may_fall_back: bool = True,
    ) -> ModelReply:
        assert isinstance(prompt, str)
        self.asked.append((role, prompt))
        self.max_tokens.append(max_tokens)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return ModelReply(reply, "fake", Usage(), 0.0, 0.0, finish_reason=self.finish_reason)

    def facts(self, role: Role = "main") -> ModelFacts:
        return ModelFacts("fake", native_tools=True, context=None)


@dataclass
class Trial:
    """Everything of one trial that a test may look at."""

    env: TrialEnvironment
    workspace: Workspace
    account: Account
    dir: TrialDir
    store: ContentStore
    model: FakeModel
    clock: Clock
    journal: Journal

    @property
    def root(self) -> Path:
        """The workspace's folder."""
        return self.workspace.root

    def do(self, name: str, **args: object) -> Observation:
        """One step."""
        return self.env.execute(Action(name, args))

    def steps(self) -> list[StepDone]:
        """The steps in the trace."""
        return [e for e in self.dir.events() if isinstance(e, StepDone)]


Files = dict[str, bytes]

AMPLE = Resources(pids=4096)
LIMITS = Budget()


def write_files(folder: Path, files: Files) -> dict[str, str]:
    """Write files; their sha256 by path."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}


def make_task(
    folder: Path, *, read_only: tuple[str, ...] = (), resources: Resources = AMPLE
) -> Task:
    """A task with the folder's ``env/``."""
    return Task(
        name="toy",
        suite="toys",
        version="1",
        summary="",
        modality="tabular",
        folder=folder,
        description="Do it.",
        metric=Metric("accuracy", Direction.MAXIMIZE),
        submission=Submission("csv", "submission.csv"),
        variants={},
        digest="0" * 64,
        read_only=read_only,
        resources=resources,
    )


MakeTrial = Callable[..., Trial]


def started(trial: TrialId, budget: Budget, starter: str) -> TrialStarted:
    """A trace's first event."""
    return TrialStarted(
        t=0.0,
        trial=trial,
        pid=1,
        sandbox="local",
        budget=budget,
        task_digest="",
        data="mini",
        data_digest="",
        agent_digest="",
        machine="",
        starter=starter,
    )


def runaway() -> NoReturn:
    """What a test's agent that will not stop meets."""
    raise SystemExit("runaway")


@pytest.fixture
def make_trial(tmp_path: Path) -> Iterator[MakeTrial]:
    """Makes a trial: ``make_trial(env={...}, public={...}, budget=..., model=None or a
    FakeModel)``."""
    opened: list[tuple[Connection, Journal]] = []

    def make(
        *,
        env: Files | None = None,
        public: Files | None = None,
        read_only: tuple[str, ...] = (),
        budget: Budget = LIMITS,
        model: FakeModel | None = None,
        no_model: bool = False,
        connection: Connection | None = None,
        resources: Resources = AMPLE,
        network: bool = True,
    ) -> Trial:
        write_files(tmp_path / "task" / "env", env or {})
        files = write_files(tmp_path / "public", public or {})
        task = make_task(tmp_path / "task", read_only=read_only, resources=resources)
        workspace = provision(task, tmp_path / "public", files, tmp_path / "work", mounts=False)
        store = ContentStore(tmp_path / "store")
        trial_dir = TrialDir(tmp_path / "trial", TrialId("toy", "agent", "", 1))
        snapshots = Snapshots(store, workspace.root, public=workspace.public)
        starter = snapshots.begin().id
        if connection is None:
            spec = SandboxSpec(
                workspace=workspace.root, label=f"test-{tmp_path.name}", resources=resources
            )
            connection = Local().open(spec)
        journal = trial_dir.journal()
        opened.append((connection, journal))
        journal.write(started(trial_dir.id, budget, starter))
        clock = Clock()
        account = Account(budget, clock=clock)
        fake = model or FakeModel()
        environment = TrialEnvironment(
            task=task,
            workspace=workspace,
            connection=connection,
            account=account,
            journal=journal,
            snapshots=snapshots,
            trial_dir=trial_dir,
            model=None if no_model else fake,
            scripts=lambda name: [Action("Final Answer", {"final_answer": name})],
            on_runaway=runaway,
            network=network,
            now=lambda: 0.0,
        )
        return Trial(environment, workspace, account, trial_dir, store, fake, clock, journal)

    yield make
    for connection, journal in opened:
        connection.close()
        journal.close()
