"""Can the planned trials be recorded, or replayed? Found out before the first one starts."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from pytest_mlab.core.plan import Plan, RunSettings
from pytest_mlab.core.trial import TrialId, slug
from pytest_mlab.errors import ConfigError, ReplayError

_REASONS = 3


def unusable(
    plan: Plan, *, done: Collection[TrialId] = (), resumed: bool = False
) -> dict[str, str]:
    """Why planned trials cannot be recorded or replayed, by the trial's name; those that are
    ``done`` need not be. A ``resumed`` run replaces the recordings of trials that it did not
    end."""
    settings = plan.settings
    needy = {agent.name for agent in plan.agents if agent.needs_model}
    found: dict[str, str] = {}
    for trial in plan.trials:
        if trial.agent in needy and trial not in done:
            # Without a model there is nothing to record, and a trial that has a result does not run
            # again.
            reason = _unreplayable(trial, settings) if settings.replay else ""
            if settings.record and not resumed:
                reason = _unrecordable(trial, Path(settings.record))
            if reason:
                found[trial.name] = reason
    return found


def check(plan: Plan, *, done: Collection[TrialId] = (), resumed: bool = False) -> None:
    """Raise ConfigError when a planned trial cannot be recorded or replayed, or when there is
    nothing to record."""
    settings = plan.settings
    flag = "--mlab-replay" if settings.replay else "--mlab-record"
    if not settings.replay and not settings.record:
        return
    if not any(agent.needs_model for agent in plan.agents):
        raise ConfigError(f"{flag}: none of the agents calls a model; leave it out")
    reasons = unusable(plan, done=done, resumed=resumed)
    if reasons:
        named = list(dict.fromkeys(reasons.values()))
        more = f"; and {len(named) - _REASONS} more" if len(named) > _REASONS else ""
        what = "replayed" if settings.replay else "recorded"
        raise ConfigError(
            f"{flag}: {len(reasons)} of {len(plan.trials)} trials cannot be {what}:"
            f" {'; '.join(named[:_REASONS])}{more}"
        )


def _unrecordable(trial: TrialId, folder: Path) -> str:
    from pytest_mlab.models.recording.format import file_of

    path = file_of(folder, trial)
    if path.exists():
        return f"{_short(path, folder)} is there already; remove it to record {trial.name} again"
    # The folders are made by the first trial; whether that will work is decided by the nearest one
    # that exists.
    made = next(place for place in (path.parent, *path.parent.parents) if place.exists())
    if not made.is_dir() or not os.access(made, os.W_OK):
        return f"{made} is no folder that can be written to"
    return ""


def _unreplayable(trial: TrialId, settings: RunSettings) -> str:
    from pytest_mlab.models.recording.format import file_of, read_header

    folder = Path(settings.replay)
    path = file_of(folder, trial)
    if not path.exists():
        return _absent(trial, folder)
    try:
        header = read_header(path)
    except ReplayError as error:
        return str(error)
    # The file's place says which trial it is of, so a copied file would answer for another task.
    if header.trial != trial:
        return (
            f"{_short(path, folder)} is the recording of {header.trial.name}; it was copied there"
            " by hand"
        )
    for flag, was, now in (
        ("--mlab-edit-model", header.settings.get("edit_model", ""), settings.edit_model),
        ("--mlab-fast-model", header.settings.get("fast_model", ""), settings.fast_model),
    ):
        if was != now:
            with_ = f"with {flag}={was}" if was else f"without {flag}"
            return f"{_short(path, folder)} was recorded {with_}; replay it so"
    return ""


def _absent(trial: TrialId, folder: Path) -> str:
    """What is missing of the way to a trial's recording, and what there is in its place."""
    task, subject = folder / slug(trial.task), folder / slug(trial.task) / trial.subject
    if not folder.is_dir():
        return f"there is no folder {folder}; record into it first (--mlab-record)"
    if not task.is_dir():
        return f"no recording of the task {trial.task} in {folder}, only of {_named(folder)}"
    if not subject.is_dir():
        return (
            f"no recording of {trial.subject} on {trial.task} in {folder}, only of {_named(task)}"
        )
    repeats = sorted(int(file.stem) for file in subject.glob("*.jsonl") if file.stem.isdecimal())
    said = ", ".join(map(str, repeats)) or "none"
    return (
        f"no recording of repeat {trial.repeat} of {trial.subject} on {trial.task} in {folder},"
        f" only of {said}; give --mlab-repeats={max(repeats, default=1)} or record more"
    )


def _named(folder: Path) -> str:
    return ", ".join(sorted(path.name for path in _entries(folder) if path.is_dir())) or "nothing"


def _entries(folder: Path) -> Iterable[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return ()


def _short(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder.parent))
