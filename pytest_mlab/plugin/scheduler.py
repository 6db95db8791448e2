"""Trials under pytest-xdist: one at a time on each worker, never run twice, never lost with a
worker.

xdist starts an item only once it knows the next one, so its own schedulers pin two items to every
worker and let one wait behind another for hours. Here each worker has an :class:`IdleItem` at the
end of its list, and the scheduler always sends a trial together with it: the worker runs the trial,
waits on the idle item, and is fed again when it asks. Only the controller registers
:class:`Distribution`; only public hooks and the ``Scheduling`` protocol of xdist are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pytest_mlab.plugin.roles import is_worker

IDLE = "mlab-idle"


class IdleItem(pytest.Item):
    """The end of a worker's list: it runs nothing and is never reported."""

    def runtest(self) -> None:
        """Never called: see the plugin's ``pytest_runtest_protocol``."""


def append_idle(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Add an idle item to the end of a worker's list."""
    if items and is_worker(session.config):
        items.append(IdleItem.from_parent(session, name=IDLE, nodeid=IDLE))


class OneItemScheduler:
    """xdist's ``Scheduling`` protocol: a worker holds the trial that it runs and the idle item,
    nothing else.

    ``ids`` are the node ids that all workers agreed on, the idle item last; ``queue`` holds the
    indices that still wait, in plan order; ``running`` maps each worker to the index that it runs.
    A worker whose list differs (its suite was edited in the middle of a run) is shut down: the same
    indices would be other trials there. ``counted`` is called with the number of items, the idle
    one left out, each time after xdist has counted it in."""

    def __init__(self, workers: int, counted: Callable[[int], None] = lambda items: None) -> None:
        self.workers = workers
        self.counted = counted
        self.ids: list[str] | None = None
        self.queue: list[int] = []
        self.running: dict[Any, int | None] = {}
        self.collections: dict[Any, list[str]] = {}

    @property
    def nodes(self) -> list[Any]:
        """Workers that are up."""
        return list(self.running)

    @property
    def collection_is_completed(self) -> bool:
        """True when every worker of the start has sent its list."""
        return len(self.collections) >= self.workers

    @property
    def has_pending(self) -> bool:
        """True while a trial waits or runs."""
        return bool(self.queue) or any(index is not None for index in self.running.values())

    @property
    def tests_finished(self) -> bool:
        """True when nothing is left; xdist then shuts the workers down."""
        return self.ids is not None and not self.has_pending

    def add_node(self, node: Any) -> None:
        """A worker is up and is about to collect."""
        self.running[node] = None

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """A worker has sent its list."""
        if self.ids is not None and list(collection) != self.ids:
            node.shutdown()
            return
        self.collections[node] = list(collection)

    def schedule(self) -> None:
        """All lists are there, or a replacement's is: give every idle worker a trial."""
        if self.ids is None:
            first, *others = self.collections.values()
            for other in others:
                if other != first:
                    difference = sorted(set(first) ^ set(other)) or ["their order"]
                    raise pytest.UsageError(
                        f"the workers collected different tests; first difference: {difference[0]};"
                        " test ids must not depend on time, chance or the environment"
                    )
            self.ids = first
            self.queue = [index for index, nodeid in enumerate(first) if nodeid != IDLE]
        # xdist has just set the number to that of the worker's list, which includes the idle item
        # and no verdict.
        self.counted(len(self.ids) - self.ids.count(IDLE))
        for node in self.nodes:
            self._feed(node)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """A worker has done an item: after its trial it gets the next one."""
        # The end of the idle item is reported here as well, once the worker has its next pair; it
        # frees nothing.
        if item_index == self.running.get(node):
            self.running[node] = None
            self._feed(node)

    def mark_test_pending(self, item: str) -> None:
        """A plugin wants an item to run again."""
        if self.ids is None:
            raise ValueError(f"{item} was not collected yet")
        self.queue.insert(0, self.ids.index(item))
        for node in self.nodes:
            self._feed(node)

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        """xdist asks for this only after a steal command, and none is ever sent."""

    def remove_node(self, node: Any) -> str | None:
        """A worker has died: return the id of the trial that it was running, None for none."""
        # The index does not go back into the queue: a trial that took its worker along is reported
        # as lost, and only --mlab-resume runs it again.
        index = self.running.pop(node)
        self.collections.pop(node, None)
        for other in self.nodes:
            self._feed(other)
        return None if index is None or self.ids is None else self.ids[index]

    def _feed(self, node: Any) -> None:
        # A worker whose list was refused, or is still to come, is in ``running`` and not in
        # ``collections``.
        is_idle = node in self.collections and self.running[node] is None
        if self.ids is None or not is_idle or node.shutting_down:
            return
        if not self.queue:
            node.shutdown()
            return
        self.running[node] = index = self.queue.pop(0)
        node.send_runtest_some([index, len(self.ids) - 1])
