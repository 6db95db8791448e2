"""The begin of a session with trials, on every process of it."""

from __future__ import annotations

import pytest

from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.lib.locate import suite_name
from pytest_mlab.planning.options import MlabOptions
from pytest_mlab.plugin import collect
from pytest_mlab.plugin.brief import Brief
from pytest_mlab.plugin.collect import RUN, Run
from pytest_mlab.plugin.controller import Controller
from pytest_mlab.plugin.distribution import Distribution
from pytest_mlab.plugin.fixture import WORKER
from pytest_mlab.plugin.roles import is_distributed, is_worker
from pytest_mlab.plugin.worker import Worker
from pytest_mlab.store.rundir import RunDir


def start(session: pytest.Session, options: MlabOptions) -> None:
    """Begin a session with trials: called on every process once, before anything is collected."""
    config = session.config
    gate = GatePolicy.resolve(options.gate, options.fail_under).mode
    if is_worker(config):
        brief = Brief.from_wire(config.workerinput["mlab"])  # type: ignore[attr-defined]  # xdist's
        plan, passed_over, left_out = RunDir.open(brief.run_dir).plan, "", {}
    else:
        controller = Controller(session, options)
        config.pluginmanager.register(controller, "mlab-controller")
        brief, planned = controller.brief, controller.planned
        plan, passed_over, left_out = planned.plan, planned.passed_over, dict(planned.left_out)
        if options.plan:
            from pytest_mlab.plugin.plan_only import PlanOnly

            config.pluginmanager.register(PlanOnly(controller), "mlab-plan")
        if is_distributed(config):
            config.pluginmanager.register(Distribution(controller), "mlab-distribution")
    collect.register_modalities(config, [task.modality for task in brief.tasks.values()])
    suite = suite_name(options.suite)
    run = Run(plan, brief, suite, collect.point_at_suite(config, suite), passed_over, left_out)
    config.stash[RUN] = run
    if not is_distributed(config):
        config.stash[WORKER] = worker = Worker(run, options, gate)
        config.pluginmanager.register(worker, "mlab-worker")
