"""Where prepared data and downloads are kept.

<cache>/data/<task>/<variant>-<key>/     one prepared variant: public/, answers/, manifest.json
<cache>/data/<task>/.<variant>.lock      held by whoever prepares it
<cache>/data/<task>/.tmp-<variant>-…/    work in progress; becomes the former by one rename
<cache>/downloads/                       whole files by digest, and `.part` files to be resumed
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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
