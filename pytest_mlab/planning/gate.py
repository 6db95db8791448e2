"""The gate of a run: as asked for, or as a resumed run was started with."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.planning.options import BY_FIELD, MlabOptions
from pytest_mlab.planning.planned import Planned
from pytest_mlab.store.rundir import RunDir

_FLAGS = (BY_FIELD["gate"].flag, BY_FIELD["fail_under"].flag)


def gate_of(options: MlabOptions, planned: Planned, words: Sequence[str]) -> GatePolicy:
    """The gate that judges the run. ``words`` are the command line's own: a resumed run is judged
    as it was started unless they ask for another gate.

    Raises ConfigError, and StoreError for a resumed run whose ``run.json`` cannot be read."""
    # Not by the options: an ini file and addopts say the same in every session, and the run may
    # have been started with another gate all the same.
    asked = any(str(word).partition("=")[0] in _FLAGS for word in words)
    if not planned.resumed or asked:
        return GatePolicy.resolve(options.gate, options.fail_under)
    started = RunDir.open(planned.path).identity.get("options", {})
    gate, floor = (started.get(flag) for flag in _FLAGS)
    return GatePolicy.resolve(gate, None if floor is None else float(floor))
