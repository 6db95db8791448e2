"""Images that a COCO file lists by address: a few at a time, each kept, so that the next attempt
goes on from there."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.sources.base import (
    Options,
    SourceKind,
    announce,
    place_file,
    require_packages,
    size_text,
    unavailable,
)
from pytest_mlab.data.sources.download import UNREACHED_ATTEMPTS, UNREACHED_PAUSE, client
from pytest_mlab.errors import SuiteError

if TYPE_CHECKING:
    import httpx

AT_ONCE = 8
ATTEMPTS = 5  # at each image
MOST_FAILURES = 20  # after which no more images are tried
_NAME = re.compile(r"[\w-][\w.-]*")

_sleep = time.sleep


@dataclass(frozen=True)
class Image:
    """One entry of the list: where it is, and what it is called in ``images/``."""

    address: str
    name: str


class _Failed(Exception):
    """An image cannot be had."""


class _Unreached(_Failed):
    """No connection to its server came about."""


class _Again(Exception):
    """It is worth trying again."""


class CocoImages(SourceKind):
    """``ref``: the path of a COCO file that a source before it brings."""

    name = "coco-images"

    def problems(self, source: Source, folder: Path) -> Iterator[tuple[str, str]]:
        yield from super().problems(source, folder)
        path = PurePosixPath(source.ref)
        if path.suffix != ".json" or path.is_absolute() or ".." in path.parts:
            yield (
                "ref",
                f'"{source.ref}" found, must be the path of a COCO file (.json) that a source'
                " before it brings",
            )
        if source.sha256:
            yield "sha256", "a source of kind coco-images has none: it is many files"

    def fetch(self, source: Source, task: Task, into: Path, options: Options) -> None:
        """Put the images listed in ``into / source.ref``, which an earlier source brought, into
        ``into / images``.

        Raises DataUnavailable with the number of missing images; the others are kept for the next
        attempt."""
        require_packages(task, options, "httpx", "tqdm")
        self.require_consent(source, task, options)
        images = listed(into / source.ref, task)
        store = options.downloads / "images"
        store.mkdir(parents=True, exist_ok=True)

        from filelock import FileLock

        with FileLock(f"{store}.lock"):
            # Keyed by address: two threads must not write one `.part`.
            missing = list(
                {
                    image.address: image for image in images if not kept(image, store).is_file()
                }.values()
            )
            if missing:
                announce(
                    f"downloading {len(missing)} of {len(images)} images ({size_text(source)})",
                    options,
                )
                with client() as session:
                    failures = _all(missing, session, store, options)
                if failures:
                    left = sum(not kept(image, store).is_file() for image in missing)
                    what = (
                        f"{left} of {len(images)} images are missing, among them {failures[0]}; the"
                        " others are kept"
                    )
                    raise unavailable(what, task, options)
        for image in images:
            place_file(kept(image, store), into / "images" / image.name)


def listed(file: Path, task: Task) -> list[Image]:
    """The images of a COCO file with their addresses. Raises SuiteError for another kind of file
    and for unsafe names."""
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))["images"]
        images = [Image(entry["coco_url"], entry["file_name"]) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SuiteError(
            f"{task.name}: {file.name} is not a COCO file with coco_url and file_name for each"
            f" image: {type(error).__name__}: {error}"
        ) from None
    for image in images:
        # The list comes from elsewhere: a name must not lead out of the folder, nor an address to a
        # local file.
        if not _NAME.fullmatch(image.name) or not image.address.startswith(("http://", "https://")):
            raise SuiteError(
                f"{task.name}: {file.name} lists {image.name!r} at {image.address!r}, which is not"
                " safe"
            )
    return images


def kept(image: Image, store: Path) -> Path:
    """Where a whole image lies: the list has no checksums, so its address names it."""
    digest = hashlib.sha256(image.address.encode()).hexdigest()
    return store / digest[:2] / digest[2:34]


def _all(images: list[Image], session: httpx.Client, store: Path, options: Options) -> list[str]:
    """Download, a few at once; what went wrong. Few are begun ahead, so that an interrupt ends it
    soon; where nothing came and a server cannot be reached, nothing more is tried."""
    from tqdm import tqdm

    waiting = iter(images)
    failures: list[str] = []
    came = away = False
    with (
        ThreadPoolExecutor(AT_ONCE) as pool,
        tqdm(total=len(images), unit="image", disable=None if options.progress else True) as bar,
    ):
        running: set[Future[None]] = set()
        # When a server fails, every image would wait through its retries: the list is given up
        # early.
        while len(failures) < MOST_FAILURES and (came or not away):
            running |= {
                pool.submit(_one, image, session, store)
                for image in islice(waiting, AT_ONCE - len(running))
            }
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                bar.update()
                try:
                    future.result()
                    came = True
                except _Failed as failure:
                    failures.append(str(failure))
                    away = away or isinstance(failure, _Unreached)
    return failures


def _one(image: Image, session: httpx.Client, store: Path) -> None:
    """One image, whole or not at all. Raises _Failed."""
    target = kept(image, store)
    target.parent.mkdir(exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    reason = ""
    for attempt in range(ATTEMPTS):
        try:
            part.write_bytes(_reached(image, session))
            # An image without a checksum counts as whole by its name, so it gets the name only at
            # the end.
            part.replace(target)
            return
        except _Again as again:
            reason = str(again)
        if attempt + 1 < ATTEMPTS:
            _sleep(0.5 * 2.0**attempt)
    raise _Failed(f"{image.address} ({reason})")


def _reached(image: Image, session: httpx.Client) -> bytes:
    """One answer of a server that may not be there. Raises _Unreached, _Again, _Failed."""
    import httpx

    reason = ""
    for attempt in range(UNREACHED_ATTEMPTS):
        try:
            return _read(image, session)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            reason = f"{type(error).__name__}: {error}"
        if attempt + 1 < UNREACHED_ATTEMPTS:
            _sleep(UNREACHED_PAUSE)
    raise _Unreached(f"{image.address} ({reason})")


def _read(image: Image, session: httpx.Client) -> bytes:
    """One request. Raises _Again, _Failed, httpx's ConnectError and ConnectTimeout. A body shorter
    than announced is an error of httpx's."""
    import httpx

    try:
        reply = session.get(image.address)
    except (httpx.ConnectError, httpx.ConnectTimeout):
        raise
    except httpx.TransportError as error:
        raise _Again(f"{type(error).__name__}: {error}") from None
    except httpx.HTTPError as error:
        raise _Failed(f"{image.address} ({error})") from None
    if reply.status_code in (408, 429) or reply.status_code >= 500:
        raise _Again(f"the server answers {reply.status_code}")
    if reply.status_code != 200:
        raise _Failed(f"{image.address} (the server answers {reply.status_code})")
    if not reply.content:
        raise _Again("the server sent nothing")
    return reply.content
