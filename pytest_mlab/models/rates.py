"""Requests and tokens a minute of one route, counted in a SQLite file that all workers of a run
share.

In no stretch of time as long as the window are more requests or tokens let through than the
window's share of the minute's limit."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_mlab.errors import StoreError

MINUTE = 60.0

_PATIENCE = 60.0
"""Seconds to wait for other processes' transactions, which take milliseconds."""

_TABLE = """
create table if not exists sent (route text, call text, at real, requests integer, tokens integer);
create index if not exists sent_by_time on sent (route, at);
"""

# Sums from the newest row backwards: the newest row that must have left the window before there
# is room again. `at + window > now` is the same floating-point sum everywhere, so that a row
# leaves the window in the very moment that the wait for it ends.
_BLOCKING = """
select max(at) from (
    select at, sum({column}) over (order by at desc) as total
    from sent where route = ? and at + ? > ?
) where total > ?
"""


@dataclass(frozen=True)
class Window:
    """At most ``limit`` in any ``seconds``."""

    limit: int
    seconds: float

    @classmethod
    def of(cls, per_minute: int, seconds: float) -> Window:
        """A minute's limit kept over a window of ``seconds``; over a longer one where its share
        would be less than 1."""
        limit = math.floor(per_minute * seconds / MINUTE)
        # A limit of 0 would let nothing through, ever.
        return cls(limit, seconds) if limit >= 1 else cls(1, MINUTE / per_minute)


@dataclass(frozen=True)
class Rates:
    """The counts of ``route`` in the SQLite file ``database``; None: no limit.

    Every call is one transaction on a connection of its own, so that forks and threads share
    nothing and a killed process leaves nothing half done. Raises StoreError when the file cannot
    be used.
    """

    database: Path
    route: str
    requests: Window | None
    tokens: Window | None

    def book(self, call: str, tokens: int, now: float) -> float:
        """Let ``call`` through and count it, at ``now`` (Unix seconds): 0, or the seconds after
        which to ask again. A call above the whole limit is let through when it is alone."""
        with self._open() as db:
            # Inside the transaction: two workers that look at the same moment must not both find
            # the last free place.
            self._forget_old(db, now)
            wait = max(
                self._wait(db, "requests", self.requests, 1, now),
                self._wait(db, "tokens", self.tokens, tokens, now),
            )
            if not wait:
                # The row holds the estimate until the answer comes, so that calls under way
                # count as well. If the process dies before that, the estimate stays and leaves
                # with the window.
                db.execute(
                    "insert into sent values (?, ?, ?, 1, ?)", (self.route, call, now, tokens)
                )
            return wait

    def correct(self, call: str, booked: int, tokens: int, now: float) -> None:
        """``call`` was let through for ``booked`` tokens and has used ``tokens``, which may be
        more. What is more counts from ``now`` on."""
        if self.tokens is None or booked == tokens:
            return
        with self._open() as db:
            # Lowering a row can only make room, so its time stays. Raising it could put more into a
            # past stretch than the window allows.
            if tokens < booked:
                db.execute("update sent set tokens = ? where call = ?", (tokens, call))
            else:
                # the call's own row may have left the window already, so its tokens stay there
                row = (self.route, call, now, tokens - booked)
                db.execute("insert into sent values (?, ?, ?, 0, ?)", row)

    def _forget_old(self, db: sqlite3.Connection, now: float) -> None:
        """Drop rows far outside of the windows; those in the future were written before the
        machine's clock was set back, and would otherwise block the route until then."""
        longest = max(window.seconds for window in (self.requests, self.tokens) if window)
        db.execute(
            "delete from sent where route = ? and abs(at - ?) > ?", (self.route, now, longest + 1)
        )

    def _wait(
        self, db: sqlite3.Connection, column: str, window: Window | None, weight: int, now: float
    ) -> float:
        if window is None:
            return 0.0
        # A weight above the limit counts as the whole limit. Otherwise such a call would wait for
        # ever.
        room = window.limit - min(window.limit, max(1, weight))
        [at] = db.execute(
            _BLOCKING.format(column=column), (self.route, window.seconds, now, room)
        ).fetchone()
        # at least a millisecond: rounding must not make the caller ask again in the same moment
        return 0.0 if at is None else max(0.001, at + window.seconds - now)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection in one transaction."""
        try:
            with closing(
                # isolation_level=None: sqlite3 would begin transactions by itself otherwise, and
                # those take the write lock only at the first write.
                sqlite3.connect(self.database, timeout=_PATIENCE, isolation_level=None)
            ) as db:
                db.executescript(_TABLE)
                # Takes the write lock before anything is read. A transaction that reads first and
                # writes later fails with 'database is locked', without any patience, when another
                # one has written meanwhile.
                db.execute("begin immediate")
                yield db
                db.execute("commit")
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.database} cannot be used ({error}); free the disk, or start a new run"
            ) from error
