"""xdist's hooks on the controller of a session; registered only where xdist is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_mlab.plugin.brief import Brief
from pytest_mlab.plugin.ending import Ending
from pytest_mlab.plugin.roles import worker_count
from pytest_mlab.plugin.scheduler import IDLE, OneItemScheduler
from pytest_mlab.plugin.selection import Selection
from pytest_mlab.plugin.unfinished import Unfinished


class Distribution:
    """Connects xdist's hooks with the parts of the run that need them."""

    def __init__(
        self, brief: Brief, selection: Selection, unfinished: Unfinished, ending: Ending
    ) -> None:
        self._brief = brief
        self._selection = selection
        self._unfinished = unfinished
        self._ending = ending

    def pytest_configure_node(self, node: Any) -> None:
        """Send the brief to a worker, replacements included."""
        node.workerinput["mlab"] = self._brief.to_wire()

    def pytest_xdist_make_scheduler(
        self, config: pytest.Config, log: object
    ) -> OneItemScheduler | None:
        """One trial at a time."""
        # xdist takes the first answer, and its own comes last, so this one stands for load and
        # worksteal.
        return OneItemScheduler(worker_count(config), self._ending.count)

    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:
        """A worker has collected: its selection is in the run directory by now."""
        self._selection.read(others=any(nodeid != IDLE for nodeid in ids))

    def pytest_handlecrashitem(
        self, crashitem: str, report: pytest.TestReport, sched: object
    ) -> None:
        """A worker died in a trial: report what the journal knows."""
        # xdist logs the report after this hook: what is changed here is what all reporters see. The
        # trial is not queued again, because a second attempt would be another trial.
        self._unfinished.word_crash(crashitem, report)
