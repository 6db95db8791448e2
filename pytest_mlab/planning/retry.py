"""``--mlab-retry``: which trials of a resumed run are run again although they have a result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from pytest_mlab.core.trial import Outcome, TrialId, TrialResult

if TYPE_CHECKING:
    from pytest_mlab.store.rundir import RunDir

WORDS: Mapping[str, Outcome] = {
    "infra": Outcome.INFRA_ERROR,
    "provider": Outcome.PROVIDER_ERROR,
    "task": Outcome.TASK_ERROR,
    "agent": Outcome.AGENT_ERROR,
    "invalid": Outcome.INVALID_SUBMISSION,
    "no_submission": Outcome.NO_SUBMISSION,
    "below": Outcome.BELOW_THRESHOLD,
}
"""The words of the option. A success is never run again."""

NOT_THE_AGENTS = ("infra", "provider")
"""The outcomes that say nothing about the agent, which a message proposes to run again."""


def parse_outcomes(text: str) -> tuple[Outcome, ...]:
    """``infra,provider`` as outcomes; an outcome's whole name (``infra_error``) is a word as well.

    Raises ValueError for another word, or for none."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    known = dict(WORDS) | {outcome.value: outcome for outcome in WORDS.values()}
    for word in words:
        if word not in known:
            raise ValueError(f"{word!r} is not an outcome to run again; known: {', '.join(WORDS)}")
    if not words:
        raise ValueError(f"name outcomes, separated by commas: {', '.join(WORDS)}")
    return tuple(dict.fromkeys(known[word] for word in words))


def to_run_again(
    run: RunDir, trials: Iterable[TrialId], outcomes: Collection[Outcome]
) -> list[TrialId]:
    """Those of ``trials`` that ended by one of ``outcomes``. Raises StoreError when a result cannot
    be read."""
    if not outcomes:
        return []
    results = ((trial, run.trial(trial).result()) for trial in trials)
    return [trial for trial, r in results if r is not None and r.outcome in outcomes]


def proposal(results: Iterable[TrialResult], resume: str) -> str:
    """How many trials ended without the agent's fault, and the command that runs them again; ''
    when there is none. ``resume`` is the command that resumes the run."""
    outcomes = [result.outcome for result in results]
    words = [word for word in NOT_THE_AGENTS if WORDS[word] in outcomes]
    if not words or not resume:
        return ""
    count = sum(outcomes.count(WORDS[word]) for word in words)
    names = " or ".join(WORDS[word].value for word in words)
    trials = "1 trial" if count == 1 else f"{count} trials"
    return (
        f"{trials} ended as {names}; a resumed run keeps that result; to run"
        f" {'it' if count == 1 else 'them'} again: {resume} --mlab-retry={','.join(words)}"
    )
