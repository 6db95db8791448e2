"""Check: task.toml, actions and description are well-formed and agree with one another."""

from __future__ import annotations

from pytest_mlab.core.task_commands import command, measure_command
from pytest_mlab.errors import SuiteError
from pytest_mlab.suites.foreign.reader import origin_of
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.finding import Finding, fail, ok


class Schema:
    """The loader's own checks, as findings."""

    name = "schema"
    about = "the task's files are well-formed and agree with one another"

    def run(self, bench: Bench) -> Finding:
        """Load the task."""
        try:
            task = bench.subject.load()
        except SuiteError as error:
            return fail(str(error))
        name = bench.settings.variant
        variant = task.variants.get(name)
        if variant is None:
            return fail(
                f"the task has no data variant {name}, only {', '.join(sorted(task.variants))}"
            )
        measured = {"baseline": variant.baseline, "reference": variant.reference}
        if origin := origin_of(task):
            del measured["reference"]  # which MLAgentBench's format does not have
        missing = [word for word, scores in measured.items() if scores is None]
        if missing and origin:
            measure = command("measure", task)
            return fail(
                f"no baseline is known: {measure}, then baseline = [...] in {origin / 'mlab.toml'}"
            )
        if missing:
            fix = measure_command(task, name, what=missing[0])
            return fail(f"no {' and no '.join(missing)} was measured on data {name}: {fix}")
        return ok(
            f"version {task.version}, {task.modality}, {task.metric.name},"
            f" {task.metric.direction.value}"
        )
