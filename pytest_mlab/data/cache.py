"""Where prepared data and downloads are kept.

<cache>/data/<task>/<variant>-<key>/     one prepared variant: public/, answers/, manifest.json
<cache>/data/<task>/.<variant>.lock      held while a process prepares it
<cache>/data/<task>/.tmp-<variant>-…/    work in progress; becomes the former by one rename
<cache>/downloads/                       whole files by digest, and `.part` files to be resumed
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_mlab.core.task import Task
from pytest_mlab.data.sources import kind_of
from pytest_mlab.lib.digests import digest_of, sha256_of
from pytest_mlab.lib.locate import CACHE_VARIABLE, default_cache_dir

__all__ = ["CACHE_VARIABLE", "Slot", "default_cache_dir"]


@dataclass(frozen=True)
class Slot:
    """The paths of one variant of one task; ``key`` is the digest of what its data are made of."""

    cache: Path
    task: str
    variant: str
    key: str

    @property
    def home(self) -> Path:
        """The folder of all the task's variants."""
        return self.cache / "data" / self.task

    @property
    def folder(self) -> Path:
        """Where the prepared data are."""
        return self.home / f"{self.variant}-{self.key[:16]}"

    @property
    def manifest(self) -> Path:
        """What the prepared data are."""
        return self.folder / "manifest.json"

    @property
    def lock(self) -> Path:
        """The lock file of the variant, all keys together."""
        return self.home / f".{self.variant}.lock"

    @property
    def scratch_prefix(self) -> str:
        """How names of folders begin in which this variant is prepared."""
        return f".tmp-{self.variant}-"


def data_key(task: Task, variant: str) -> str:
    """The digest of all that decides what the data of a variant are: data.py, sources, embedded
    files, task version.

    The rest of the task's folder does not enter, so that editing a description prepares nothing
    again."""
    parts = {
        "task": task.name,
        "variant": variant,
        "version": task.version,
        "code": sha256_of(task.folder / "data.py"),
    }
    for number, source in enumerate(task.variants[variant].sources):
        # Size, licence and consent stay out: to correct them does not change the data.
        parts[f"source {number}"] = f"{source.kind} {source.ref} {source.sha256}"
        if content := kind_of(source.kind).content_digest(source, task.folder):
            parts[f"content {number}"] = content
    return digest_of(parts)
