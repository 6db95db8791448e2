"""Verdicts as reports of pytest: tests that are not items, for each task and each suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_mlab.core.gate import Status
from pytest_mlab.core.wire import Builtin
from pytest_mlab.reporting.figures import RunFigures
from pytest_mlab.reporting.junit import verdict_properties
from pytest_mlab.reporting.table import WIDTH
from pytest_mlab.reporting.text import plural, wrapped

VERDICTS = "mlab"
"""The first part of a verdict's node id; in JUnit it is the class name of all verdicts."""


def verdict_reports(figures: RunFigures, *, with_properties: bool) -> list[pytest.TestReport]:
    """The reports of all verdicts, tasks first."""
    found: list[pytest.TestReport] = []
    for verdict in figures.gate.verdicts:
        properties = verdict_properties(figures, verdict) if with_properties else []
        found += _reports(verdict.name, verdict.status, verdict.explanation, properties)
    return found


def nothing_ran(sentence: str) -> list[pytest.TestReport]:
    """A failure for a session that would be green only because nothing ran."""
    return _reports("nothing-ran", "failed", sentence, [])


def stopped(reasons: Mapping[str, int], resume: str) -> list[pytest.TestReport]:
    """One failure for a run that started no further trials; ``resume`` is the command that runs the
    rest."""
    lines: list[str] = []
    for reason, trials in reasons.items():
        lines += wrapped(f"{plural(trials, 'trial')} {reason}", WIDTH, rest="    ")
    return _reports("stopped", "failed", "\n".join([*lines, f"the rest: {resume}"]), [])


def _reports(
    name: str, status: Status, explanation: str, properties: Sequence[tuple[str, Builtin]]
) -> list[pytest.TestReport]:
    """Two phases, because JUnit takes properties from the teardown."""
    # A skip is told in the form in which pytest's own reporters read it.
    told: dict[Status, Any] = {
        "passed": None,
        "failed": explanation,
        "skipped": (VERDICTS, None, f"Skipped: {explanation}"),
    }
    return [
        pytest.TestReport(
            nodeid=f"{VERDICTS}::{name}",
            location=(VERDICTS, None, name),
            keywords={},
            when=when,
            outcome=status if when == "call" else "passed",
            longrepr=told[status] if when == "call" else None,
            user_properties=list(properties),
        )
        for when in ("call", "teardown")
    ]
