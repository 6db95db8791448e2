"""Requests and tokens a minute of one model, counted in a file that all workers of a run share.

pyrate-limiter's sliding windows in SQLite do the counting: in no stretch of time as long as the
window are more requests or tokens let through than its share of the minute's limit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MINUTE = 60.0

_PIECES = 10_000
"""pyrate-limiter keeps a row for each unit of a limit. Tokens are counted in units of so many that
a full window has at most this number of rows; a call's share is rounded up."""

_POLL = 0.005
"""Seconds after which a process that holds the file, for milliseconds, is looked at again."""


@dataclass(frozen=True)
class Window:
    """At most ``limit`` in any ``seconds``."""

    limit: int
    seconds: float

    @classmethod
    def of(cls, per_minute: int, seconds: float) -> Window:
        """A minute's limit kept over stretches of ``seconds``; longer ones where their share would
        be less than 1."""
        limit = math.floor(per_minute * seconds / MINUTE)
        return cls(limit, seconds) if limit >= 1 else cls(1, MINUTE / per_minute)


@dataclass(frozen=True)
class Rates:
    """The counts in ``file``, which is made when it is needed. None: no limit."""

    file: Path
    requests: Window | None
    tokens: Window | None

    @property
    def unit(self) -> int:
        """Tokens that are counted as one."""
        return 1 if self.tokens is None else math.ceil(self.tokens.limit / _PIECES)

    def fits(self, tokens: int) -> bool:
        """False for a request that is larger than a whole window: it can only be let through
        alone."""
        return self.tokens is None or tokens <= self.tokens.limit

    def book(self, call: str, tokens: int, now: float) -> float:
        """Let ``call`` through and count it, at ``now`` (Unix seconds): 0, or the seconds after
        which to ask again."""
        with self._open() as (requests, counted):
            if counted is not None and (wait := _put(counted, call, self._pieces(tokens), now)):
                return wait
            if requests is not None and (wait := _put(requests, call, 1, now)):
                if counted is not None:
                    _take_out(counted, call, self._pieces(tokens))
                return wait
            return 0.0

    def correct(self, call: str, booked: int, tokens: int, now: float) -> None:
        """``call`` was let through for ``booked`` tokens and has used ``tokens``, which may be
        more."""
        if self.tokens is None:
            return
        before, after = self._pieces(booked), self._pieces(tokens)
        with self._open() as (_, counted):
            if after < before:
                _take_out(counted, call, before - after)
            elif after > before:
                _put_in(counted, call, after - before, now)

    def _pieces(self, tokens: int) -> int:
        """Units of a call: at least one, at most all of a window."""
        assert self.tokens is not None
        most = max(1, self.tokens.limit // self.unit)
        return min(most, max(1, math.ceil(tokens / self.unit)))

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, Any]]:
        """The two buckets, None where there is no limit. Locked, and opened for one operation:
        forks and threads share nothing."""
        from filelock import FileLock

        self.file.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            stack.enter_context(FileLock(f"{self.file}.lock").acquire(poll_interval=_POLL))
            units = (
                None
                if self.tokens is None
                else Window(self.tokens.limit // self.unit, self.tokens.seconds)
            )
            yield (
                self._bucket("requests", self.requests, stack),
                self._bucket("tokens", units, stack),
            )

    def _bucket(self, table: str, window: Window | None, stack: ExitStack) -> Any:
        if window is None:
            return None
        from pyrate_limiter import Rate, SQLiteBucket

        rate = Rate(window.limit, math.ceil(window.seconds * 1000))
        bucket = SQLiteBucket.init_from_file([rate], table=table, db_path=str(self.file))
        stack.callback(bucket.close)
        # what a power cut loses here is forgotten within a minute anyway
        bucket.conn.execute("pragma synchronous = off")
        return bucket


def _put(bucket: Any, call: str, weight: int, now: float) -> float:
    """0 when it was counted, else the seconds until it would be."""
    from pyrate_limiter import RateItem

    at = math.ceil(now * 1000)
    bucket.leak(at)
    item = RateItem(call, at, weight)
    return 0.0 if bucket.put(item) else max(0.001, bucket.waiting(item) / 1000)


# A limiter has no words for "it was less" and "it was more after all": its rows are changed.


def _take_out(bucket: Any, call: str, weight: int) -> None:
    query = (
        f"delete from {bucket.table} where rowid in (select rowid from {bucket.table} where name ="
        " ? limit ?)"
    )
    bucket.conn.execute(query, (call, weight))
    bucket.conn.commit()


def _put_in(bucket: Any, call: str, weight: int, now: float) -> None:
    rows = [(call, math.ceil(now * 1000))] * weight
    bucket.conn.executemany(
        f"insert into {bucket.table} (name, item_timestamp) values (?, ?)", rows
    )
    bucket.conn.commit()
