"""Run the checks of one task and collect their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pytest_mlab.core.task import Task
from pytest_mlab.errors import (
    DataUnavailable,
    MlabError,
    RequirementMissing,
    SandboxError,
    SuiteError,
)
from pytest_mlab.validation.bench import Bench, Settings, Subject
from pytest_mlab.validation.finding import Finding, Unavailable
from pytest_mlab.validation.registry import Check

# Faults of the machine or of an earlier check. They are "not_run": the task may be sound, but
# nothing proves it.
_NOT_THE_TASKS = (DataUnavailable, RequirementMissing, SandboxError, Unavailable)


@dataclass(frozen=True)
class Result:
    """One check of one task, with the seconds that it took."""

    check: str
    finding: Finding
    seconds: float


@dataclass(frozen=True)
class Report:
    """All results of one task; ``task`` is None when it does not load."""

    name: str
    suite: str
    variant: str
    sandbox: str
    task: Task | None
    results: tuple[Result, ...]

    @property
    def passed(self) -> bool:
        """True when no check failed and none could not be made."""
        return all(result.finding.status in ("ok", "not_applicable") for result in self.results)

    def facts(self, check: str) -> dict[str, Any]:
        """What a check measured; empty when it was not made."""
        return next(
            (dict(result.finding.facts) for result in self.results if result.check == check), {}
        )

    def as_json(self) -> dict[str, Any]:
        """As JSON values."""
        checks = [
            {"check": r.check, **asdict(r.finding), "seconds": round(r.seconds, 3)}
            for r in self.results
        ]
        return {
            "task": self.name,
            "suite": self.suite,
            "data": self.variant,
            "sandbox": self.sandbox,
            "passed": self.passed,
            "checks": checks,
        }


def validate(
    subject: Subject,
    settings: Settings,
    checks: Sequence[Check],
    *,
    on_result: Callable[[Result], None] = lambda _: None,
) -> Report:
    """Make the checks one after the other; ``on_result`` gets each result at once. Raises
    ConfigError."""
    results = []
    with Bench(subject, settings) as bench:
        for check in checks:
            begin = time.perf_counter()
            result = Result(check.name, _finding(check, bench), time.perf_counter() - begin)
            on_result(result)
            results.append(result)
        # Where no check needed a sandbox, `bench.sandbox` is not made: choosing one may fail.
        sandbox = bench.sandbox.name if "sandbox" in bench.__dict__ else settings.sandbox.name
    try:
        task = subject.load()
    except SuiteError:
        task = None
    return Report(subject.name, subject.suite, settings.variant, sandbox, task, tuple(results))


def _finding(check: Check, bench: Bench) -> Finding:
    try:
        return check.run(bench)
    except _NOT_THE_TASKS as error:
        return Finding("not_run", str(error))
    except MlabError as error:
        return Finding("fail", str(error))
