"""Small tasks whose data can be prepared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_mlab.core.task import Source, Task, Variant
from pytest_mlab.suites.loader import load_task
from tests.suites.folders import toy_task


def task_with(
    folder: Path, *sources: Source, data_py: str | None = None, variant: str = "mini"
) -> Task:
    """The toy task below ``folder``, with these sources for ``variant`` (its own embedded one
    without any)."""
    place = folder / "toy"
    if not place.is_dir():
        toy_task(folder)
    if data_py is not None:
        (place / "data.py").write_text(data_py, encoding="utf-8")
    task = load_task(place, "lab")
    if sources:
        task = replace(task, variants={**task.variants, variant: Variant(variant, sources)})
    return task


COPY_ALL = """\
import shutil


def prepare(raw, public, answers, variant):
    shutil.copytree(raw, public, dirs_exist_ok=True)
    (answers / "answer.txt").write_text(variant)
"""
