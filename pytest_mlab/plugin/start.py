"""The begin of a session with trials, on every process of it."""

from __future__ import annotations

import pytest

from pytest_mlab.lib.locate import suite_name
from pytest_mlab.planning.options import MlabOptions
from pytest_mlab.plugin.brief import Brief
from pytest_mlab.plugin.collect import register_modalities
from pytest_mlab.plugin.fixture import WORKER
from pytest_mlab.plugin.roles import is_distributed, is_worker
from pytest_mlab.plugin.stash import RUN, Run
from pytest_mlab.plugin.worker import Worker
from pytest_mlab.store.rundir import RunDir


def start(session: pytest.Session, options: MlabOptions) -> None:
    """Begin a session with trials: called on every process once, before anything is collected."""
    config = session.config
    suite = suite_name(options.suite)
    # A worker takes the frozen plan as it is. Looking at suites again, a replacement could collect
    # other items after an edit, and xdist runs items by their index.
    if is_worker(config):
        brief = Brief.from_wire(config.workerinput["mlab"])  # type: ignore[attr-defined]  # xdist's
        run = Run(RunDir.open(brief.run_dir).plan, brief, suite)
    else:
        # Not needed by workers, which start faster without it.
        from pytest_mlab.plugin.controller import control

        planned, brief = control(session, options)
        run = Run(planned.plan, brief, suite, planned.passed_over, planned.left_out)
    config.args = list(run.brief.paths.args)
    register_modalities(config, [task.modality for task in run.brief.tasks.values()])
    config.stash[RUN] = run
    # A controller with workers runs no item itself.
    if not is_distributed(config):
        # A worker's own output is nobody's to read, so -s has no effect under xdist.
        shows = config.getoption("capture") == "no" and not is_worker(config)
        config.stash[WORKER] = worker = Worker(
            run, options, brief.gate, config.hook, shows_output=shows
        )
        config.pluginmanager.register(worker, "mlab-worker")
