"""Finding a stored run, or a trial in it, by what a user calls it."""

from __future__ import annotations

from pathlib import Path

from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import ConfigError, StoreError
from pytest_mlab.lib.suggest import nearest_first, unknown
from pytest_mlab.store.rundir import PLAN, RunDir

LAST = "last"
REPORTS = Path("reports")


def find_run(name: str, reports: Path = REPORTS) -> RunDir:
    """The run called ``name``: a run directory's path, a run id under ``reports``, or ``last`` for
    the newest there.

    Raises ConfigError that names what exists, StoreError when the run cannot be read.
    """
    if name == LAST:
        return _last(reports)
    for path in (Path(name), reports / name):
        if (path / PLAN).is_file():
            return RunDir.open(path)
    known = [path.name for path in _newest_first(reports)]
    exists = (
        f"runs there: {', '.join(nearest_first(name, known)[:5])}"
        if known
        else f"{reports} holds no run"
    )
    raise ConfigError(
        f"{name!r} is neither a folder with a {PLAN} nor the id of a run under {reports}; {exists}"
    )


def find_trial(name: str, run: RunDir) -> TrialId:
    """The planned trial called ``name`` (as in test ids), or the one whose folder in the run
    ``name`` is.

    Raises ConfigError that names the nearest ones.
    """
    by_name = {trial.name: trial for trial in run.plan.trials}
    if name in by_name:
        return by_name[name]
    folder = Path(name).absolute()
    for trial in run.plan.trials:
        if folder == (run.path / trial.folder).absolute():
            return trial
    nearest = nearest_first(name, by_name)[:6]
    raise ConfigError(
        f"{unknown('trial', name, nearest)} (run {run.plan.run_id} has {len(by_name)})"
    )


def _last(reports: Path) -> RunDir:
    for run in map(_readable, _newest_first(reports)):
        if run is not None:
            return run
    raise ConfigError(
        f"{reports} holds no run; name a run directory, or start a run first (pytest"
        " --mlab-agent=...)"
    )


def _readable(path: Path) -> RunDir | None:
    try:
        return RunDir.open(path)
    except StoreError:
        return None  # of another version, or damaged: asked for by name, it is an error


def _newest_first(reports: Path) -> list[Path]:
    """Run directories; their names, the run ids, sort by time."""
    found = (
        path for path in (reports.iterdir() if reports.is_dir() else ()) if (path / PLAN).is_file()
    )
    return sorted(found, key=lambda path: path.name, reverse=True)
