"""Files behind an address: streamed, resumed where they were cut, checked by sha256, archives unpacked."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.checksums import sha256_of
from pytest_mlab.data.sources.archives import UnsafeArchive, is_archive, unpack
from pytest_mlab.data.sources.base import (
    FULL_EXTRA,
    Options,
    announce,
    place_file,
    prepare_command,
    require_consent,
    size_text,
)
from pytest_mlab.errors import DataUnavailable, SuiteError

if TYPE_CHECKING:
    import httpx

# How often in a row an attempt may bring no new byte, and how often a download may be taken up again in all.
FRUITLESS_ATTEMPTS = 5
ALL_ATTEMPTS = 50

_sleep = time.sleep


def fetch(source: Source, task: Task, into: Path, options: Options) -> None:
    """Put the file into ``into``, or what is in it when it is an archive.

    The whole file is kept among the downloads, and so is the part of one that was cut off. Raises DataUnavailable.
    """
    _require_packages(task, options)
    require_consent(source, task, options)
    name = PurePosixPath(unquote(urlsplit(source.ref).path)).name or "download"
    options.downloads.mkdir(parents=True, exist_ok=True)
    whole = options.downloads / f"{source.sha256[:16]}-{name}"

    from filelock import FileLock

    with FileLock(f"{whole}.lock"):
        if not whole.is_file() or sha256_of(whole) != source.sha256:
            announce(f"downloading {source.ref} ({size_text(source)})", options)
            _Download(source, task, whole, options).run()
    if is_archive(name):
        try:
            unpack(whole, into)
        except UnsafeArchive as error:
            raise SuiteError(f"{source.ref} cannot be unpacked: {error}") from None
    else:
        place_file(whole, into / name)


def _require_packages(task: Task, options: Options) -> None:
    try:
        import httpx  # noqa: F401
        import tqdm  # noqa: F401
    except ImportError as error:
        raise DataUnavailable(
            f"downloading the data of {task.name} needs the package {error.name}",
            mend=f"{FULL_EXTRA} && {prepare_command(task, options)}",
        ) from None


class _Cut(Exception):
    """An attempt ended before the file did; another one may go on from there."""


@dataclass(frozen=True)
class _Download:
    """One file on its way to ``whole``."""

    source: Source
    task: Task
    whole: Path
    options: Options

    @property
    def part(self) -> Path:
        return self.whole.with_name(self.whole.name + ".part")

    def run(self) -> None:
        """Download, checked; a wrong file that was put together from parts is fetched once more from the start."""
        resumed = self._size() > 0
        self._complete()
        found = sha256_of(self.part)
        if found != self.source.sha256 and resumed:
            self.part.unlink()
            self._complete()
            found = sha256_of(self.part)
        if found != self.source.sha256:
            size = self._size()
            self.part.unlink()
            raise self._unavailable(
                f"what {self.source.ref} sent is not the expected file: sha256 {found} ({size} bytes), "
                f"expected {self.source.sha256}"
            )
        self.part.replace(self.whole)

    def _complete(self) -> None:
        """Attempts until the server says that the file is whole."""
        fruitless, reason = 0, ""
        for _ in range(ALL_ATTEMPTS):
            before = self._size()
            try:
                self._attempt(before)
                return
            except _Cut as cut:
                reason = str(cut)
            fruitless = 0 if self._size() > before else fruitless + 1
            if fruitless >= FRUITLESS_ATTEMPTS:
                break
            _sleep(0.5 * 2.0**fruitless)
        raise self._unavailable(f"downloading {self.source.ref} failed ({reason}); {self._size()} bytes are kept")

    def _attempt(self, have: int) -> None:
        """One request, from byte ``have`` on. Raises _Cut when it is worth trying again."""
        import httpx

        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        try:
            with (
                httpx.Client(follow_redirects=True, timeout=httpx.Timeout(60.0, connect=20.0)) as client,
                client.stream("GET", self.source.ref, headers=headers) as reply,
            ):
                self._read(reply, have)
        except httpx.TransportError as error:
            raise _Cut(f"{type(error).__name__}: {error}") from None
        except httpx.HTTPError as error:
            raise self._unavailable(f"downloading {self.source.ref} failed: {error}") from None

    def _read(self, reply: httpx.Response, have: int) -> None:
        status = reply.status_code
        if status in (408, 429) or status >= 500:
            raise _Cut(f"the server answers {status}")
        if status == 416:
            if reply.headers.get("Content-Range") != f"bytes */{have}":
                self.part.unlink()
                raise _Cut("the server has no such part")
            return
        if status not in (200, 206):
            raise self._unavailable(f"downloading {self.source.ref} failed: the server answers {status}")
        start = have if status == 206 else 0
        if status == 206 and not reply.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            self.part.unlink()
            raise _Cut("the server sent another part than was asked for")
        self._write(reply, start)

    def _write(self, reply: httpx.Response, start: int) -> None:
        from tqdm import tqdm

        length = reply.headers.get("Content-Length", "")
        total = start + int(length) if length.isdigit() else None
        with (
            self.part.open("ab" if start else "wb") as out,
            tqdm(
                desc=self.whole.name[17:],
                total=total,
                initial=start,
                unit="B",
                unit_scale=True,
                disable=None if self.options.progress else True,  # None: shown on a terminal only
            ) as bar,
        ):
            # Blocks as they come: collecting them to a size would lose the last ones when the connection is cut.
            for block in reply.iter_raw():
                out.write(block)
                bar.update(len(block))
        if total is not None and self._size() < total:
            raise _Cut(f"the connection ended at byte {self._size()} of {total}")

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _unavailable(self, message: str) -> DataUnavailable:
        return DataUnavailable(f"data of {self.task.name}: {message}", mend=prepare_command(self.task, self.options))
