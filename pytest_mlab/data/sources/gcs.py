"""Objects of a public bucket of Google Cloud Storage: listed, then downloaded one after the other,
each kept."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.sources.base import (
    Options,
    SourceKind,
    announce,
    place_file,
    require_packages,
    unavailable,
)
from pytest_mlab.data.sources.download import Download, Failed, Unreached, ask
from pytest_mlab.errors import SuiteError

ENDPOINT = "https://storage.googleapis.com"
ENDPOINT_VARIABLE = "STORAGE_EMULATOR_HOST"
"""Where it is set, another server is asked, as Google's own clients do."""

_REF = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]/[^\s/]\S*")
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Object:
    """An object of a bucket; ``md5`` is hexadecimal, and '' for objects that the bucket has none
    of."""

    name: str
    size: int
    md5: str
    generation: str


class Gcs(SourceKind):
    """``ref``: ``<bucket>/<pattern of names>``."""

    name = "gcs"

    def problems(self, source: Source, folder: Path) -> Iterator[tuple[str, str]]:
        yield from super().problems(source, folder)
        if not _REF.fullmatch(source.ref):
            yield (
                "ref",
                f'"{source.ref}" found, must be "<bucket>/<pattern of names>" of Google Cloud'
                " Storage",
            )
        if source.sha256:
            yield "sha256", "a source of kind gcs has none: the bucket's list has checksums"

    def fetch(self, source: Source, task: Task, into: Path, options: Options) -> None:
        """Put the objects of the bucket that ``source.ref`` (``<bucket>/<pattern>``) names into
        ``into``, under their names without the folder that the pattern begins with.

        Whole objects are kept among the downloads, and the part of one that was cut off. Raises
        DataUnavailable, SuiteError when the bucket has no such objects."""
        require_packages(task, options, "httpx", "tqdm")
        self.require_consent(source, task, options)
        bucket, _, pattern = source.ref.partition("/")
        try:
            objects = list(listed(bucket, pattern))
        except (Failed, Unreached) as failure:
            raise unavailable(f"the list of {source.ref}: {failure}", task, options) from None
        if not objects:
            raise SuiteError(f"{task.name}: {source.ref}: the bucket has no such objects")
        store = options.downloads / "gcs" / bucket
        store.mkdir(parents=True, exist_ok=True)
        missing = [one for one in objects if not _is_whole(_kept(one, store), one)]
        if missing:
            size = sum(one.size for one in missing) / 1e6
            announce(
                f"downloading {len(missing)} of {len(objects)} objects of {source.ref} "
                f"({size:.6g} MB, licence: {source.licence})",
                options,
            )
        for one in missing:
            _download(bucket, one, store, task, options)
        # The x stands for the rest of a name, so that a prefix that ends in / keeps its whole
        # folder.
        folder = PurePosixPath(_prefix(pattern) + "x").parent
        for one in objects:
            place_file(_kept(one, store), into / PurePosixPath(one.name).relative_to(folder))


def listed(bucket: str, pattern: str) -> Iterator[Object]:
    """The objects whose names match, in the bucket's order. Raises Failed, Unreached."""
    token = ""
    while True:
        fields = "items(name,size,md5Hash,generation),nextPageToken"
        query = f"prefix={quote(_prefix(pattern), safe='')}&fields={fields}"
        page = ask(
            f"{_endpoint()}/storage/v1/b/{bucket}/o?{query}"
            + (f"&pageToken={quote(token)}" if token else "")
        )
        for item in page.get("items", []):
            # The server filters by prefix only. A name that ends in / is a console's mark of a
            # folder.
            if fnmatchcase(item["name"], pattern) and not item["name"].endswith("/"):
                yield _object(item)
        token = page.get("nextPageToken", "")
        if not token:
            return


def _object(item: dict[str, Any]) -> Object:
    # Object names may hold anything, and become paths below the raw files.
    if any(part in ("", ".", "..") for part in item["name"].split("/")):
        raise Failed(f"it names {item['name']!r}, which is not a safe path")
    md5 = base64.b64decode(item.get("md5Hash", "")).hex()
    return Object(item["name"], int(item["size"]), md5, item["generation"])


def _download(bucket: str, one: Object, store: Path, task: Task, options: Options) -> None:
    from filelock import FileLock

    whole = _kept(one, store)
    address = f"{_endpoint()}/{bucket}/{quote(one.name)}?generation={one.generation}"
    label = PurePosixPath(one.name).name
    with FileLock(f"{whole}.lock"):
        # Another process may have fetched it while this one waited for the lock.
        if _is_whole(whole, one):
            return
        try:
            Download(address, whole, one.md5, label, "md5", one.size, options.progress).run()
        except Failed as failure:
            raise unavailable(str(failure), task, options) from None


def _kept(one: Object, store: Path) -> Path:
    """Where a whole object lies: a generation of an object never changes."""
    return store / f"{one.generation}-{PurePosixPath(one.name).name}"


def _is_whole(file: Path, one: Object) -> bool:
    # The digest was checked before the download got this name; the size alone is cheap to look at.
    return file.is_file() and file.stat().st_size == one.size


def _prefix(pattern: str) -> str:
    return _WILD.split(pattern, maxsplit=1)[0]


def _endpoint() -> str:
    named = os.environ.get(ENDPOINT_VARIABLE, "")
    return ENDPOINT if not named else named if "://" in named else f"http://{named}"
