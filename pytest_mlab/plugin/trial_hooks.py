"""Users' hooks about the trial that runs, called in the process that runs its test."""

from __future__ import annotations

from collections import Counter

import pluggy
import pytest

from pytest_mlab.core.trial import TrialId
from pytest_mlab.plugin.failures import HookFailed, call
from pytest_mlab.plugin.trial import Trial
from pytest_mlab.store.events import Event, StepDone, TrialStarted


class TrialHooks:
    """Calls the hooks of one trial after the other, and keeps what they raise until it has ended.

    ``wants_events``: some plugin has a hook that is called while a trial runs. Where none has, the
    trace need not be read."""

    def __init__(self, hook: pluggy.HookRelay) -> None:
        # Not the items' own relay, which leaves out the conftest.py of a project that runs a
        # built-in suite.
        self._hook = hook
        self.wants_events = bool(
            hook.pytest_mlab_trial_started.get_hookimpls()
            or hook.pytest_mlab_step_done.get_hookimpls()
        )

    def begin(self, item: pytest.Item, trial_id: TrialId) -> None:
        """The trial of ``item`` is about to run."""
        self._item = item
        self._trial_id = trial_id
        self._failures: Counter[str] = Counter()

    def on_event(self, event: Event) -> None:
        """Call the hook for ``event``, if it has one."""
        hook = self._hook
        if isinstance(event, TrialStarted):
            self._call(hook.pytest_mlab_trial_started, trial_id=self._trial_id, started=event)
        elif isinstance(event, StepDone):
            self._call(hook.pytest_mlab_step_done, trial_id=self._trial_id, step=event)

    def finish(self, trial: Trial) -> None:
        """The trial has ended: call the last hook. Fails the test when any hook has raised."""
        self._call(self._hook.pytest_mlab_trial_finished, trial=trial)
        if self._failures:
            lines = [
                text + (f" ({times} times)" if times > 1 else "")
                for text, times in self._failures.items()
            ]
            ended = f"the trial itself ended as {trial.outcome.value} and keeps its result"
            pytest.fail("\n".join([*lines, ended]), pytrace=False)

    def _call(self, hook: pluggy.HookCaller, **arguments: object) -> None:
        # Raised here, it would kill the trial that runs.
        try:
            call(hook, item=self._item, **arguments)
        except HookFailed as error:
            self._failures[str(error)] += 1
