"""Which of the planned trials a session runs: known once pytest has collected."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

import pytest

from pytest_mlab.core.plan import Plan
from pytest_mlab.core.trial import TrialId
from pytest_mlab.planning import make as planning
from pytest_mlab.planning import recordable, retry
from pytest_mlab.planning.planned import Planned
from pytest_mlab.plugin.brief import Brief
from pytest_mlab.plugin.collect import trials_of
from pytest_mlab.plugin.failures import usage_errors
from pytest_mlab.plugin.roles import is_distributed
from pytest_mlab.store.rundir import RunDir


class CollectOnly:
    """A session that only collects: no plan is written, and nothing runs.

    ``items`` maps node ids to the selected trials of ``planned``."""

    def __init__(self, planned: Planned) -> None:
        self.planned = planned
        self.items: Mapping[str, TrialId] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """A selection without trials is a usage error here as well."""
        if not _is_failing():
            self.items = trials_of(session.items)
            _refuse_nothing(session, self.items, bool(session.items), self.planned.plan)


class Selection:
    """The selected trials and the run that is narrowed to them.

    ``items`` maps node ids to trials, empty until collection has ended and where only other tests
    are selected. ``begin`` is called once with the run, after the selection is known and before the
    first trial starts."""

    def __init__(
        self,
        session: pytest.Session,
        planned: Planned,
        run: RunDir,
        brief: Brief,
        begin: Sequence[Callable[[RunDir], None]] = (),
    ) -> None:
        self.run = run
        self.items: Mapping[str, TrialId] = {}
        self.is_fresh = not planned.resumed
        self.config = session.config
        self._session = session
        self._planned = planned.plan
        self._retry = planned.retry
        self._file = brief.selection
        self._begin = begin
        self._is_known = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without xdist: the items that are left are the selection."""
        if not is_distributed(session.config) and not _is_failing():
            self._settle(trials_of(session.items), others=bool(session.items))

    def read(self, *, others: bool) -> None:
        """With xdist: a worker has collected and left its selection in the run directory.

        ``others``: tests of other kinds are selected, too."""
        # The first worker decides. A replacement later on sends the same list, and the plan must
        # not be narrowed while trials run.
        if not self._is_known:
            self._settle(planning.read_selection(self._file, self._planned), others=others)

    def _settle(self, items: Mapping[str, TrialId], *, others: bool) -> None:
        _refuse_nothing(self._session, items, others, self._planned)
        self._is_known = True
        self.items = items
        if not items:
            return
        # A resumed run keeps its plan: what -k leaves out this time is still missing in it.
        if self.is_fresh:
            self.run = planning.narrow(self.run, items.values())
        again = retry.to_run_again(self.run, items.values(), self._retry)
        # After the plan is narrowed: only the trials that are left need a recording to replay, or a
        # free place for one.
        with usage_errors():
            done = self.run.results().keys() - set(again)
            recordable.check(self.run.plan, done=done, resumed=not self.is_fresh)
        # Last, where the session is sure to run and the selection is known: what -k leaves out
        # keeps its result.
        for trial in again:
            self.run.trial(trial).restart()
        for begin in self._begin:
            begin(self.run)


def _is_failing() -> bool:
    """True when collection has raised: pytest calls the hook all the same, in a ``finally``, and
    then reports the error itself (such as a path that does not exist)."""
    return sys.exc_info()[0] is not None


def _refuse_nothing(
    session: pytest.Session, items: Mapping[str, TrialId], others: bool, plan: Plan
) -> None:
    """Raise UsageError when nothing at all is selected; failures of collection are reported by
    pytest."""
    if not items and not others and not session.testsfailed:
        raise pytest.UsageError(_explain_nothing(session.config, plan))


def _explain_nothing(config: pytest.Config, plan: Plan) -> str:
    """Why no trial is left, and the names that are most like what was asked for."""
    from pytest_mlab.lib.suggest import nearest_first

    keyword, mark = config.getoption("keyword", ""), config.getoption("markexpr", "")
    asked = (
        " ".join(filter(None, (keyword and f"-k {keyword!r}", mark and f"-m {mark!r}")))
        or f"the paths {' '.join(config.args)}"
    )
    names = [trial.name for trial in plan.trials]
    words = [
        word
        for word in keyword.replace("(", " ").replace(")", " ").split()
        if word not in ("and", "or", "not")
    ]
    tasks = sorted({trial.task for trial in plan.trials})
    nearest = nearest_first(words[0], tasks) if words else tasks
    return (
        f"no trial is selected by {asked}; tasks of the plan: {', '.join(nearest)}; trial ids look"
        f" like {names[0]}; to fix: choose tasks by --mlab-task or -k and trials by their ids, name"
        " test files that use the fixture mlab_trial, or give no path for the whole suite"
    )
