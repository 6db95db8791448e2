"""Checks across the parts of a task: task.toml, its files, its description, its measured scores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev

from pytest_mlab.core.task import Source
from pytest_mlab.data.sources import kind_of
from pytest_mlab.suites.problems import Problem
from pytest_mlab.suites.schema import MeasuredTable, MetricTable, TaskFile, VariantTable

NEEDED_FILES = ("description.md", "data.py", "evaluator.py", "reference/actions.toml")
DIRECTION_WORDS = {"maximize": "higher is better", "minimize": "lower is better"}

# Recorded scores are rounded by hand or by a printer; more than this apart is a mistake.
_TOLERANCE = 1e-3


def problems_of(content: TaskFile, folder: Path) -> Iterator[Problem]:
    """Everything that is wrong with a task whose task.toml has the right shape."""
    yield from _names(content, folder)
    yield from _files(content, folder)
    yield from _description(content, folder)
    yield from _values(content)
    for name, variant in (("mini", content.data.mini), ("full", content.data.full)):
        if variant is not None:
            yield from _variant(name, variant, content, folder)


def _names(content: TaskFile, folder: Path) -> Iterator[Problem]:
    if content.task.name != folder.name:
        yield Problem(
            ("task", "name"),
            f'"{content.task.name}" found, must be the folder\'s name "{folder.name}"',
        )


def _files(content: TaskFile, folder: Path) -> Iterator[Problem]:
    for name in NEEDED_FILES:
        if not (folder / name).is_file():
            yield Problem((), f"the task has no file {name}")
    if not (folder / "env").is_dir():
        yield Problem((), "the task has no folder env/")
    elif not (folder / "env" / content.task.starter_script).is_file():
        yield Problem(
            ("task", "starter_script"), f"there is no file env/{content.task.starter_script}"
        )
    if (folder / "baseline").is_dir() and not (folder / "baseline" / "actions.toml").is_file():
        yield Problem((), "the task has a folder baseline/ without actions.toml")
    if (folder / "trivial").is_dir() and not (folder / "trivial" / "actions.toml").is_file():
        yield Problem((), "the task has a folder trivial/ without actions.toml")


def _description(content: TaskFile, folder: Path) -> Iterator[Problem]:
    file = folder / "description.md"
    if not file.is_file():
        return
    # Words are looked for on one line, since a phrase may be broken over two.
    text = " ".join(file.read_text(encoding="utf-8").lower().split())
    if not text:
        yield Problem((), "description.md is empty")
        return
    if content.metric.name.lower() not in text:
        yield Problem(("metric", "name"), f'description.md does not say "{content.metric.name}"')
    words = DIRECTION_WORDS[content.metric.direction]
    if words not in text:
        yield Problem(
            ("metric", "direction"),
            f'"{content.metric.direction}": description.md must say "{words}"',
        )


def _values(content: TaskFile) -> Iterator[Problem]:
    metric, submission, threshold = content.metric, content.submission, content.threshold
    if metric.low is not None and metric.high is not None and metric.low >= metric.high:
        yield Problem(("metric", "high"), f"{metric.high} found, must be above low = {metric.low}")
    if submission.columns and submission.kind != "csv":
        yield Problem(
            ("submission", "columns"), f'only a csv has columns, kind is "{submission.kind}"'
        )
    if len(set(submission.columns)) != len(submission.columns):
        yield Problem(("submission", "columns"), f"a column is named twice in {submission.columns}")
    if threshold.improvement is not None and threshold.absolute is not None:
        yield Problem(("threshold", "absolute"), "give improvement or absolute, not both")
    if content.requirements:
        yield from _requirements(content.requirements)


def _requirements(lines: list[str]) -> Iterator[Problem]:
    for index, line in enumerate(lines):
        if reason := _requirement_fault(line):
            yield Problem(
                ("requirements", index),
                f'"{line}" is not a requirement such as "numpy>=1.26": {reason}',
            )


def _requirement_fault(line: str) -> str:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(line)
    except InvalidRequirement as error:
        return str(error).splitlines()[0]
    return ""


def _variant(
    name: str, variant: VariantTable, content: TaskFile, folder: Path
) -> Iterator[Problem]:
    for index, source in enumerate(variant.source):
        found = Source(**source.model_dump())
        for key, message in kind_of(source.kind).problems(found, folder):
            yield Problem(("data", name, "source", index, key), message)
    if name == "full" and not variant.source:
        yield Problem(("data", "full"), "needs at least one [[data.full.source]]")
    for kind, measured in (("baseline", variant.baseline), ("reference", variant.reference)):
        if measured is not None:
            for key, message in _measured(measured, content.metric):
                yield Problem(("data", name, kind, key), message)
    if variant.baseline is not None:
        for key, message in _baseline(variant.baseline, content, folder):
            yield Problem(("data", name, "baseline", key), message)


def _measured(measured: MeasuredTable, metric: MetricTable) -> Iterator[tuple[str, str]]:
    scores = measured.scores
    mean, std = fmean(scores), stdev(scores) if len(scores) > 1 else 0.0
    # Relative to the larger of the two, so that scores around 0 do not need an exact mean.
    scale = max(abs(mean), std)
    if abs(measured.mean - mean) > _TOLERANCE * scale:
        yield "mean", f"{measured.mean} found, the mean of the scores is {mean:.6g}"
    if abs(measured.std - std) > _TOLERANCE * scale and not math.isclose(
        measured.std, std, rel_tol=0.01
    ):
        yield (
            "std",
            f"{measured.std} found, the standard deviation (ddof=1) of the scores is {std:.6g}",
        )
    low = -math.inf if metric.low is None else metric.low
    high = math.inf if metric.high is None else metric.high
    for score in scores:
        if not low <= score <= high:
            yield "scores", f"{score} lies outside the metric's range [{low}, {high}]"
            break


def _baseline(
    baseline: MeasuredTable, content: TaskFile, folder: Path
) -> Iterator[tuple[str, str]]:
    for score in (*baseline.scores, baseline.mean):
        # MLAgentBench has such numbers in place of scores; an improvement on them means nothing.
        # A score of exactly 0 may be a real one.
        if abs(score) >= 1e9 or 0 < abs(score) <= 1e-9:
            yield ("scores", f"{score:g} is a placeholder, not a measured score; run mlab measure")
            return
    if baseline.mean <= 0 and content.threshold.absolute is None:
        yield (
            "mean",
            f"{baseline.mean} found: a share of 0 or less means nothing; set threshold.absolute",
        )
    if baseline.measured == "filled-starter" and not (folder / "baseline").is_dir():
        yield "measured", '"filled-starter" found, but the task has no folder baseline/'
    if baseline.measured == "starter" and (folder / "baseline").is_dir():
        yield (
            "measured",
            '"starter" found, but the task has a folder baseline/: "filled-starter" is what is run',
        )
