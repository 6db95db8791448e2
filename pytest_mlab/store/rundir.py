"""A run's directory: its plan, its identity, its trials and the contents that they share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_mlab.core.plan import Plan
from pytest_mlab.core.trial import TrialId, TrialResult
from pytest_mlab.errors import StoreError
from pytest_mlab.lib.atomic import write_text
from pytest_mlab.store import serial
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.trialdir import TrialDir

PLAN = "plan.json"
IDENTITY = "run.json"


class RunDir:
    """An existing run directory; :meth:`create` makes one, :meth:`open` reads one."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        self.plan = plan
        self.store = ContentStore(path / "store")

    @classmethod
    def create(cls, path: Path, plan: Plan, identity: Mapping[str, Any]) -> RunDir:
        """A new run directory with ``plan`` and ``identity`` (plain values).

        Raises StoreError when ``path`` holds anything already or cannot be written, WireError when
        a value is not plain."""
        text = serial.to_json(plan)
        described = (
            json.dumps(serial.plain(identity, IDENTITY), indent=1, ensure_ascii=False) + "\n"
        )
        try:
            _claim(path)
            write_text(path / IDENTITY, described, durable=True)
            write_text(path / PLAN, text, durable=True)  # last: with it the folder is a run
        except OSError as error:
            raise StoreError(
                f"{path} cannot be written ({error}); name another folder with --mlab-run-dir"
            ) from None
        return cls(path, plan)

    @classmethod
    def open(cls, path: Path) -> RunDir:
        """The run in ``path``. Raises StoreError when there is none, or its plan is damaged or of
        another format."""
        file = path / PLAN
        try:
            text = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(
                f"{path} is not a run directory (it has no {PLAN}); name a folder that a run wrote"
            ) from None
        return cls(path, serial.from_json(Plan, text, str(file)))

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What ``run.json`` says: options, commit, versions, machine. Raises StoreError when it
        cannot be read."""
        file = self.path / IDENTITY
        try:
            data = json.loads(file.read_bytes())
        except (FileNotFoundError, ValueError) as error:
            raise StoreError(
                f"{file} cannot be read ({error}); restore it or start a new run"
            ) from None
        if not isinstance(data, dict):
            raise StoreError(
                f"{file} holds a {type(data).__name__}, expected an object; restore it or start a"
                " new run"
            )
        return data

    def trial(self, trial: TrialId) -> TrialDir:
        """The folder of one trial."""
        return TrialDir(self.path / trial.folder, trial)

    def results(self) -> dict[TrialId, TrialResult]:
        """The results that are there, in the plan's order; trials without one are not done."""
        found = ((trial, self.trial(trial).result()) for trial in self.plan.trials)
        return {trial: result for trial, result in found if result is not None}


def _claim(path: Path) -> None:
    """Make the empty folder of a new run. Raises StoreError when something else is there,
    OSError."""
    if path.exists() and not path.is_dir():
        raise StoreError(f"{path} is a file; name another folder with --mlab-run-dir")
    if path.is_dir() and any(path.iterdir()):
        way = "continue it with --mlab-resume" if (path / PLAN).exists() else "empty it"
        raise StoreError(f"{path} is not empty; {way}, or name another folder with --mlab-run-dir")
    path.mkdir(parents=True, exist_ok=True)
