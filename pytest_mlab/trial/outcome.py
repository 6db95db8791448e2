"""From the trace and the watcher's record to a trial's one outcome: a decision without any I/O."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten

from pytest_mlab.core.aggregate import CONTROL_AGENT
from pytest_mlab.core.budget import Budget, Ledger
from pytest_mlab.core.crashes import LONGEST, crash_line
from pytest_mlab.core.scoring import judge, needed_score
from pytest_mlab.core.task import Task
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.errors import EvaluatorError, ScoringError
from pytest_mlab.store.events import (
    AgentEnded,
    Event,
    ModelCall,
    Note,
    ProgramEnded,
    StepDone,
    TrialStarted,
)
from pytest_mlab.trial.evaluate import Evaluated
from pytest_mlab.trial.process.forkserver import STATUS_RAISED
from pytest_mlab.trial.process.watch import Ending

# Signals that the kernel sends for want of memory, or another program sends. Other signals, such as
# SIGSEGV, are the process's own doing.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_NAMED_FILES = 5


@dataclass(frozen=True)
class TraceFacts:
    """The agent's part in a trace: its first and last event, the last known ledger, and how the
    script that was executed last failed ('' when it did not); ``notes`` are a replay's;
    ``tools_by_text`` are the models whose providers refused tools; ``answered`` counts answered
    model calls by model; ``programs`` counts the agent's programs that ended."""

    started: TrialStarted | None = None
    ended: AgentEnded | None = None
    ledger: Ledger = Ledger()
    crash: str = ""
    notes: tuple[str, ...] = ()
    tools_by_text: tuple[str, ...] = ()
    answered: Mapping[str, int] = field(default_factory=dict)
    programs: int = 0


def facts(events: Iterable[Event]) -> TraceFacts:
    """The facts of a trace, read once from its beginning."""
    found = TraceFacts()
    for event in events:
        if isinstance(event, TrialStarted):
            found = TraceFacts(event)
        elif isinstance(event, AgentEnded):
            found = replace(found, ended=event, ledger=event.ledger)
        elif isinstance(event, Note) and event.kind == "replay":
            found = replace(found, notes=(*found.notes, str(event.data.get("text", ""))))
        elif isinstance(event, (ModelCall, StepDone)):
            found = replace(found, ledger=event.ledger)
        if isinstance(event, ModelCall) and not event.error:
            answered = Counter(found.answered) + Counter([event.model])
            found = replace(found, answered=dict(answered))
        if isinstance(event, ProgramEnded):
            found = replace(found, programs=found.programs + 1)
        if isinstance(event, ModelCall) and event.fell_back:
            models = {*found.tools_by_text, event.model}
            found = replace(found, tools_by_text=tuple(sorted(models)))
        if isinstance(event, StepDone) and event.action == "Execute Script":
            crash = ""
            if not event.ok:
                crash = _crash(str(event.args.get("script_name")), event.observation)
            found = replace(found, crash=crash)
    return found


def silence(found: TraceFacts, context: ResultContext) -> list[str]:
    """The sentence on a program that never asked the trial's model; none for other trials."""
    if not (context.id.model and found.programs) or found.ledger.model_calls:
        return []
    return [
        "no model call reached the trial's endpoint: the program asked elsewhere, or asked nothing;"
        " it was given OPENAI_BASE_URL, OPENAI_API_BASE, ANTHROPIC_BASE_URL and a key beside each;"
        " to fix: make the program read one of them (docs/programs.md), or set its own option by"
        " --mlab-agent-arg=env=NAME=value"
    ]


def _crash(script: str, said: str) -> str:
    """How an executed script failed; without a traceback, the environment's own sentence."""
    head, _, output = said.partition("\n")
    where = crash_line(output)
    if where:
        return f"{script} failed at {where}"
    return shorten(head.removesuffix(" Its output:"), LONGEST)


@dataclass(frozen=True)
class AgentPart:
    """How the agent's part ended; ``outcome`` is None when its workspace is to be evaluated."""

    ended_by: EndedBy
    outcome: Outcome | None = None
    reason: str = ""


def agent_part(found: TraceFacts, ending: Ending | None, last_words: str = "") -> AgentPart:
    """How the agent's part ended, by its own last event or, without one, by what the watcher saw.

    ``last_words`` is the last line that the process wrote.
    """
    if found.ended is not None:
        # The harness wrote that event when the workspace was frozen. How the process ended
        # afterwards changes nothing.
        return AgentPart(found.ended.ended_by, found.ended.outcome, found.ended.reason)
    said = f" ({last_words})" if last_words else ""
    if ending is None:
        return AgentPart(
            EndedBy.KILLED,
            Outcome.INFRA_ERROR,
            "the trial was interrupted together with its worker",
        )
    if _out_of_time(ending) and found.started is not None:
        return AgentPart(
            EndedBy.SECONDS, None, "the agent did not stop when its time was over and was killed"
        )
    if found.started is None:
        return AgentPart(
            EndedBy.KILLED,
            Outcome.INFRA_ERROR,
            f"the trial's process {ending} before it began{said}",
        )
    # Exceptions of the agent are recorded in its last event. A process that raised without one had
    # a fault in the harness, which the lines at the end report.
    if ending.how == "exited" and ending.status != STATUS_RAISED:
        reason = (
            f"the agent ended its own process with status {ending.status}; an agent returns from"
            f" run(){said}"
        )
        return AgentPart(EndedBy.ERROR, Outcome.AGENT_ERROR, reason)
    if ending.how == "signalled" and ending.status not in _FROM_OUTSIDE:
        return AgentPart(EndedBy.ERROR, Outcome.AGENT_ERROR, f"the agent's process {ending}{said}")
    if ending.how == "signalled":
        said += "; something outside killed it, perhaps for want of memory"
    return AgentPart(EndedBy.KILLED, Outcome.INFRA_ERROR, f"the trial's process {ending}{said}")


def last_ledger(found: TraceFacts, ending: Ending | None, budget: Budget) -> Ledger:
    """The agent's use by the trace; its time by the watcher when it was killed for that."""
    if found.ended is None and ending is not None and _out_of_time(ending):
        # The watcher's time also covers making the workspace and the grace, so the budget bounds
        # it.
        return found.ledger.at(max(found.ledger.seconds, min(ending.seconds, budget.max_seconds)))
    return found.ledger


def _out_of_time(ending: Ending) -> bool:
    """Killed by the alarm that its process sets, or by the watcher if that one fails."""
    return ending.how == "deadline" or (
        ending.how == "signalled" and ending.status == signal.SIGALRM
    )


@dataclass(frozen=True)
class ResultContext:
    """The parts of a result that do not depend on its outcome. ``threshold`` overrides the task's
    own; times are Unix seconds."""

    id: TrialId
    task: Task
    data: str
    data_digest: str
    sandbox: str
    threshold: float | None
    started_at: float
    finished_at: float


def tampering(paths: Sequence[str]) -> str:
    """Why a submission is refused when read-only files were changed; '' when none was."""
    if not paths:
        return ""
    named = ", ".join(paths[:_NAMED_FILES])
    if len(paths) > _NAMED_FILES:
        named += f" and {len(paths) - _NAMED_FILES} more"
    return f"read-only files were changed: {named}"


def conclude(
    context: ResultContext,
    part: AgentPart,
    ledger: Ledger,
    snapshot: str,
    tampered: Sequence[str] = (),
    evaluated: Evaluated | None = None,
    crash: str = "",
) -> TrialResult:
    """The trial's result. ``evaluated`` is needed unless the agent's part or tampering decided the
    outcome; ``crash`` is how the last script failed."""
    result = _blank(context, part, ledger, snapshot)
    if part.outcome is not None:
        return replace(result, outcome=part.outcome, reason=part.reason)
    if tampered:
        return replace(result, outcome=Outcome.INVALID_SUBMISSION, reason=tampering(tampered))
    if evaluated is None:
        raise ValueError(
            f"{context.id.name}: neither the agent's end nor an evaluation decides the outcome"
        )
    result = replace(result, evaluation_seconds=evaluated.seconds)
    # A program that failed is judged by what it left. When it left nothing, its own error says more
    # than that.
    if evaluated.word == "no_submission" and part.ended_by is EndedBy.ERROR:
        return replace(result, outcome=Outcome.AGENT_ERROR, reason=part.reason)
    if evaluated.word != "scored":
        outcome, reason = _unscored(evaluated, crash, control=context.id.agent == CONTROL_AGENT)
        return replace(result, outcome=outcome, reason=reason)
    try:
        judged = judge(context.task, context.data, evaluated.score, context.threshold)
    except (EvaluatorError, ScoringError) as error:
        return replace(result, outcome=Outcome.TASK_ERROR, reason=str(error))
    return replace(
        result,
        outcome=judged.outcome,
        reason=judged.reason,
        score=judged.score,
        baseline=judged.baseline,
        needed=judged.needed,
        improvement=judged.improvement,
        within_noise=judged.within_noise,
    )


def _unscored(evaluated: Evaluated, crash: str, *, control: bool) -> tuple[Outcome, str]:
    """Outcome and reason of a submission without a score. The control agent changes nothing: a
    script that fails for it means that the task does not work on this machine."""
    outcome = Outcome(evaluated.word)
    if not crash or outcome not in (Outcome.NO_SUBMISSION, Outcome.INVALID_SUBMISSION):
        return outcome, evaluated.reason
    if control:
        return (
            Outcome.TASK_ERROR,
            f"the task's own code does not run here: {crash}; so {evaluated.reason}",
        )
    return outcome, f"{evaluated.reason}; the last script, {crash}"


def _blank(context: ResultContext, part: AgentPart, ledger: Ledger, snapshot: str) -> TrialResult:
    """A result without an outcome. It holds the baseline and the needed score in any case, where
    they are known."""
    variant = context.task.variants.get(context.data)
    baseline = variant.baseline if variant else None
    try:
        needed = needed_score(context.task, context.data, context.threshold)
    except ScoringError:
        needed = None
    return TrialResult(
        id=context.id,
        # conclude() replaces it on every path.
        outcome=Outcome.NOT_RUN,
        reason="",
        baseline=baseline.mean if baseline else None,
        needed=needed,
        ended_by=part.ended_by,
        ledger=ledger,
        started_at=context.started_at,
        finished_at=context.finished_at,
        sandbox=context.sandbox,
        data=context.data,
        data_digest=context.data_digest,
        task_digest=context.task.digest,
        snapshot=snapshot,
    )
