"""Where raw data come from: one module a kind of source, each with a function ``fetch``."""

from __future__ import annotations

from pathlib import Path

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.sources import (
    coco_images,
    embedded,
    gcs,
    generator,
    http,
    huggingface,
    kaggle,
    mlagentbench,
)
from pytest_mlab.data.sources.base import Fetch, Options

_KINDS: dict[str, Fetch] = {
    "coco-images": coco_images.fetch,
    "embedded": embedded.fetch,
    "gcs": gcs.fetch,
    "generator": generator.fetch,
    "http": http.fetch,
    "huggingface": huggingface.fetch,
    "kaggle": kaggle.fetch,
    "mlagentbench": mlagentbench.fetch,
}


def fetch(source: Source, task: Task, into: Path, options: Options) -> None:
    """Put the raw files of ``source`` into the folder ``into``. Raises DataUnavailable or
    SuiteError."""
    _KINDS[source.kind](source, task, into, options)
