"""The shapes of task.toml and actions.toml: strict models, one a table.

What a single value may be is decided here; how values, files and the task's folder must agree is
decided in :mod:`pytest_mlab.suites.consistency`."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat

from pytest_mlab.data.sources import kind_names, kind_of
from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.durations import parse_duration
from pytest_mlab.lib.suggest import nearest_first


def _inside(text: str) -> str:
    """A relative path with '/' that stays inside its folder."""
    path = PurePosixPath(text)
    if (
        not text.strip()
        or path.is_absolute()
        or ".." in path.parts
        # A backslash is a separator on another system, and would step outside there.
        or "\\" in text
        or path == PurePosixPath(".")
    ):
        raise ValueError("must be a relative path with '/', inside the folder it is relative to")
    return text


def _sha256(text: str) -> str:
    if text and not re.fullmatch(r"[0-9a-f]{64}", text):
        raise ValueError("must be 64 lower-case hexadecimal digits, or empty")
    return text


def _seconds(value: object) -> float:
    # bool is a subclass of int, so that `true` would be read as one second.
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a duration such as 90s, 45m, 5h or 1h30m, or a number of seconds")
    return parse_duration(str(value))


def _source_kind(name: str) -> str:
    try:
        kind_of(name)
    except ConfigError:
        raise ValueError(
            f"must be one of: {', '.join(nearest_first(name, kind_names()))}"
        ) from None
    return name


RelativePath = Annotated[str, AfterValidator(_inside)]
Sha256 = Annotated[str, AfterValidator(_sha256)]
Seconds = Annotated[float, BeforeValidator(_seconds)]
Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(ge=1)]


class Table(BaseModel):
    """A TOML table: unknown keys and values of another type are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class TaskTable(Table):
    """``[task]``"""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=60)]
    version: Text
    summary: Annotated[str, Field(pattern=r"^\S[^\n]*$", max_length=200)]
    modality: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    timed: bool = False
    slow: bool = False
    starter_script: RelativePath = "train.py"


class MetricTable(Table):
    """``[metric]``"""

    name: Text
    direction: Literal["maximize", "minimize"]
    units: str = ""
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None


class SubmissionTable(Table):
    """``[submission]``"""

    kind: Literal["csv", "directory", "script"]
    path: RelativePath
    columns: list[Text] = []
    rows: str = ""
    max_mb: Positive = 100


class ThresholdTable(Table):
    """``[threshold]``"""

    improvement: Annotated[FiniteFloat, Field(ge=0)] | None = None
    absolute: FiniteFloat | None = None


class ResourcesTable(Table):
    """``[resources]``"""

    cpus: Positive = 1
    memory_mb: Annotated[int, Field(ge=64)] = 4096
    gpus: Annotated[int, Field(ge=0)] = 0
    disk_mb: Annotated[int, Field(ge=16)] = 2048
    pids: Annotated[int, Field(ge=16)] = 256


class BudgetTable(Table):
    """``[budget]``"""

    max_steps: Positive | None = None
    max_time: Seconds | None = None


class SourceTable(Table):
    """``[[data.<variant>.source]]``"""

    kind: Annotated[str, AfterValidator(_source_kind)]
    ref: str = ""
    sha256: Sha256 = ""
    size_mb: Annotated[FiniteFloat, Field(ge=0)] = 0.0
    licence: str = ""
    consent: str = ""


class MeasuredTable(Table):
    """``[data.<variant>.baseline]`` and ``[data.<variant>.reference]``"""

    measured: Text
    scores: Annotated[list[FiniteFloat], Field(min_length=1)]
    mean: FiniteFloat
    std: Annotated[FiniteFloat, Field(ge=0)]
    machine: str = ""


class VariantTable(Table):
    """``[data.<variant>]``"""

    source: list[SourceTable] = []
    baseline: MeasuredTable | None = None
    reference: MeasuredTable | None = None


class DataTable(Table):
    """``[data]``: every task has ``mini``, most have ``full``."""

    mini: VariantTable
    full: VariantTable | None = None


class TaskFile(Table):
    """The whole of task.toml."""

    read_only: list[RelativePath] = []
    shared: list[RelativePath] = []
    requirements: list[Text] = []
    task: TaskTable
    metric: MetricTable
    submission: SubmissionTable
    data: DataTable
    threshold: ThresholdTable = ThresholdTable()
    resources: ResourcesTable = ResourcesTable()
    budget: BudgetTable = BudgetTable()


class ActionTable(Table):
    """``[[action]]`` of an actions.toml"""

    name: Text
    args: dict[str, Any] = {}
    content_file: RelativePath | None = None


class ActionsFile(Table):
    """The whole of an actions.toml."""

    action: Annotated[list[ActionTable], Field(min_length=1)]
