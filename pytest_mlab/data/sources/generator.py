"""Data that data.py makes by itself: there is nothing to fetch."""

from __future__ import annotations

from pathlib import Path

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.sources.base import Options


def fetch(source: Source, task: Task, into: Path, options: Options) -> None:
    """Leave ``into`` as it is."""
