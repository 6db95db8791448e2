"""Replays a task's reference solution as ordinary actions: shows that the task can be solved and
the harness works."""

from __future__ import annotations

from pytest_mlab import Environment, MlabError


class ReferenceAgent:
    """Stops at the first action that fails: a reference solution has to work."""

    needs_model = False

    def run(self, env: Environment) -> None:
        """Every action of the task's reference. Raises MlabError, with the end of the output, when
        one fails."""
        for number, action in enumerate(env.script("reference"), 1):
            seen = env.execute(action)
            if seen.done:
                return
            if not seen.ok:
                raise MlabError(
                    f"step {number} of the reference, {action.name}, failed: {seen.text[-2000:]}"
                )
