"""The control: runs a task's starter code (or its hidden filled-in version) and submits what comes
out."""

from __future__ import annotations

from pytest_mlab import Environment


class BaselineAgent:
    """Does nothing of its own, so its rate of success is what chance and noise give."""

    needs_model = False

    def run(self, env: Environment) -> None:
        """Every action of the task's baseline, whatever comes back."""
        for action in env.script("baseline"):
            if env.execute(action).done:
                return
