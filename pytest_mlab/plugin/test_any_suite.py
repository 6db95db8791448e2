"""The test of a suite that brings no ``test_<suite>.py`` of its own; collected by the plugin
only."""

from __future__ import annotations

from pytest_mlab.plugin.trial import Trial


def test_beats_baseline(mlab_trial: Trial) -> None:
    """The trial's final workspace scores strictly better than the task asks for."""
    assert mlab_trial.beats_baseline
