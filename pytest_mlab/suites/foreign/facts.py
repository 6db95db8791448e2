"""What MLAgentBench's format leaves out: metric, direction, baseline.

They come from mlab.toml beside the task, or from a table for the published tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, ValidationError

from pytest_mlab.core.task import Baseline
from pytest_mlab.errors import SuiteError
from pytest_mlab.suites.problems import from_validation, render
from pytest_mlab.suites.schema import RelativePath, ResourcesTable, Table, Text
from pytest_mlab.suites.toml import parse

FILE = "mlab.toml"
"""Beside env/; optional."""

LINES = """\
    metric = "accuracy"          # what scripts/eval.py returns
    direction = "maximize"       # or "minimize"
    baseline = [0.41, 0.42]      # scores of the starter code, measured
    modality = "tabular"         # becomes a pytest marker
    starter_script = "train.py"  # what the baseline runs, below env/"""

OTHER = "other"
"""The modality of a task that does not say its own."""

Direction = Literal["maximize", "minimize"]


@dataclass(frozen=True)
class Facts:
    """What is known of a task beside its files. ``threshold`` is an absolute score that must be
    beaten."""

    metric: str
    direction: Direction
    modality: str
    starter_script: str
    baseline: Baseline | None
    threshold: float | None
    requirements: tuple[str, ...]
    resources: Mapping[str, int]


class ForeignResources(ResourcesTable):
    """``[resources]`` of mlab.toml; the defaults are roomier than elsewhere: the format names no
    limits."""

    memory_mb: Annotated[int, Field(ge=64)] = 8192
    disk_mb: Annotated[int, Field(ge=16)] = 8192
    pids: Annotated[int, Field(ge=16)] = 512


class ForeignFile(Table):
    """The whole of mlab.toml."""

    metric: Text | None = None
    direction: Direction | None = None
    baseline: FiniteFloat | Annotated[list[FiniteFloat], Field(min_length=1)] | None = None
    modality: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] | None = None
    starter_script: RelativePath | None = None
    threshold: FiniteFloat | None = None
    requirements: list[Text] | None = None
    resources: ForeignResources = ForeignResources()


@dataclass(frozen=True)
class Known:
    """What MLAgentBench's authors say of one of their tasks; ``baseline`` only where it is a real
    one."""

    metric: str
    direction: Direction
    modality: str
    baseline: float | None = None
    remark: str = ""


_CHANCE = "as published: a constant answer"
KNOWN: Mapping[str, Known] = {
    "amp-parkinsons-disease-progression-prediction": Known("SMAPE+1", "minimize", "timeseries"),
    "babylm": Known("perplexity", "minimize", "text"),
    "cifar10": Known("accuracy", "maximize", "image"),
    "clrs": Known("score on larger graphs", "maximize", "graph"),
    "fathomnet": Known("MAP@20", "maximize", "image"),
    "feedback": Known("MCRMSE", "minimize", "text"),
    "house-price": Known("mean absolute error", "minimize", "tabular"),
    "identify-contrails": Known("Dice coefficient", "maximize", "image"),
    "imdb": Known("accuracy", "maximize", "text", 0.5, _CHANCE),
    "llama-inference": Known("seconds per token", "minimize", "speed"),
    "ogbn-arxiv": Known("accuracy", "maximize", "graph", 0.3134, "as published: the starter code"),
    "spaceship-titanic": Known("accuracy", "maximize", "tabular", 0.5, _CHANCE),
    "vectorization": Known(
        "seconds", "minimize", "speed", 6.1742, "as published: the authors' machine, not this one"
    ),
}


def read_facts(folder: Path) -> Facts:
    """The facts of the task in ``folder``. Raises SuiteError that shows the missing lines of
    mlab.toml."""
    file = folder / FILE
    own = _read(file)
    known = KNOWN.get(folder.name.lower())
    metric = own.metric or (known.metric if known else "score")
    direction = own.direction or (known.direction if known else None)
    if direction is None:
        raise SuiteError(
            f"{folder}: MLAgentBench's format does not say whether a higher or a lower score is"
            f" better, and {folder.name!r} is not one of its own tasks; write these lines, with"
            f" your values, to {file}:\n{LINES}"
        )
    return Facts(
        metric=metric,
        direction=direction,
        modality=own.modality or (known.modality if known else OTHER),
        starter_script=own.starter_script or _starter_script(folder),
        baseline=_baseline(own, known, file),
        threshold=own.threshold,
        requirements=tuple(
            dict.fromkeys((*requirements_of(folder), *_checked(own.requirements or [], file)))
        ),
        resources=own.resources.model_dump(),
    )


def _read(file: Path) -> ForeignFile:
    if not file.is_file():
        return ForeignFile()
    try:
        text = file.read_text(encoding="utf-8")
        return ForeignFile.model_validate(parse(text))
    except UnicodeDecodeError as error:
        raise SuiteError(f"{file}: not UTF-8 text at byte {error.start}") from None
    except ValidationError as error:  # before ValueError, of which it is one
        raise SuiteError(render(from_validation(error, ForeignFile), file, text)) from None
    except ValueError as error:
        raise SuiteError(f"{file}:{error}") from None


def _checked(requirements: list[str], file: Path) -> list[str]:
    wrong = next((text for text in requirements if not _is_requirement(text)), None)
    if wrong is not None:
        raise SuiteError(
            f"{file}: requirements: {wrong!r} found, must be a requirement such as numpy<2.4"
        )
    return requirements


def _baseline(own: ForeignFile, known: Known | None, file: Path) -> Baseline | None:
    if own.baseline is None:
        if known is None or known.baseline is None:
            return None
        return Baseline("published", (known.baseline,), known.baseline, 0.0, known.remark)
    scores = tuple(own.baseline) if isinstance(own.baseline, list) else (own.baseline,)
    for score in scores:
        if is_placeholder(score):
            raise SuiteError(
                f"{file}: baseline: {score:g} found, a placeholder, not a measured score; "
                "run the starter code and write down what it scores (mlab measure)"
            )
    mean = fmean(scores)
    if mean <= 0 and own.threshold is None:
        raise SuiteError(
            f"{file}: baseline: {mean:g} found: a share of 0 or less means nothing; "
            "add threshold = <the score that must be beaten>"
        )
    return Baseline("starter", scores, mean, stdev(scores) if len(scores) > 1 else 0.0)


def is_placeholder(score: float) -> bool:
    """True for numbers such as 1e10 and 1e-10, which stand for "no score"."""
    return not math.isfinite(score) or abs(score) >= 1e9 or 0 < abs(score) <= 1e-9


def _starter_script(folder: Path) -> str:
    """train.py, else inference.py, else the only Python file of env/."""
    env = folder / "env"
    # The names that MLAgentBench's own tasks have.
    for name in ("train.py", "inference.py"):
        if (env / name).is_file():
            return name
    scripts = sorted(path.name for path in env.glob("*.py"))
    if len(scripts) == 1:
        return scripts[0]
    have = ", ".join(scripts) or "no Python file"
    raise SuiteError(
        f'{folder}: which file of env/ is the starter code ({have})? Add starter_script = "<name>"'
        f" to {folder / FILE}"
    )


def requirements_of(folder: Path) -> tuple[str, ...]:
    """The requirements among the lines of scripts/requirements.txt; pip's options, paths and
    addresses are left out."""
    file = folder / "scripts" / "requirements.txt"
    if not file.is_file():
        return ()
    lines = [
        # A `#` without a blank before it is part of an address (pip reads it so too).
        line.split(" #")[0].strip()
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
    ]
    return tuple(
        dict.fromkeys(
            line for line in lines if not line.startswith(("#", "-")) and _is_requirement(line)
        )
    )


def _is_requirement(text: str) -> bool:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True
