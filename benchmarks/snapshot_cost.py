"""What a snapshot of a 500 MB workspace costs when nothing changed, and when one file of 10 KB did;
and a fresh workspace from 1 GB of data."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.rows import Row
from benchmarks.step_cost import _task
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.snapshots import Change, Snapshots
from pytest_mlab.trial.provision import provision

FILES, FILE_MB = 500, 1
CHANGED = 10 * 1024
ROUNDS = 50
DATA_MB = 1024


def _median_ms(
    work: Callable[[], object], rounds: int, before: Callable[[], object] = lambda: None
) -> float:
    times = []
    for _ in range(rounds):
        before()
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def _fill(root: Path, files: int) -> None:
    """Files of one size whose contents differ, in 20 folders."""
    block = os.urandom(FILE_MB << 20)
    for number in range(files):
        folder = root / f"part{number % 20}"
        folder.mkdir(exist_ok=True, parents=True)
        with open(folder / f"{number}.bin", "wb") as file:
            file.write(number.to_bytes(8, "little") + block[8:])


def _snapshots(folder: Path, files: int, rounds: int) -> list[Row]:
    root, store = folder / "work", ContentStore(folder / "store")
    _fill(root, files)
    snapshots = Snapshots(store, root)
    snapshots.begin()
    time.sleep(0.05)  # past the tick in which the files were written, as any step would be
    snapshots.take()
    size, used = files * FILE_MB, store.used()
    unchanged = _median_ms(snapshots.take, rounds)
    stored_unchanged = store.used() - used
    changes: list[Change] = []

    def change() -> None:
        (root / "part0" / "0.bin").write_bytes(os.urandom(CHANGED))

    change()
    used = store.used()
    changed = _median_ms(lambda: changes.append(snapshots.take()), rounds, change)
    assert all(c.changed == 1 for c in changes)
    stored = (store.used() - used) / rounds / 1024
    began = time.perf_counter()
    shutil.copytree(root, folder / "copy")
    copied = (time.perf_counter() - began) * 1000
    return [
        Row(
            f"snapshot of {size} MB, nothing changed",
            unchanged,
            "ms",
            5.0,
            unchanged / copied,
            "copying it",
        ),
        Row("  stored", stored_unchanged / 1024, "KB", None),
        Row(
            f"snapshot of {size} MB, 10 KB changed",
            changed,
            "ms",
            5.0,
            changed / copied,
            "copying it",
        ),
        Row("  stored", stored, "KB", CHANGED / 1024),
        Row(f"copying {size} MB", copied, "ms"),
    ]


def _fresh(folder: Path, data_mb: int, rounds: int) -> list[Row]:
    task = _task(folder / "task")
    _fill(folder / "public", data_mb)
    files = {
        str(p.relative_to(folder / "public")): "0" * 64 for p in (folder / "public").rglob("*.bin")
    }
    made = iter(range(10_000))

    def fresh() -> None:
        workspace = provision(
            task, folder / "public", files, folder / "ws" / str(next(made)), mounts=True
        )
        store = ContentStore(folder / "store")
        Snapshots(store, workspace.root, public=workspace.public, mounted=workspace.mounted).begin()

    cost = _median_ms(fresh, rounds)
    return [Row(f"fresh workspace, {data_mb} MB mounted", cost, "ms", 50.0)]


def measure(*, quick: bool = False) -> list[Row]:
    """All rows; needs some 3 GB of disk for a minute, or 300 MB when quick."""
    rounds = 10 if quick else ROUNDS
    with tempfile.TemporaryDirectory(prefix="mlab-snapshots-") as name:
        rows = _snapshots(Path(name), 50 if quick else FILES, rounds)
    with tempfile.TemporaryDirectory(prefix="mlab-fresh-") as name:
        return rows + _fresh(Path(name), 100 if quick else DATA_MB, rounds)


if __name__ == "__main__":
    for row in measure(quick="--quick" in sys.argv):
        print(row)
