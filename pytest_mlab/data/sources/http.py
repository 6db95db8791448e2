"""Files behind an address: streamed, resumed where they were cut, checked by sha256, archives
unpacked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.sources.archives import UnsafeArchive, is_archive, unpack
from pytest_mlab.data.sources.base import (
    Options,
    SourceKind,
    announce,
    place_file,
    require_packages,
    size_text,
    unavailable,
)
from pytest_mlab.data.sources.download import Download, Failed
from pytest_mlab.errors import SuiteError
from pytest_mlab.lib.digests import sha256_of


class Http(SourceKind):
    """``ref``: the address of one file."""

    name = "http"

    def problems(self, source: Source, folder: Path) -> Iterator[tuple[str, str]]:
        yield from super().problems(source, folder)
        if not source.ref.startswith(("https://", "http://")):
            yield (
                "ref",
                f'"{source.ref}" found, must be an address that begins with https:// or http://',
            )
        if not source.sha256:
            yield "sha256", "a source of kind http needs the sha256 of its file"

    def fetch(self, source: Source, task: Task, into: Path, options: Options) -> None:
        """Put the file into ``into``, or the members of an archive. Raises DataUnavailable.

        Whole files and the first part of an interrupted download are kept among the downloads."""
        require_packages(task, options, "httpx", "tqdm")
        self.require_consent(source, task, options)
        name = PurePosixPath(unquote(urlsplit(source.ref).path)).name or "download"
        options.downloads.mkdir(parents=True, exist_ok=True)
        # Named by the digest, so that tasks with the same file share it and equal names do not
        # collide.
        whole = options.downloads / f"{source.sha256[:16]}-{name}"

        from filelock import FileLock

        # Variants and tasks have locks of their own, but may share a download and its `.part`.
        with FileLock(f"{whole}.lock"):
            if not whole.is_file() or sha256_of(whole) != source.sha256:
                announce(f"downloading {source.ref} ({size_text(source)})", options)
                try:
                    Download(
                        source.ref, whole, source.sha256, name, progress=options.progress
                    ).run()
                except Failed as failure:
                    raise unavailable(str(failure), task, options) from None
        if is_archive(name):
            try:
                unpack(whole, into)
            except UnsafeArchive as error:
                raise SuiteError(f"{source.ref} cannot be unpacked: {error}") from None
        else:
            place_file(whole, into / name)
