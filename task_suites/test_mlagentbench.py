"""The suite mlagentbench: an agent's trial passes when its final workspace beats the task's
baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_mlab import Trial


def test_beats_baseline(mlab_trial: Trial) -> None:
    """The score is strictly better than the baseline by the task's threshold, 10 % unless task.toml
    says otherwise."""
    assert mlab_trial.beats_baseline, mlab_trial.explain()
