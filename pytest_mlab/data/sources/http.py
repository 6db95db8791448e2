"""Files behind an address: streamed, resumed where they were cut, checked by sha256, archives
unpacked."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.sources.archives import UnsafeArchive, is_archive, unpack
from pytest_mlab.data.sources.base import (
    Options,
    announce,
    place_file,
    require_consent,
    require_packages,
    size_text,
    unavailable,
)
from pytest_mlab.data.sources.download import Download, Failed
from pytest_mlab.errors import SuiteError
from pytest_mlab.lib.digests import sha256_of


def fetch(source: Source, task: Task, into: Path, options: Options) -> None:
    """Put the file into ``into``, or what is in it when it is an archive.

    The whole file is kept among the downloads, and so is the part of one that was cut off. Raises
    DataUnavailable."""
    require_packages(task, options, "httpx", "tqdm")
    require_consent(source, task, options)
    name = PurePosixPath(unquote(urlsplit(source.ref).path)).name or "download"
    options.downloads.mkdir(parents=True, exist_ok=True)
    whole = options.downloads / f"{source.sha256[:16]}-{name}"

    from filelock import FileLock

    with FileLock(f"{whole}.lock"):
        if not whole.is_file() or sha256_of(whole) != source.sha256:
            announce(f"downloading {source.ref} ({size_text(source)})", options)
            try:
                Download(source.ref, whole, source.sha256, name, progress=options.progress).run()
            except Failed as failure:
                raise unavailable(str(failure), task, options) from None
    if is_archive(name):
        try:
            unpack(whole, into)
        except UnsafeArchive as error:
            raise SuiteError(f"{source.ref} cannot be unpacked: {error}") from None
    else:
        place_file(whole, into / name)
