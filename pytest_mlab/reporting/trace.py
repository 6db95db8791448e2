"""A trial's trace as text for people, at most 80 columns wide."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pytest_mlab.core.trial import TrialResult
from pytest_mlab.errors import StoreError
from pytest_mlab.reporting import text
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.events import (
    AgentEnded,
    Evaluation,
    Event,
    ModelCall,
    Note,
    ProgramEnded,
    StepDone,
    TrialFinished,
    TrialStarted,
    WorkspaceRestored,
)

WIDTH = 80
HEAD_LINES = 6
PROGRAM_LINES = 20
ARGUMENT = 200
_IN = "    "


def trial_lines(result: TrialResult | None, events: Iterable[Event]) -> Iterator[str]:
    """The whole trial: how it ended, then its events in order, long texts shortened."""
    yield from result_lines(result)
    yield ""
    for event in events:
        yield from event_lines(event)


def result_lines(result: TrialResult | None) -> Iterator[str]:
    """How a trial ended."""
    if result is None:
        yield "no result yet: the trial is running, or it was interrupted"
        return
    head, *more = f"{result.outcome.value}: {result.reason}".split("\n")
    yield from _wrap(head)
    for line in more:  # a diff
        yield from text.wrapped(text.printable(line.strip()), WIDTH, _IN)
    for note in result.remarks:
        yield from _wrap(f"note: {note}")
    facts = [
        f"{name} {value:.6g}"
        for name, value in (
            ("score", result.score),
            ("baseline", result.baseline),
            ("needed", result.needed),
        )
        if value is not None
    ]
    if result.improvement is not None:
        facts.append(f"improvement {text.percent(result.improvement)}")
    if result.within_noise is not None:
        facts.append(f"within the baseline's noise {'yes' if result.within_noise else 'no'}")
    if result.ended_by is not None:
        facts.append(f"ended by {result.ended_by.value}")
    if facts:
        yield from _wrap("; ".join(facts))
    ledger = result.ledger
    used = [text.plural(ledger.steps, "step"), text.seconds(ledger.seconds)]
    if ledger.model_calls:
        used.append(text.plural(ledger.model_calls, "model call"))
        used.append(f"{text.count(ledger.usage.total)} tokens")
        used.append(f"${text.dollars(result.cost)}")
    if ledger.waited >= 1:
        used.append(f"{text.seconds(ledger.waited)} of waiting for providers")
    used.append(f"evaluation {text.seconds(result.evaluation_seconds)}")
    yield from _wrap(
        f"used {', '.join(used)}; data {result.data or '?'}, sandbox {result.sandbox or '?'}"
    )


def event_lines(event: Event) -> Iterator[str]:
    """One event, shortened; nothing for an event that says nothing to a reader."""
    show = _SHOWN.get(type(event))
    if show is not None:
        yield from show(event)


def step_lines(events: Iterable[Event], index: int, store: ContentStore) -> Iterator[str]:
    """Step ``index`` whole: the model calls that led to it with prompts and replies, the action,
    the observation, and what changed in the workspace. Raises StoreError when the trace has no such
    step."""
    calls: list[ModelCall] = []
    last = 0
    for event in events:
        if isinstance(event, ModelCall):
            calls.append(event)
        elif isinstance(event, StepDone):
            last = event.index
            if event.index == index:
                yield from _whole_step(event, calls, store)
                return
            calls = []
    has = f"its last step is {last}" if last else "it has no step"
    raise StoreError(f"there is no step {index} in the trace; {has}")


def _whole_step(event: StepDone, calls: Iterable[ModelCall], store: ContentStore) -> Iterator[str]:
    for call in calls:
        yield from _model_call(call)
        for name, digest in (("prompt", call.prompt), ("reply", call.reply)):
            yield f"{_IN}{name}:"
            yield from _block(_stored(store, digest) if digest else "(none)")
        if call.reasoning:
            yield f"{_IN}reasoning:"
            yield from _block(_thoughts(_stored(store, call.reasoning)))
    yield from _step(event, None, None)
    for path, digest in sorted(event.set.items()):
        yield from _wrap(f"changed {path} ({digest[:12]})", _IN)
    for path in sorted(event.deleted):
        yield from _wrap(f"deleted {path}", _IN)


def _thoughts(blocks: str) -> str:
    """What can be read of a reply's reasoning, whose blocks are JSON."""
    try:
        thoughts = [block.get("thinking") or f"({block['type']})" for block in json.loads(blocks)]
    except (ValueError, KeyError, AttributeError):
        return blocks
    return "\n\n".join(thoughts)


def _step(event: StepDone, head: int | None, argument: int | None) -> Iterator[str]:
    facts = [f"step {event.index}: {event.action}", text.seconds(event.seconds)]
    if event.exit_status is not None:
        facts.append(f"exit status {event.exit_status}")
    if event.killed_for:
        facts.append(f"killed for {event.killed_for}")
    if not event.ok:
        facts.append("error")
    yield from _wrap(", ".join(facts))
    for name, value in event.args.items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if argument is None and "\n" in shown:
            yield f"{_IN}{name}:"
            yield from _block(shown)
        else:
            yield from _wrap(
                f"{name}: {shown if argument is None else _short(shown, argument)}", _IN
            )
    yield from _block(event.observation, head)
    if event.output_file:
        yield from _wrap(
            f"whole output ({text.count(event.output_bytes)} bytes): {event.output_file}", _IN
        )


def _ended(event: AgentEnded) -> Iterator[str]:
    outcome = "" if event.outcome is None else f", {event.outcome.value}"
    reason = f": {_head(event.reason)}" if event.reason else ""
    yield from _wrap(f"agent ended: {event.ended_by.value}{outcome}{reason}")
    if event.tampered:
        yield from _wrap(f"read-only files changed: {', '.join(event.tampered)}", _IN)


def _note(event: Note) -> Iterator[str]:
    data = _short(json.dumps(event.data, ensure_ascii=False), ARGUMENT)
    yield from _wrap(f"note {event.kind}: {data}", "  ")


def _started(event: TrialStarted) -> Iterator[str]:
    machine = event.machine or "an unnamed machine"
    yield from _wrap(f"started in sandbox {event.sandbox}, data {event.data}, on {machine}")


def _finished(event: TrialFinished) -> Iterator[str]:
    yield from _wrap(f"finished: {event.outcome.value}: {_head(event.reason)}")


def _program(event: ProgramEnded) -> Iterator[str]:
    """How a program ended, and the last lines that it printed."""
    ended = f"killed for {event.killed_for}"
    if event.exit_status is not None:
        ended = f"exit status {event.exit_status}"
    yield from _wrap(
        f"program ended: {shlex.join(event.argv)}, {text.seconds(event.seconds)}, {ended}"
    )
    last = event.output.rstrip("\n").split("\n")[-PROGRAM_LINES:]
    yield from _block("\n".join(last), PROGRAM_LINES)
    if event.output_file:
        yield from _wrap(
            f"whole output ({text.count(event.output_bytes)} bytes): {event.output_file}", _IN
        )


def _model_call(event: ModelCall) -> Iterator[str]:
    facts = [f"model call: {event.role}, {event.model}", f"{text.count(event.usage.total)} tokens"]
    facts += [f"${text.dollars(event.cost)}", text.seconds(event.seconds)]
    waited = f"{text.seconds(event.waited)} of waiting"
    if event.retries:
        facts.append(f"{event.retries} {'retry' if event.retries == 1 else 'retries'} ({waited})")
    elif event.waited:
        facts.append(waited)
    if event.error:
        facts.append(f"failed: {event.error}")
    if event.remark:
        facts.append(event.remark)
    yield from _wrap(", ".join(facts), "  ")


def _restored(event: WorkspaceRestored) -> Iterator[str]:
    where = f"after step {event.step}" if event.step else "at the start"
    yield from _wrap(f"workspace restored to what it was {where}, {text.seconds(event.seconds)}")
    if event.missing:
        yield from _wrap(
            f"not there again, because they were not kept: {', '.join(event.missing)}", _IN
        )


def _evaluation(event: Evaluation) -> Iterator[str]:
    what = "the final workspace" if event.step is None else f"step {event.step}"
    score = "" if event.score is None else f", score {event.score:.6g}"
    reason = f": {event.reason}" if event.reason else ""
    yield from _wrap(
        f"evaluation of {what}: {event.verdict}{score}, {text.seconds(event.seconds)}{reason}"
    )


def _stored(store: ContentStore, digest: str) -> str:
    """A stored text; JSON lists of messages are laid out by role."""
    raw = store.read_bytes(digest).decode("utf-8", "replace")
    try:
        found: Any = json.loads(raw)
    except ValueError:
        return raw
    if isinstance(found, list) and all(isinstance(m, dict) and "content" in m for m in found):
        return "\n".join(f"[{m.get('role', '?')}]\n{m['content']}" for m in found)
    return raw


def _block(found: str, head: int | None = None) -> Iterator[str]:
    """Text behind a bar; only the first ``head`` lines unless it is None."""
    lines = found.rstrip("\n").split("\n") if found.strip() else []
    shown = lines if head is None else lines[:head]
    for line in shown:
        # Agents' output may hold escape sequences, which would act on the reader's terminal. A tab
        # counts as unprintable and would be escaped as well.
        clean = text.printable(line.replace("\t", "    "))
        if head is None:
            for start in range(0, max(1, len(clean)), WIDTH - 6):
                yield f"{_IN}| {clean[start : start + WIDTH - 6]}".rstrip()
        else:
            yield f"{_IN}| {_short(clean, WIDTH - 6)}".rstrip()
    if len(shown) < len(lines):
        yield f"{_IN}| ({text.plural(len(lines) - len(shown), 'line')} more)"


def _short(found: str, limit: int) -> str:
    return found if len(found) <= limit else f"{found[: limit - 3]}..."


def _head(reason: str) -> str:
    return reason.partition("\n")[0]


def _wrap(found: str, indent: str = "") -> list[str]:
    return text.wrapped(text.printable(" ".join(found.split())), WIDTH, indent, indent + "  ") or [
        indent
    ]


_SHOWN: Mapping[type, Callable[[Any], Iterator[str]]] = {
    AgentEnded: _ended,
    Evaluation: _evaluation,
    ModelCall: _model_call,
    Note: _note,
    ProgramEnded: _program,
    StepDone: lambda event: _step(event, HEAD_LINES, ARGUMENT),
    TrialFinished: _finished,
    TrialStarted: _started,
    WorkspaceRestored: _restored,
}
