"""Download one file: streamed, resumed after an interruption, checked by its digest.

A server that was never reached is given up after a few quick attempts; one that stops sending is
retried with growing pauses."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_mlab.lib.digests import hash_of

if TYPE_CHECKING:
    import httpx

# How often in a row an attempt may bring no new byte, and how often a download may be taken up
# again in all.
FRUITLESS_ATTEMPTS = 5
ALL_ATTEMPTS = 50
# How often a connection may fail before the first one that does not, and the seconds between.
UNREACHED_ATTEMPTS = 3
UNREACHED_PAUSE = 0.2

_sleep = time.sleep


class Failed(Exception):
    """The file cannot be had."""


class Cut(Exception):
    """An attempt ended before the file did; another one may go on from there."""


class Unreached(Cut):
    """No connection came about."""


@dataclass(frozen=True)
class Download:
    """``address`` to the file ``whole``, whose content has the hexadecimal ``digest`` ('' where
    none is known) and ``size`` bytes (None likewise). What has come so far is kept beside it, as
    ``.part``. ``label`` is for the bar."""

    address: str
    whole: Path
    digest: str
    label: str
    algorithm: Literal["sha256", "md5"] = "sha256"
    size: int | None = None
    progress: bool = False

    @property
    def part(self) -> Path:
        """What has come so far."""
        return self.whole.with_name(self.whole.name + ".part")

    def run(self) -> None:
        """Download, checked; a wrong file that was put together from parts is fetched once more
        from the start.

        Raises Failed.
        """
        resumed = self._have() > 0
        self._complete()
        wrong = self._wrong()
        # The kept part may come from an older version of the file, so one download from the start
        # decides. A wrong file without such a part would be wrong again.
        if wrong and resumed:
            self.part.unlink()
            self._complete()
            wrong = self._wrong()
        if wrong:
            self.part.unlink()
            raise Failed(f"what {self.address} sent is not the expected file: {wrong}")
        # Only a checked file gets the final name, by a rename: a kill leaves a `.part`, never a
        # half file.
        self.part.replace(self.whole)

    def _wrong(self) -> str:
        have = self._have()
        if self.size is not None and have != self.size:
            return f"{have} bytes, expected {self.size}"
        found = hash_of(self.part, self.algorithm) if self.digest else ""
        return (
            ""
            if found == self.digest
            else f"{self.algorithm} {found} ({have} bytes), expected {self.digest}"
        )

    def _complete(self) -> None:
        """Attempt until the file is whole."""
        fruitless, reached, reason = 0, False, ""
        for _ in range(ALL_ATTEMPTS):
            before = self._have()
            try:
                self._attempt(before)
                return
            except Cut as cut:
                reason = str(cut)
                reached = reached or not isinstance(cut, Unreached)
            # An attempt that brought bytes counts as progress, so a large file survives many short
            # cuts.
            fruitless = 0 if self._have() > before else fruitless + 1
            if fruitless >= (FRUITLESS_ATTEMPTS if reached else UNREACHED_ATTEMPTS):
                break
            _sleep(0.5 * 2.0**fruitless if reached else UNREACHED_PAUSE)
        raise Failed(f"downloading {self.address} failed ({reason}); {self._have()} bytes are kept")

    def _attempt(self, have: int) -> None:
        """One request, from byte ``have`` on. Raises Cut when it is worth trying again."""
        import httpx

        # With a content coding the part would hold compressed bytes, and offsets count those.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        try:
            with client() as session, session.stream("GET", self.address, headers=headers) as reply:
                self._read(reply, have)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unreached(f"{type(error).__name__}: {error}") from None
        except httpx.TransportError as error:
            raise Cut(f"{type(error).__name__}: {error}") from None
        except httpx.HTTPError as error:
            raise Failed(f"downloading {self.address} failed: {error}") from None

    def _read(self, reply: httpx.Response, have: int) -> None:
        status = reply.status_code
        if status in (408, 429) or status >= 500:
            raise Cut(f"the server answers {status}")
        # 416 comes when the part is as long as the file or longer. Only where the server confirms
        # the length is the part the whole file.
        if status == 416:
            if reply.headers.get("Content-Range") != f"bytes */{have}":
                self.part.unlink()
                raise Cut("the server has no such part")
            return
        if status not in (200, 206):
            raise Failed(f"downloading {self.address} failed: the server answers {status}")
        # A server without ranges answers 200 and sends the file from its beginning.
        start = have if status == 206 else 0
        if status == 206 and not reply.headers.get("Content-Range", "").startswith(
            f"bytes {have}-"
        ):
            self.part.unlink()
            raise Cut("the server sent another part than was asked for")
        self._write(reply, start)

    def _write(self, reply: httpx.Response, start: int) -> None:
        from tqdm import tqdm

        length = reply.headers.get("Content-Length", "")
        total = start + int(length) if length.isdigit() else self.size
        with (
            self.part.open("ab" if start else "wb") as out,
            tqdm(
                desc=self.label,
                total=total,
                initial=start,
                unit="B",
                unit_scale=True,
                disable=None if self.progress else True,  # None: shown on a terminal only
            ) as bar,
        ):
            # Blocks as they come: collecting them to a size would lose the last ones when the
            # connection is cut.
            for block in reply.iter_raw():
                out.write(block)
                bar.update(len(block))
        # Without Content-Length a cut connection looks like the end of the file.
        if total is not None and self._have() < total:
            raise Cut(f"the connection ended at byte {self._have()} of {total}")

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0


def unreached(address: str) -> str:
    """Why no connection to the server of ``address`` comes about; '' when one does."""
    try:
        _connected("HEAD", address)
    except Unreached as away:
        return str(away)
    except Cut:
        return ""  # a server answered
    return ""


def ask(address: str) -> dict[str, Any]:
    """The JSON object that ``address`` answers with. Raises Unreached, Failed."""
    for attempt in range(FRUITLESS_ATTEMPTS):
        if attempt:
            _sleep(0.5 * 2.0**attempt)
        try:
            reply = _connected("GET", address)
        except Unreached:
            raise
        except Cut as cut:
            reason = str(cut)
            continue
        reason = f"the server answers {reply.status_code}"
        if reply.status_code == 200:
            return _object(reply, address)
        if reply.status_code not in (408, 429) and reply.status_code < 500:
            break
    raise Failed(f"{address}: {reason}")


def _object(reply: httpx.Response, address: str) -> dict[str, Any]:
    try:
        found = reply.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Failed(f"{address}: the answer is not a JSON object")
    return found


def _connected(method: str, address: str) -> httpx.Response:
    """The answer to one request. Raises Unreached after a few quick attempts, Cut for another
    trouble on the way."""
    import httpx

    reason = ""
    for attempt in range(UNREACHED_ATTEMPTS):
        if attempt:
            _sleep(UNREACHED_PAUSE)
        try:
            with client() as session:
                return session.request(method, address)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            reason = f"{address}: {type(error).__name__}: {error}"
        except httpx.HTTPError as error:
            raise Cut(f"{type(error).__name__}: {error}") from None
    raise Unreached(reason)


def client() -> httpx.Client:
    """An HTTP client that follows redirects and waits a minute for a byte."""
    import httpx

    return httpx.Client(follow_redirects=True, timeout=httpx.Timeout(60.0, connect=20.0))
