"""Where raw data come from: one module a kind of source."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points

from pytest_mlab.core.task import Task
from pytest_mlab.data.sources.base import SourceKind
from pytest_mlab.data.sources.coco_images import CocoImages
from pytest_mlab.data.sources.embedded import Embedded
from pytest_mlab.data.sources.gcs import Gcs
from pytest_mlab.data.sources.generator import Generator
from pytest_mlab.data.sources.http import Http
from pytest_mlab.data.sources.huggingface import HuggingFace
from pytest_mlab.data.sources.kaggle import Kaggle
from pytest_mlab.data.sources.mlagentbench import MLAgentBench
from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.suggest import nearest_first

GROUP = "pytest_mlab.data_sources"
"""Entry points of this group name subclasses of SourceKind; the entry point's name is the kind."""

BUILT_IN: tuple[SourceKind, ...] = (
    CocoImages(),
    Embedded(),
    Gcs(),
    Generator(),
    Http(),
    HuggingFace(),
    Kaggle(),
    MLAgentBench(),
)


def kind_names() -> list[str]:
    """All kinds, sorted."""
    return sorted({kind.name for kind in BUILT_IN} | {p.name for p in entry_points(group=GROUP)})


def kind_of(name: str) -> SourceKind:
    """The kind called ``name``. Raises ConfigError for an unknown one, with those that there
    are."""
    for kind in BUILT_IN:
        if kind.name == name:
            return kind
    # Installed packages are looked through only for a name that is not built in: it takes
    # milliseconds, and a suite has dozens of sources.
    for point in entry_points(group=GROUP):
        if point.name == name:
            made = point.load()()
            if not isinstance(made, SourceKind):
                raise ConfigError(
                    f"entry point {name!r} of group {GROUP} names {point.value!r}, which is not a"
                    " subclass of pytest_mlab.data.sources.base.SourceKind"
                )
            return made
    known = ", ".join(nearest_first(name, kind_names()))
    raise ConfigError(f"no kind of data source is called {name!r}; there are: {known}")


def rules_of(task: Task, variant: str) -> dict[str, str]:
    """Rules that a user must accept for a variant's data: addresses by the word that accepts
    them."""
    return {
        kind_of(source.kind).rules_word(source, task): source.consent
        for source in task.variants[variant].sources
        if source.consent
    }


def source_hosts(task: Task) -> Iterator[str]:
    """The servers that the raw data of a task come from."""
    from urllib.parse import urlsplit

    for variant in task.variants.values():
        for source in variant.sources:
            if host := kind_of(source.kind).host or urlsplit(source.ref).hostname:
                yield host
