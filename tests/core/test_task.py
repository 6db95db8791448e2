from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from pytest_mlab.core.task import Baseline, Direction, Threshold
from tests.core.builders import a_baseline, a_task


def test_the_sign_follows_the_direction() -> None:
    assert Direction.MAXIMIZE.sign == a_task().sign == 1
    assert Direction.MINIMIZE.sign == a_task(direction=Direction.MINIMIZE).sign == -1


def test_directions_are_the_words_of_task_toml() -> None:
    assert [d.value for d in Direction] == ["maximize", "minimize"]


def test_a_baseline_counts_its_runs() -> None:
    assert a_baseline(0.1, 0.2, 0.3).n == 3
    assert Baseline("starter", (), 0.5, 0.0).n == 0


def test_ten_percent_is_the_default_threshold() -> None:
    assert Threshold() == Threshold(improvement=0.10, absolute=None)


def test_a_task_is_a_fact() -> None:
    with pytest.raises(FrozenInstanceError):
        a_task().name = "other"  # type: ignore[misc]
