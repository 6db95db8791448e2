"""The file that all workers of a run share: sums that hold, whoever writes and whoever dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_mlab.core.routes import GivenUp
from pytest_mlab.errors import StoreError
from pytest_mlab.store.shared import Shared, Spending


class Now:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def child(work: Callable[[], None]) -> int:
    """A process that does ``work`` and ends; its id."""
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def test_nothing_was_spent_and_no_file_is_made(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    assert (shared.spending(), shared.given_up(), shared.held("m")) == (Spending(), {}, 0.0)
    shared.forgive()
    assert list(tmp_path.iterdir()) == []


def test_calls_add_up_and_unknown_prices_are_counted(tmp_path: Path) -> None:
    for dollars in (0.25, None, 0.5):
        Shared(tmp_path).spend("a-trial", "m", dollars)
    assert Shared(tmp_path).spending() == Spending(0.75, calls=3, unpriced=1)


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    def work() -> None:
        for _ in range(25):
            Shared(tmp_path).spend("a-trial", "m", 0.25)

    for pid in [child(work) for _ in range(4)]:
        os.waitpid(pid, 0)
    assert Shared(tmp_path).spending() == Spending(25.0, calls=100)


def test_a_killed_process_leaves_every_call_that_it_reported(tmp_path: Path) -> None:
    told, tell = os.pipe()

    def work() -> None:
        while True:
            Shared(tmp_path).spend("a-trial", "m", 1.0)
            os.write(tell, b".")

    pid = child(work)
    reported = len(os.read(told, 1)) + len(os.read(told, 100))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(tell)
    while found := os.read(told, 100):
        reported += len(found)
    os.close(told)
    assert reported <= Shared(tmp_path).spending().calls <= reported + 1


def test_who_gives_an_endpoint_up_first_is_remembered_until_the_next_session(
    tmp_path: Path,
) -> None:
    shared = Shared(tmp_path)
    shared.give_up("m", "AuthError", "no such key")
    shared.give_up("m", "QuotaError", "no money")
    assert Shared(tmp_path).given_up() == {"m": GivenUp("AuthError", "no such key")}
    shared.spend("a-trial", "m", 1.0)
    shared.forgive()
    assert shared.given_up() == {}
    assert shared.spending().dollars == 1.0


def test_refused_parameters_are_remembered_until_the_next_session(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    assert shared.refused("m") == frozenset()
    shared.refuse("m", "stop")
    shared.refuse("m", "stop")
    assert Shared(tmp_path).refused("m") == {"stop"}
    assert Shared(tmp_path).refused("another") == frozenset()
    shared.forgive()
    assert shared.refused("m") == frozenset()


def test_the_longest_hold_counts(tmp_path: Path) -> None:
    now = Now()
    shared = Shared(tmp_path, now)
    shared.hold("m", 30)
    shared.hold("m", 10)
    now.now += 5
    assert shared.held("m") == 25.0
    assert shared.held("another") == 0.0
    now.now += 26
    assert shared.held("m") == 0.0


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    Shared(tmp_path).path.write_text(
        "this is no database, and it is long enough to be taken for one" * 20
    )
    with pytest.raises(StoreError, match=r"shared\.sqlite cannot be used"):
        Shared(tmp_path).spending()
