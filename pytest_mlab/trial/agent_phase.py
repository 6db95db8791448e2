"""Phase 1 of a trial, in a process of its own: make the workspace, open the sandbox, let the agent
work, freeze."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_mlab.agentfiles.loader import digest_now, load_agent, shown_files
from pytest_mlab.agentfiles.settings import make_agent
from pytest_mlab.core.agent_api import Agent, Terminal
from pytest_mlab.core.budget import Ledger
from pytest_mlab.core.plan import drift
from pytest_mlab.core.sandbox_api import Connection, Mount, Sandbox, SandboxSpec
from pytest_mlab.core.trial import EndedBy, Outcome
from pytest_mlab.errors import (
    AgentLoadError,
    BudgetExhausted,
    ConfigError,
    DataUnavailable,
    MlabError,
    ProgramFailed,
    ProviderError,
    ReplayError,
    RequirementMissing,
    SandboxError,
    StoreError,
    SuiteError,
    TrialOver,
)
from pytest_mlab.lib import identity
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.store.events import AgentEnded, Note, TrialStarted
from pytest_mlab.store.journal import Journal
from pytest_mlab.store.snapshots import Snapshots
from pytest_mlab.store.trialdir import TRACE
from pytest_mlab.store.underway import Activity
from pytest_mlab.suites.scripts import scripted_actions
from pytest_mlab.trial.account import Account, TrialClock
from pytest_mlab.trial.agent_run import breakpoint_reason, run_agent
from pytest_mlab.trial.environment import TrialEnvironment
from pytest_mlab.trial.job import Job
from pytest_mlab.trial.model_stack import make_endpoint, make_model
from pytest_mlab.trial.outcome import AgentPart
from pytest_mlab.trial.packages import MAIN, check_packages
from pytest_mlab.trial.person import TerminalPerson
from pytest_mlab.trial.program import Programs
from pytest_mlab.trial.provision import provision
from pytest_mlab.trial.redacted import RedactedJournal
from pytest_mlab.trial.workspace import Workspace

if TYPE_CHECKING:
    from pytest_mlab.models.endpoint.server import Endpoint

AGENT_FILES = "/mlab/agent"
"""Where a sandbox shows the files of an agent's program."""

_BEFORE = (
    AgentLoadError,
    ConfigError,
    DataUnavailable,
    ReplayError,
    RequirementMissing,
    SandboxError,
    StoreError,
    SuiteError,
)
"""Errors before the agent begins that the trial's last event reports; any other error is a fault in
the harness."""


def run_agent_phase(payload: Mapping[str, Any]) -> BaseException | None:
    """Run the agent's part of the trial that ``payload`` names, down to its last event
    ``agent_ended``. Returns what the agent raised.

    ``grace`` is how many seconds the agent may go on past its budget before the kernel ends the
    process, None for a process that goes on after the trial; ``terminal`` is where a person can be
    asked, None without one."""
    job = Job.from_payload(payload)
    if payload["grace"] is not None:
        _print_by_line()
    redact = Redactor(os.environ)
    with RedactedJournal(job.dir.path / TRACE, redact) as journal:
        try:
            # First, so that a fault in the agent's file is found without starting a sandbox.
            agent = load_planned_agent(job)
            with Activity(job.dir.path).doing("opening the sandbox"):
                sandbox = _open_sandbox(job, agent)
            with contextlib.closing(sandbox) as opened:
                found = check_packages(job.task, opened.sandbox, opened.connection, also=MAIN)
                return _Part(job, opened, found, journal, redact, payload).play(agent)
        # The same errors, raised by the agent's run, do not arrive here: run_agent() catches them.
        except _BEFORE as error:
            traceback.print_exc()
            journal.write(_never_began(error))
    return None


def _print_by_line() -> None:
    """What the agent prints is in its log at once, also when it is killed in the next moment."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


@dataclass(frozen=True)
class _Opened:
    """A fresh workspace and the sandbox that shows it."""

    workspace: Workspace
    sandbox: Sandbox
    connection: Connection
    gateway: Endpoint | None
    places: Mapping[str, str]

    def close(self) -> None:
        """Kill everything inside; a second time does nothing."""
        self.connection.close()
        if self.gateway is not None:
            self.gateway.close()


def _open_sandbox(job: Job, agent: Agent) -> _Opened:
    prepared, sandbox = job.prepared, job.sandbox()
    workspace = provision(
        job.task, prepared.public, prepared.files, job.workspace, mounts=sandbox.mounts
    )
    shown = {
        word: Mount(path, f"{AGENT_FILES}/{number}/{path.name}")
        for number, (word, path) in enumerate(shown_files(agent, job.rootdir).items())
    }
    gateway = make_endpoint(job, agent)
    spec = SandboxSpec(
        workspace.root,
        job.label,
        (*workspace.mounts, *shown.values()),
        job.task.resources,
        job.settings.network,
        relay=gateway.path if gateway else None,
    )
    try:
        connection = sandbox.open(spec)
    except BaseException:
        if gateway:
            gateway.close()
        raise
    workspace.inside = connection.locate(".")
    places = {word: connection.locate(mount.target) for word, mount in shown.items()}
    return _Opened(workspace, sandbox, connection, gateway, places)


class _Part:
    """The agent's part of one trial, from its first event to its last."""

    def __init__(
        self,
        job: Job,
        opened: _Opened,
        packages: Mapping[str, str],
        journal: Journal,
        redact: Redactor,
        payload: Mapping[str, Any],
    ) -> None:
        self._job = job
        self._grace: float | None = payload["grace"]
        self._opened = opened
        self._packages = packages
        self._journal = journal
        self._snapshots = _snapshots(job, opened.workspace)
        # The first snapshot comes first, because the event names it. Later phases compare with it
        # what the agent must not change.
        journal.write(_started(job, opened, self._snapshots.begin().id))
        # The agent's time starts here: making the workspace and opening the sandbox are not
        # counted.
        clock = TrialClock()
        self._account = Account(job.budget, clock=clock)
        self._activity = Activity(job.dir.path)
        self._account.doing = lambda what: self._activity.doing(what, self._account.ledger.steps)
        self._model = make_model(
            job,
            self._account,
            journal,
            redact,
            inside=opened.connection.locate("."),
            pass_time=clock.move,
        )
        self._env = self._environment(job, payload.get("terminal"))

    def _environment(self, job: Job, terminal: Mapping[str, str] | None) -> TrialEnvironment:
        opened = self._opened
        person = None
        if terminal is not None:
            person = TerminalPerson(Terminal(**terminal), self._account.remaining_seconds)
        programs = Programs(
            opened.connection, self._account, job.dir, gateway=opened.gateway, places=opened.places
        )
        return TrialEnvironment(
            task=job.task,
            workspace=opened.workspace,
            connection=opened.connection,
            account=self._account,
            journal=self._journal,
            snapshots=self._snapshots,
            trial_dir=job.dir,
            model=self._model.model,
            scripts=partial(scripted_actions, job.task),
            on_runaway=_stop if self._grace is None else self._run_away,
            programs=programs,
            person=person,
            helper=person if job.settings.help == "human" else None,
            # Without isolation, the machine's network is there whatever was asked for.
            network=job.settings.network or not opened.sandbox.isolated,
            packages=self._packages,
        )

    def play(self, agent: Agent) -> BaseException | None:
        """Let the agent work; then freeze the workspace and record how the agent ended. Returns
        what it raised."""
        if self._grace is not None:
            self._set_alarm(self._grace)
        error = run_agent(agent, self._env)
        # Freezing takes as long as the workspace is large and is not the agent's time.
        self._account.on_move = lambda: None
        if self._grace is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self._end(error)
        return error

    def _set_alarm(self, grace: float) -> None:
        # An agent may catch every exception, or sit in a C function for hours: no Python code of
        # ours would run. The default action of SIGALRM ends the process in any case.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

        def set_alarm() -> None:
            signal.setitimer(signal.ITIMER_REAL, self._account.hard_seconds + grace)

        self._account.on_move = set_alarm
        set_alarm()

    def _end(self, error: BaseException | None) -> None:
        ledger = self._account.ledger
        self._activity.close()
        left_over = self._model.end()
        if self._model.fault:
            error = ReplayError(self._model.fault)  # also when the agent caught that error
        elif left_over:
            self._journal.write(Note(t=time.time(), kind="replay", data={"text": left_over}))
        part = part_of(
            error, submitted=self._env.submitted, exhausted=ledger.exhausted(self._account.budget)
        )
        job = self._job
        if stopped := breakpoint_reason(error, job.trial, job.planned_agent, job.planned_task):
            part = replace(part, reason=stopped)
        # The order matters: processes inside could write until the sandbox is closed, and threads
        # of the agent until actions are refused. What comes after is what is scored.
        self._opened.close()
        self._opened.workspace.freeze()
        frozen = self._snapshots.take(final=True)
        for text in frozen.notes:
            self._journal.write(Note(t=time.time(), kind="snapshot", data={"text": text}))
        self._journal.write(
            AgentEnded(
                t=time.time(),
                ended_by=part.ended_by,
                outcome=part.outcome,
                reason=part.reason,
                snapshot=frozen.id,
                tampered=self._opened.workspace.tampered(),
                ledger=ledger,
            )
        )

    def _run_away(self) -> NoReturn:
        """Finish without an agent that never stops."""
        self._end(None)
        self._journal.close()
        # Not sys.exit(): SystemExit is an exception, and this agent catches them all.
        os._exit(0)


def _stop() -> NoReturn:
    raise SystemExit("the agent went on after the end of its trial")


def _snapshots(job: Job, workspace: Workspace) -> Snapshots:
    return Snapshots(
        job.run.store,
        workspace.root,
        public=workspace.public,
        mounted=workspace.mounted,
        file_limit=job.settings.snapshot_file_mb << 20,
        disk_budget=job.settings.run_disk_mb << 20,
    )


def _started(job: Job, opened: _Opened, starter: str) -> TrialStarted:
    return TrialStarted(
        t=time.time(),
        trial=job.trial,
        pid=os.getpid(),
        sandbox=opened.sandbox.name,
        budget=job.budget,
        task_digest=job.task.digest,
        data=job.settings.data,
        data_digest=job.prepared.digest,
        agent_digest=job.planned_agent.digest,
        machine=str(identity.machine()["fingerprint"]),
        starter=starter,
    )


def _never_began(error: MlabError) -> AgentEnded:
    part = before_it_began(error)
    return AgentEnded(
        t=time.time(),
        ended_by=part.ended_by,
        outcome=part.outcome,
        reason=part.reason,
        ledger=Ledger(),
    )


def before_it_began(error: MlabError) -> AgentPart:
    """The end of a trial whose agent never began."""
    outcome = Outcome.AGENT_ERROR if isinstance(error, AgentLoadError) else Outcome.INFRA_ERROR
    return AgentPart(EndedBy.ERROR, outcome, str(error))


def load_planned_agent(job: Job) -> Agent:
    """The agent, made with its settings. Raises ConfigError, AgentLoadError, StoreError when its
    files changed."""
    planned = job.planned_agent
    # Compared here and not in the worker, because this process imports the files and needs the
    # digest of just these.
    if changed := drift(planned, digest_now(planned, job.rootdir)):
        raise StoreError(changed)
    kind = load_agent(planned.ref, job.rootdir)
    try:
        return make_agent(kind, planned.settings)
    except Exception as error:
        raise AgentLoadError(f"{planned.ref}: its constructor raised {describe(error)}") from error


def part_of(error: BaseException | None, *, submitted: bool, exhausted: str | None) -> AgentPart:
    """How the agent's part ended when ``run`` returned (``error`` None) or raised.

    ``submitted``: the final answer was given; ``exhausted`` names the limit of the budget that is
    used up."""
    if isinstance(error, BudgetExhausted):
        # No outcome: a workspace is scored as it is when a limit ends the trial.
        return AgentPart(EndedBy(error.limit))
    if error is None or isinstance(error, TrialOver):
        if submitted:
            return AgentPart(EndedBy.SUBMITTED)
        if exhausted:
            return AgentPart(EndedBy(exhausted))
        return AgentPart(EndedBy.RETURNED)
    if isinstance(error, ProviderError):
        tried = f", after {error.retries + 1} attempts" if error.retries else ""
        return AgentPart(EndedBy.ERROR, Outcome.PROVIDER_ERROR, f"{describe(error)}{tried}")
    # No outcome either: a program that failed may have left a submission.
    if isinstance(error, ProgramFailed):
        return AgentPart(EndedBy.ERROR, reason=str(error))
    if isinstance(error, (ReplayError, RequirementMissing, SandboxError, StoreError)):
        return AgentPart(EndedBy.ERROR, Outcome.INFRA_ERROR, str(error))
    return AgentPart(EndedBy.ERROR, Outcome.AGENT_ERROR, f"the agent raised {describe(error)}")


def describe(error: BaseException) -> str:
    """Type, message and the last line of code that is not the harness's own."""
    message = " ".join(str(error).split())[:500]
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if f"{os.sep}pytest_mlab{os.sep}" not in f.filename
    ]
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    said = f": {message}" if message else ""
    return f"{type(error).__name__}{said}{where}"
