"""What all workers of a run share: the dollars spent, the endpoints that were given up, how long an
endpoint is held, and the parameters that providers refuse.

One SQLite file in the run directory. Every call commits, so that a killed process loses nothing
that it reported, and a connection lives no longer than a call, so that it may come from any process
or thread."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_mlab.core.routes import GivenUp
from pytest_mlab.errors import StoreError

SHARED = "shared.sqlite"

_PATIENCE = 60.0
"""Seconds to wait for other processes' transactions, which take milliseconds."""

_TABLES = """
create table if not exists spent (at real, trial text, model text, dollars real);
create table if not exists given_up (endpoint text primary key, at real, kind text, reason text);
create table if not exists held (endpoint text primary key, until real);
create table if not exists refused (model text, parameter text, primary key (model, parameter));
"""


@dataclass(frozen=True)
class Spending:
    """``dollars`` that all model calls of a run cost, in all of its sessions; ``unpriced`` calls
    have no known price and are not in it."""

    dollars: float = 0.0
    calls: int = 0
    unpriced: int = 0


class Shared:
    """The file in the folder of a run; made when something is first written. ``now`` gives Unix
    seconds.

    Raises StoreError when the file cannot be read or written.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self.path = folder / SHARED
        self._now = now

    # --- dollars ---

    def spend(self, trial: str, model: str, dollars: float | None) -> None:
        """Add a model call; ``dollars`` None: its price is unknown."""
        with self._open() as db:
            db.execute(
                "insert into spent values (?, ?, ?, ?)", (self._now(), trial, model, dollars)
            )

    def spending(self) -> Spending:
        """The sum of all calls so far."""
        if not self.path.exists():
            return Spending()
        with self._open() as db:
            dollars, calls, priced = db.execute(
                "select total(dollars), count(*), count(dollars) from spent"
            ).fetchone()
        return Spending(dollars, calls, calls - priced)

    # --- models ---

    def give_up(self, endpoint: str, kind: str, reason: str) -> None:
        """No worker asks ``endpoint`` from now on; the first reason is kept."""
        with self._open() as db:
            db.execute(
                "insert or ignore into given_up values (?, ?, ?, ?)",
                (endpoint, self._now(), kind, reason),
            )

    def given_up(self) -> dict[str, GivenUp]:
        """The endpoints that were given up."""
        if not self.path.exists():
            return {}
        with self._open() as db:
            return {name: GivenUp(kind, why) for name, kind, why in db.execute(_GIVEN_UP)}

    def hold(self, endpoint: str, seconds: float) -> None:
        """No worker asks ``endpoint`` for ``seconds``, or until an earlier hold ends if later."""
        until = self._now() + seconds
        with self._open() as db:
            db.execute(_HOLD, (endpoint, until))

    def held(self, endpoint: str) -> float:
        """Seconds for which ``endpoint`` is still held, 0 when it is not."""
        if not self.path.exists():
            return 0.0
        with self._open() as db:
            found = db.execute("select until from held where endpoint = ?", (endpoint,)).fetchone()
        return max(0.0, found[0] - self._now()) if found else 0.0

    def refuse(self, model: str, parameter: str) -> None:
        """The provider refuses ``parameter`` for ``model``: no worker sends it from now on."""
        with self._open() as db:
            db.execute("insert or ignore into refused values (?, ?)", (model, parameter))

    def refused(self, model: str) -> frozenset[str]:
        """The parameters that the provider refuses for ``model``."""
        if not self.path.exists():
            return frozenset()
        with self._open() as db:
            rows = db.execute("select parameter from refused where model = ?", (model,)).fetchall()
        return frozenset(parameter for (parameter,) in rows)

    def forgive(self) -> None:
        """Let a new session of the run try every endpoint and every parameter again. What was spent
        stays."""
        if self.path.exists():
            with self._open() as db:
                db.execute("delete from given_up")
                db.execute("delete from held")
                db.execute("delete from refused")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection in one transaction."""
        try:
            # Without an isolation level the module begins no transactions of its own accord.
            db = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
            try:
                # Outside the transaction: executescript() commits an open one before it runs.
                db.executescript(_TABLES)
                # Immediate: this waits for the lock. A transaction that takes it after a read fails
                # at once where another process wrote in between, whatever the timeout.
                db.execute("begin immediate")
                yield db
                db.execute("commit")
            finally:
                db.close()
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path} cannot be used ({error}); free the disk, or start a new run"
            ) from error


_GIVEN_UP = "select endpoint, kind, reason from given_up order by at"
_HOLD = (
    "insert into held values (?, ?) on conflict (endpoint) do update set until = max(until,"
    " excluded.until)"
)
