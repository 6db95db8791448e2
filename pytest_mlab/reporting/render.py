"""Write all reports of a run into its directory.

A report format is a function from a run's figures to a text, registered under the name of its file:
here, or by an installed package as an entry point of the group ``pytest_mlab.reports``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points

from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.atomic import write_text
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.reporting.figures import RunFigures
from pytest_mlab.reporting.markdown import markdown
from pytest_mlab.reporting.summary import summary_text
from pytest_mlab.store.rundir import IDENTITY, PLAN
from pytest_mlab.store.shared import SHARED

GROUP = "pytest_mlab.reports"

Render = Callable[[RunFigures], str]

BUILT_IN: Mapping[str, Render] = {"summary.json": summary_text, "report.md": markdown}

_TAKEN = {*BUILT_IN, PLAN, IDENTITY, SHARED, "junit.xml"}
"""Files of a run directory that no installed format may replace."""


def write_reports(figures: RunFigures, shown: str = "") -> list[str]:
    """Write every report, each of them whole or not at all; the lines that say so.

    ``shown`` is the run directory's name in those lines (default: its path). An installed format
    that fails costs a line, and none of the other reports. Raises OSError when a file cannot be
    written.
    """
    folder = shown or str(figures.run.path)
    lines = []
    for name, render in BUILT_IN.items():
        _write(figures, name, render(figures))
        lines.append(f"wrote {folder}/{name}")
    installed = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return lines + [_write_installed(figures, point, folder) for point in installed]


def _write_installed(figures: RunFigures, point: EntryPoint, folder: str) -> str:
    try:
        text = _rendered(point, figures)
    except Exception as error:  # noqa: BLE001 - another package's code may raise anything
        why = " ".join(f"{type(error).__name__}: {error}".split())
        return f"no report {point.name} ({point.value} of group {GROUP}): {why}"
    _write(figures, point.name, text)
    return f"wrote {folder}/{point.name}"


def _rendered(point: EntryPoint, figures: RunFigures) -> str:
    # The name comes from another package: a path could lead out of the run directory, and a leading
    # dot is that of files that are being written.
    if point.name in _TAKEN or "/" in point.name or point.name.startswith("."):
        raise ConfigError("an entry point's name is that of a new file in the run directory")
    text = point.load()(figures)
    if not isinstance(text, str):
        raise ConfigError(f"a format gives a str, this one gave {type(text).__name__}")
    return text


def _write(figures: RunFigures, name: str, text: str) -> None:
    # Over the whole text, so that formats of other packages leak no key either.
    write_text(figures.run.path / name, Redactor(os.environ)(text))
