"""xdist's hooks on the controller of a session; registered only where xdist is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_mlab.plugin.collect import IDLE
from pytest_mlab.plugin.controller import Controller
from pytest_mlab.plugin.scheduler import OneItemScheduler


class Distribution:
    """The hooks of xdist, on the controller; registered only where xdist is."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller

    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker, replacements included, where the frozen plan is."""
        node.workerinput["mlab"] = self.controller.brief.to_wire()

    def pytest_xdist_make_scheduler(
        self, config: pytest.Config, log: object
    ) -> OneItemScheduler | None:
        """One trial at a time."""
        from xdist.workermanage import parse_tx_spec_config

        return OneItemScheduler(len(parse_tx_spec_config(config)), self.controller.count)

    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:
        """A worker has collected: its selection is in the run directory by now."""
        self.controller.selection_known(others=any(nodeid != IDLE for nodeid in ids))

    def pytest_handlecrashitem(
        self, crashitem: str, report: pytest.TestReport, sched: object
    ) -> None:
        """A worker died in a trial: say what the journal knows."""
        self.controller.enrich_crash(crashitem, report)
