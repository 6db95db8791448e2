"""Write all reports of a run into its directory."""

from __future__ import annotations

from collections.abc import Callable

from pytest_mlab.lib.atomic import write_text
from pytest_mlab.reporting.figures import RunFigures
from pytest_mlab.reporting.markdown import markdown
from pytest_mlab.reporting.summary import summary_text

REPORTS: dict[str, Callable[[RunFigures], str]] = {
    "summary.json": summary_text,
    "report.md": markdown,
}


def write_reports(figures: RunFigures, shown: str = "") -> list[str]:
    """Write every report, each of them whole or not at all; the lines that say so.

    ``shown`` is how the run directory is called in those lines (default: its path). Raises OSError.
    """
    folder = shown or str(figures.run.path)
    lines = []
    for name, render in REPORTS.items():
        write_text(figures.run.path / name, render(figures))
        lines.append(f"wrote {folder}/{name}")
    return lines
