"""From options to a plan, and from a plan to its run directory.

On the controller only: what two workers could see differently (what exists, which sandbox works,
which key is set) is decided here, once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pytest_mlab.core.plan import Plan
from pytest_mlab.core.trial import TrialId
from pytest_mlab.planning.fresh import fresh_plan
from pytest_mlab.planning.options import MlabOptions, given
from pytest_mlab.planning.planned import Planned, narrowed
from pytest_mlab.planning.resume import RunLimits, resume_plan
from pytest_mlab.store.rundir import PLAN, RunDir


def make_plan(options: MlabOptions, rootdir: Path, *, probe: bool = True) -> Planned:
    """The plan that ``options`` ask for, seen from ``rootdir``. Without ``probe`` it is not checked
    whether keys, packages and the like are there, which takes seconds.

    Raises ConfigError for names and combinations that do not exist, SuiteError for a broken task,
    AgentLoadError for a broken agent, StoreError for a damaged run to resume."""
    if not options.resume:
        return fresh_plan(options, rootdir, probe=probe)
    asked = None
    if options.model or options.agent:
        # Not probed: this plan is only compared. What is missing is asked for the stored one.
        asked = fresh_plan(options, rootdir, probe=False).plan
    planned = resume_plan(options.resume, rootdir, asked, options.retry)
    limits = RunLimits(options.run_max_cost, options.rpm, options.tpm, options.models)
    return replace(planned, plan=limits.on(planned.plan))


def freeze(planned: Planned, options: MlabOptions, rootdir: Path) -> RunDir:
    """Write the plan and the run's identity; a resumed run keeps what it has, but for the limits of
    the whole run."""
    if planned.resumed:
        run = RunDir.open(planned.path)
        # Only the limits of the run can differ here: resume_plan() has refused everything else.
        if run.plan.settings == planned.plan.settings:
            return run
        return _rewrite(run, planned.plan)
    from pytest_mlab.lib import identity

    plan = planned.plan
    described = {"run_id": plan.run_id, "options": given(options), "rootdir": str(rootdir)}
    return RunDir.create(planned.path, plan, described | identity.collect(rootdir))


def narrow(run: RunDir, chosen: Iterable[TrialId]) -> RunDir:
    """The run with only the ``chosen`` trials planned: those that ``-k`` and ``-m`` left out are
    not ``not_run``."""
    plan = narrowed(run.plan, chosen)
    return run if plan.trials == run.plan.trials else _rewrite(run, plan)


def _rewrite(run: RunDir, plan: Plan) -> RunDir:
    from pytest_mlab.lib.atomic import write_text
    from pytest_mlab.store import serial

    # Durable, and in one step: without its plan a run cannot be resumed, and workers read the file.
    write_text(run.path / PLAN, serial.to_json(plan), durable=True)
    return RunDir(run.path, plan)


def read_selection(file: Path, plan: Plan) -> dict[str, TrialId]:
    """The selection that a worker wrote: trials by node id. Empty when it wrote nothing."""
    try:
        names = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    by_name = {trial.name: trial for trial in plan.trials}
    return {nodeid: by_name[name] for nodeid, name in names.items() if name in by_name}
