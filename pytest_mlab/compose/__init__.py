"""The composition root of a trial: where tasks, data, sandboxes, agents, models and the store meet.

The worker owns a :class:`TrialRunner`; it starts two processes a trial, ``agent_phase`` and ``finish_phase``.
"""

from __future__ import annotations

from pytest_mlab.compose.runner import TrialRunner

__all__ = ["TrialRunner"]
