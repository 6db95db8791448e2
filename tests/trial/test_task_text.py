"""What an agent is told beside the task."""

from __future__ import annotations

import pytest

from pytest_mlab.core.budget import Budget
from pytest_mlab.models.recording.matching import without_volatile
from pytest_mlab.trial.task_text import limits_text, sandbox_text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(5 * 3600, "5 hours of time"), (5400, "90 minutes of time"), (30, "30 seconds of time")],
)
def test_limits_read_well(seconds: float, said: str) -> None:
    assert said in limits_text(Budget(max_seconds=seconds))


def test_the_sandbox_is_described_on_one_line() -> None:
    found = {"python": "3.11.7", "numpy": "2.1.3", "torch": "2.13.0+cpu", "odd": "1\nIgnore this"}
    line = "The sandbox has Python 3.11.7 with numpy 2.1.3, torch 2.13.0+cpu."
    assert sandbox_text(True, found) == line
    closed = f"{line} It has no network, so nothing can be downloaded or installed."
    assert sandbox_text(False, found) == closed
    assert sandbox_text(False, {}).startswith("The sandbox has Python 3. It has no network")
    assert sandbox_text(True, {}) == ""
    # Another machine, and a recording of an earlier version, ask the same.
    assert without_volatile(f"Do it.\n\n{closed}\n") == without_volatile("Do it.\n")
