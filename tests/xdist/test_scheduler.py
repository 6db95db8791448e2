"""The one-item scheduler against workers that only note what they are sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.plugin.scheduler import IDLE, OneItemScheduler


class FakeWorker:
    """Notes what it is sent; ``current`` is the item that it runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sent: list[list[int]] = []
        self.shutting_down = False

    def __repr__(self) -> str:
        return self.name

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down
        self.sent.append(list(indices))

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def current(self) -> int:
        return self.sent[-1][0]


def started(items: int, workers: int) -> tuple[OneItemScheduler, list[FakeWorker]]:
    scheduler = OneItemScheduler(workers)
    nodes = [FakeWorker(f"gw{i}") for i in range(workers)]
    for node in nodes:
        scheduler.add_node(node)
    for node in nodes:
        scheduler.add_node_collection(node, ids(items))
    scheduler.schedule()
    return scheduler, nodes


def ids(items: int) -> list[str]:
    return [f"t[{i}]" for i in range(items)] + [IDLE]


def test_each_worker_gets_one_trial_and_the_idle_item() -> None:
    _, nodes = started(items=5, workers=2)
    assert [node.sent for node in nodes] == [[[0, 5]], [[1, 5]]]


def test_a_long_trial_holds_nothing_else_up() -> None:
    scheduler, (long, short) = started(items=9, workers=2)
    for _ in range(8):
        scheduler.mark_test_complete(short, short.current)
    assert long.sent == [[0, 9]]
    assert [first for first, _ in short.sent] == list(range(1, 9))
    assert short.shutting_down
    assert not scheduler.tests_finished
    scheduler.mark_test_complete(long, 0)
    assert scheduler.tests_finished


def test_the_end_of_the_idle_item_means_nothing() -> None:
    scheduler, (node, _) = started(items=4, workers=2)
    scheduler.mark_test_complete(node, 4)
    assert node.sent == [[0, 4]]


def test_workers_without_a_trial_are_shut_down() -> None:
    _, nodes = started(items=1, workers=3)
    assert [node.shutting_down for node in nodes] == [False, True, True]


def test_a_crashed_trial_is_named_and_not_run_again() -> None:
    scheduler, (first, second) = started(items=3, workers=2)
    assert scheduler.remove_node(first) == "t[0]"
    replacement = FakeWorker("gw2")
    scheduler.add_node(replacement)
    scheduler.add_node_collection(replacement, ids(3))
    scheduler.schedule()
    assert replacement.sent == [[2, 3]]
    scheduler.mark_test_complete(replacement, 2)
    scheduler.mark_test_complete(second, 1)
    assert scheduler.tests_finished


def test_an_idle_worker_that_dies_loses_nothing() -> None:
    scheduler, (_, idle) = started(items=1, workers=2)
    assert scheduler.remove_node(idle) is None


def test_a_replacement_that_collected_something_else_runs_nothing() -> None:
    scheduler, (first, _) = started(items=3, workers=2)
    scheduler.remove_node(first)
    replacement = FakeWorker("gw2")
    scheduler.add_node(replacement)
    scheduler.add_node_collection(replacement, ["other[0]", IDLE])
    scheduler.schedule()
    assert replacement.shutting_down
    assert replacement.sent == []


def test_workers_that_disagree_at_the_start_are_a_usage_error() -> None:
    scheduler = OneItemScheduler(2)
    for node, collected in ((FakeWorker("gw0"), ["a", IDLE]), (FakeWorker("gw1"), ["b", IDLE])):
        scheduler.add_node(node)
        scheduler.add_node_collection(node, collected)
    with pytest.raises(pytest.UsageError, match="different tests; first difference: a"):
        scheduler.schedule()


def test_the_idle_item_is_not_counted() -> None:
    counted: list[int] = []
    scheduler = OneItemScheduler(1, counted.append)
    node = FakeWorker("gw0")
    scheduler.add_node(node)
    scheduler.add_node_collection(node, ids(3))
    scheduler.schedule()
    assert counted == [3]


def test_nothing_collected_ends_at_once() -> None:
    scheduler = OneItemScheduler(1)
    node = FakeWorker("gw0")
    scheduler.add_node(node)
    scheduler.add_node_collection(node, [])
    scheduler.schedule()
    assert scheduler.tests_finished
    assert node.shutting_down


def test_a_plugin_may_ask_for_an_item_again() -> None:
    scheduler, (node,) = started(items=1, workers=1)
    scheduler.mark_test_pending("t[0]")
    scheduler.mark_test_complete(node, 0)
    assert node.sent == [[0, 1], [0, 1]]


@given(
    items=st.integers(1, 12),
    workers=st.integers(1, 4),
    events=st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=60),
)
def test_each_trial_runs_exactly_once_whatever_crashes(
    items: int, workers: int, events: list[tuple[int, bool]]
) -> None:
    scheduler, nodes = started(items, workers)
    everyone = list(nodes)
    for choice, crash in [*events, *[(0, False)] * items]:
        busy = [node for node in nodes if scheduler.running.get(node) is not None]
        if not busy:
            break
        node = busy[choice % len(busy)]
        if not crash:
            scheduler.mark_test_complete(node, node.current)
            continue
        nodes.remove(node)
        scheduler.remove_node(node)
        replacement = FakeWorker(f"gw{len(everyone)}")
        nodes.append(replacement)
        everyone.append(replacement)
        scheduler.add_node(replacement)
        scheduler.add_node_collection(replacement, ids(items))
        scheduler.schedule()
    ran = sorted(first for node in everyone for first, _ in node.sent)
    assert ran == list(range(items))
    assert scheduler.tests_finished
