"""Snapshots: what they cost, what they keep, and that every one of them comes back as it was."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_mlab.core.budget import Budget, Ledger
from pytest_mlab.core.trial import EndedBy, TrialId
from pytest_mlab.errors import StoreError
from pytest_mlab.store import content, manifest, snapshots
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.events import AgentEnded, StepDone, TrialStarted
from pytest_mlab.store.manifest import Public
from pytest_mlab.store.moments import moment, moments
from pytest_mlab.store.snapshots import Change, Snapshots
from pytest_mlab.store.trialdir import TrialDir

Tree = dict[str, tuple[str, object]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(tmp_path / "store")


def tree_of(root: Path) -> Tree:
    """Files with content and executable bit, links with target, empty folders."""
    found: Tree = {}
    for folder, names, files in os.walk(root):
        for name in [*names, *files]:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, root)
            info = os.lstat(path)
            if stat.S_ISLNK(info.st_mode):
                found[relative] = ("link", os.readlink(path))
            elif stat.S_ISREG(info.st_mode):
                with open(path, "rb") as file:
                    found[relative] = ("exec" if info.st_mode & 0o100 else "file", file.read())
            elif stat.S_ISDIR(info.st_mode) and not os.listdir(path):
                found[relative] = ("dir", None)
    return found


def settle(root: Path) -> None:
    """Wait until the file system's clock has left the tick of the last change."""
    newest = max((p.lstat().st_ctime_ns for p in root.rglob("*")), default=0)
    while time.clock_gettime_ns(snapshots._FILE_CLOCK) - 2 * snapshots._TICK <= newest:
        pass


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that are opened for their content."""
    opened: list[str] = []

    def spy(path: str) -> int:
        opened.append(os.path.basename(path))
        return content.open_regular(path)

    monkeypatch.setattr(snapshots, "open_regular", spy)
    return opened


def test_nothing_changed_reads_nothing_and_stores_nothing(
    root: Path, store: ContentStore, reads: list[str]
) -> None:
    (root / "a.py").write_text("a")
    (root / "b.py").write_text("b")
    recorder = Snapshots(store, root)
    first = recorder.begin()
    settle(root)
    recorder.take()  # files that were written in the first snapshot's own tick are read once more
    reads.clear()
    used = store.used()
    assert recorder.take() == Change(first.id, {}, [], 0)
    assert reads == []
    assert store.used() == used


def test_only_what_changed_is_read_and_stored(
    root: Path, store: ContentStore, reads: list[str]
) -> None:
    for k in range(20):
        (root / f"{k}.bin").write_bytes(os.urandom(1000))
    recorder = Snapshots(store, root)
    first = recorder.begin()
    settle(root)
    recorder.take()
    reads.clear()
    used = store.used()
    (root / "7.bin").write_bytes(b"x" * 10_240)
    (root / "3.bin").unlink()
    change = recorder.take()
    assert reads == ["7.bin"]
    assert list(change.set) == ["7.bin"]
    assert change.deleted == ["3.bin"]
    assert change.changed == 2
    assert change.id != first.id
    assert store.used() - used == 10_240


def test_the_same_content_has_the_same_id_whatever_its_times(
    root: Path, store: ContentStore
) -> None:
    (root / "a").write_text("a")
    recorder = Snapshots(store, root)
    first = recorder.begin()
    (root / "a").write_text("b")
    assert recorder.take().id != first.id
    (root / "a").write_text("a")
    assert recorder.take().id == first.id


def test_a_second_trial_of_a_run_stores_its_starter_files_no_more(
    tmp_path: Path, root: Path
) -> None:
    (root / "train.py").write_text("code")
    store = ContentStore(tmp_path / "store")
    first = Snapshots(store, root).begin()
    used = store.used()
    shutil.copytree(root, tmp_path / "again")
    assert Snapshots(store, tmp_path / "again").begin().id == first.id
    assert store.used() == used


@pytest.mark.parametrize(("now", "seen"), [(0, 1), (1 << 62, 0)])
def test_a_change_that_left_no_trace_in_the_times_is_seen_when_it_could_have_happened(
    root: Path, store: ContentStore, monkeypatch: pytest.MonkeyPatch, now: int, seen: int
) -> None:
    # A file system whose times stand still; `now` before them is the racy case, far behind them the
    # settled one.
    monkeypatch.setattr(
        snapshots, "_key", lambda info: (info.st_size, 0, 0, info.st_ino, info.st_mode)
    )
    (root / "f").write_bytes(b"one")
    recorder = Snapshots(store, root)
    monkeypatch.setattr(snapshots, "_now", lambda: now)
    recorder.begin()
    with open(root / "f", "r+b") as handle:  # in place: same inode, same size
        handle.write(b"two")
    assert recorder.take().changed == seen
    assert recorder.take(final=True).changed == 1 - seen  # the final snapshot believes no times


def test_a_file_system_with_whole_seconds_is_believed_later(
    root: Path, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Info:
        st_ctime_ns = 5_000_000_000

    info = Info()
    assert snapshots._racy(info, 5_900_000_000)  # type: ignore[arg-type]
    assert not snapshots._racy(info, 7_100_000_000)  # type: ignore[arg-type]
    info.st_ctime_ns = 5_000_000_001
    assert not snapshots._racy(info, 5_900_000_000)  # type: ignore[arg-type]


def test_public_copies_are_neither_read_nor_stored(
    root: Path, store: ContentStore, reads: list[str]
) -> None:
    digest = content.ContentStore(root.parent / "other").put_bytes(b"data").digest
    (root / "train.csv").write_bytes(b"data")
    (root / "train.py").write_bytes(b"code")
    recorder = Snapshots(store, root, public={"train.csv": digest})
    begun = recorder.begin()
    assert begun.set["train.csv"] == f"public:{digest}"
    assert reads == ["train.py"]
    assert not store.has(digest)
    shutil.copy(root / "train.csv", root / "copy.csv")
    assert recorder.take().set == {"copy.csv": f"public:{digest}"}
    (root / "train.csv").write_bytes(b"mine")
    changed = recorder.take().set["train.csv"]
    assert store.read_bytes(changed) == b"mine"
    (root / "train.csv").write_bytes(b"data")
    assert recorder.take(final=True).set["train.csv"] == f"public:{digest}"


def test_a_change_right_after_the_fresh_snapshot_of_public_data_is_seen(
    root: Path, store: ContentStore
) -> None:
    digest = content.ContentStore(root.parent / "other").put_bytes(b"data").digest
    (root / "train.csv").write_bytes(b"data")
    recorder = Snapshots(store, root, public={"train.csv": digest})
    recorder.begin()
    with open(root / "train.csv", "r+b") as handle:
        handle.write(b"evil")
    assert list(recorder.take().set) == ["train.csv"]


def test_the_fresh_snapshot_of_public_data_waits_for_the_next_tick(
    root: Path, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "train.csv").write_bytes(b"data")
    now = (root / "train.csv").stat().st_ctime_ns

    def sleep(seconds: float) -> None:
        nonlocal now
        now += int(seconds * 1_000_000_000)

    monkeypatch.setattr(snapshots, "_now", lambda: now)
    monkeypatch.setattr(time, "sleep", sleep)
    Snapshots(store, root, public={"train.csv": "0" * 64}).begin()
    assert now > (root / "train.csv").stat().st_ctime_ns + snapshots._TICK


def test_mounts_are_listed_and_not_looked_at(root: Path, store: ContentStore) -> None:
    (root / "data").mkdir()
    (root / "data" / "placeholder").write_text("never seen")
    public = {"data/a.csv": "a" * 64, "data/b.csv": "b" * 64}
    recorder = Snapshots(store, root, public=public, mounted=["data"])
    begun = recorder.begin()
    assert begun.set == {}
    tree = manifest.load(store, begun.id)
    assert tree == {"data/a.csv": f"mounted:{'a' * 64}", "data/b.csv": f"mounted:{'b' * 64}"}
    (root / "new").write_text("x")
    after = recorder.take(final=True)
    assert manifest.snapshot_id(manifest.load(store, after.id)) == after.id
    assert list(after.set) == ["new"]


def test_large_files_are_stored_with_the_final_snapshot_only(
    tmp_path: Path, root: Path, store: ContentStore
) -> None:
    recorder = Snapshots(store, root, file_limit=100)
    recorder.begin()
    (root / "model.bin").write_bytes(b"m" * 101)
    change = recorder.take()
    entry = change.set["model.bin"]
    assert entry.startswith("large:")
    assert not store.has(manifest.digest_of(entry))
    assert manifest.restore(store, change.set, tmp_path / "step") == ("model.bin",)
    final = recorder.take(final=True)
    assert final.id == change.id
    assert manifest.restore(store, manifest.load(store, final.id), tmp_path / "final") == ()
    assert (tmp_path / "final" / "model.bin").stat().st_size == 101


def test_the_disk_budget_warns_and_then_keeps_final_snapshots_only(
    root: Path, store: ContentStore
) -> None:
    recorder = Snapshots(store, root, disk_budget=10_000)
    recorder.begin()
    (root / "a").write_bytes(os.urandom(5000))
    assert recorder.take().notes == ()
    (root / "b").write_bytes(os.urandom(4000))
    change = recorder.take()
    assert "past that only final snapshots are stored" in change.notes[0]
    assert not change.set["b"].startswith("large:")
    (root / "c").write_bytes(os.urandom(4000))
    change = recorder.take()
    assert change.notes == ()
    assert change.set["c"].startswith("large:")
    recorder.take(final=True)
    assert store.has(manifest.digest_of(change.set["c"]))


def test_special_files_are_left_out_and_said_once(root: Path, store: ContentStore) -> None:
    recorder = Snapshots(store, root)
    recorder.begin()
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(root)  # a socket's path is short
        try:
            server.bind("sock")
        finally:
            os.chdir(here)
        change = recorder.take()
    assert change.set == {}
    assert sorted(change.notes) == [
        "pipe is a named pipe; it is not kept",
        "sock is a socket; it is not kept",
    ]
    assert recorder.take().notes == ()


def test_links_are_kept_as_links(tmp_path: Path, root: Path, store: ContentStore) -> None:
    (root / "out").symlink_to("/etc/hostname")
    (root / "folder").symlink_to("/etc")
    recorder = Snapshots(store, root)
    begun = recorder.begin()
    assert begun.set == {"out": "link:/etc/hostname", "folder": "link:/etc"}
    manifest.restore(store, begun.set, tmp_path / "back")
    assert tree_of(tmp_path / "back") == tree_of(root)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_said(root: Path, store: ContentStore) -> None:
    (root / "secret").write_text("x")
    (root / "secret").chmod(0)
    change = Snapshots(store, root).begin()
    assert change.set == {"secret": "unreadable:"}
    assert "cannot be read" in change.notes[0]


def test_a_file_that_goes_during_the_snapshot_is_no_error(
    root: Path, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("a")

    def gone(path: str) -> int:
        os.unlink(path)
        return content.open_regular(path)

    monkeypatch.setattr(snapshots, "open_regular", gone)
    assert Snapshots(store, root).begin().set == {}


def test_a_full_store_disk_is_said(
    root: Path, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Snapshots(store, root)
    recorder.begin()
    (root / "a").write_text("a")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "put_fd", full)
    with pytest.raises(StoreError, match=r"a cannot be kept.*No space.*resume"):
        recorder.take()


def test_very_many_changes_go_to_the_store_instead_of_the_event(
    root: Path, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "INLINE_ENTRIES", 3)
    recorder = Snapshots(store, root)
    recorder.begin()
    for k in range(4):
        (root / str(k)).write_text("x")
    change = recorder.take()
    assert (change.set, change.deleted, change.changed) == ({}, [], 4)
    assert sorted(manifest.load(store, change.id)) == ["0", "1", "2", "3"]


# --- back again ---


class Trace:
    """A trial whose trace is written by hand."""

    def __init__(self, folder: Path, store: ContentStore) -> None:
        self.dir = TrialDir(folder / "trial", TrialId("t", "a", "", 1))
        self.store = store
        self.steps = 0

    def started(self, change: Change) -> None:
        with self.dir.journal() as journal:
            journal.write(
                TrialStarted(
                    t=0,
                    trial=self.dir.id,
                    pid=1,
                    sandbox="",
                    budget=Budget(),
                    task_digest="",
                    data="",
                    data_digest="",
                    agent_digest="",
                    machine="",
                    starter=change.id,
                )
            )

    def step(self, change: Change) -> None:
        self.steps += 1
        with self.dir.journal() as journal:
            journal.write(
                StepDone(
                    t=0,
                    index=self.steps,
                    action="",
                    args={},
                    observation="",
                    ok=True,
                    seconds=0,
                    snapshot=change.id,
                    set=change.set,
                    deleted=change.deleted,
                    ledger=Ledger(),
                )
            )

    def ended(self, change: Change) -> None:
        with self.dir.journal() as journal:
            journal.write(
                AgentEnded(t=0, ended_by=EndedBy.SUBMITTED, snapshot=change.id, ledger=Ledger())
            )


NAMES = ("a", "b", "ä.txt", "bad\udcff", "%b:x", "new\nline", "d/x", "d/y", "d/e/z", "q")
EDITS = st.lists(
    st.tuples(
        st.sampled_from(
            ("write", "append", "exec", "unlink", "link", "mkdir", "rmtree", "move", "utime")
        ),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.binary(max_size=3),
    ),
    max_size=4,
)


def edit(root: Path, kind: str, name: str, other: str, data: bytes) -> None:
    path = os.path.join(root, name)
    try:
        if kind in ("write", "append", "exec"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "ab" if kind == "append" else "wb") as file:
                file.write(data)
            if kind == "exec":
                os.chmod(path, 0o755)
        elif kind == "unlink":
            os.unlink(path)
        elif kind == "link":
            os.symlink(other, path)
        elif kind == "mkdir":
            os.makedirs(path)
        elif kind == "rmtree":
            shutil.rmtree(os.path.dirname(path) if "/" in name else path)
        elif kind == "move":
            os.replace(path, os.path.join(root, other))
        else:
            os.utime(path, ns=(5, 5))
    except OSError:
        pass  # an edit that makes no sense here is no edit


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(EDITS, max_size=6), inline=st.sampled_from((0, 2, 500)))
def test_every_step_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[list[tuple[str, str, str, bytes]]],
    inline: int,
) -> None:
    folder = tmp_path_factory.mktemp("snapshots")
    root, store = folder / "work", ContentStore(folder / "store")
    root.mkdir()
    (root / "q").write_bytes(b"quiet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "INLINE_ENTRIES", inline)
        recorder, trace = Snapshots(store, root, public={}), Trace(folder, store)
        trace.started(recorder.begin())
        wanted = [tree_of(root)]
        for edits in steps:
            for kind, name, other, data in edits:
                # Python's file functions follow links; keep inside the workspace by never writing
                # through one.
                if not any(
                    os.path.islink(os.path.join(root, n))
                    for n in (name, other, os.path.dirname(name))
                ):
                    edit(root, kind, name, other, data)
            trace.step(recorder.take())
            wanted.append(tree_of(root))
        trace.ended(recorder.take(final=True))
    assert [m.step for m in moments(trace.dir, store)] == [*range(len(wanted)), None]
    for number, tree in enumerate(wanted):
        target = folder / f"back-{number}"
        assert manifest.restore(store, moment(trace.dir, store, number).tree, target) == ()
        assert tree_of(target) == tree
    manifest.restore(store, moment(trace.dir, store, None).tree, folder / "back-final")
    assert tree_of(folder / "back-final") == wanted[-1]


@pytest.fixture
def trace(tmp_path: Path, root: Path, store: ContentStore) -> Trace:
    trace, recorder = Trace(tmp_path, store), Snapshots(store, root)
    trace.started(recorder.begin())
    (root / "a").write_text("a")
    trace.step(recorder.take())
    return trace


def test_a_step_that_never_was_names_those_that_were(trace: Trace, store: ContentStore) -> None:
    with pytest.raises(StoreError, match="no snapshot of the step 7; it has: 0, 1"):
        moment(trace.dir, store, 7)
    with pytest.raises(StoreError, match="no snapshot of the final workspace"):
        moment(trace.dir, store, None)


def test_changes_that_do_not_add_up_are_an_error(trace: Trace, store: ContentStore) -> None:
    trace.step(Change("0" * 64, {"b": "1" * 64}, [], 1))
    with pytest.raises(StoreError, match="do not add up"):
        moment(trace.dir, store, 2)


def test_public_files_come_from_the_prepared_data(
    tmp_path: Path, root: Path, store: ContentStore
) -> None:
    (tmp_path / "prepared").mkdir()
    (tmp_path / "prepared" / "train.csv").write_bytes(b"data")
    digest = content.ContentStore(tmp_path / "other").put_bytes(b"data").digest
    tree = {
        "sub/copy.csv": f"public:{digest}",
        "train.csv": f"mounted:{digest}",
        "lost": f"public:{'0' * 64}",
    }
    public = Public(tmp_path / "prepared", {"train.csv": digest})
    assert manifest.restore(store, tree, tmp_path / "without") == ()
    assert tree_of(tmp_path / "without") == {}
    assert manifest.restore(store, tree, tmp_path / "with", public) == ("lost",)
    assert tree_of(tmp_path / "with") == {
        "sub/copy.csv": ("file", b"data"),
        "train.csv": ("file", b"data"),
    }


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", "a//b", "%b:..%2Fx"])
def test_a_path_that_leads_out_is_refused(tmp_path: Path, store: ContentStore, path: str) -> None:
    digest = store.put_bytes(b"x").digest
    with pytest.raises(StoreError, match="leads out"):
        manifest.restore(store, {path: digest}, tmp_path / "back")


def test_no_file_is_written_through_a_link(tmp_path: Path, store: ContentStore) -> None:
    digest = store.put_bytes(b"x").digest
    (tmp_path / "outside").mkdir()
    tree = {"a": f"link:{tmp_path / 'outside'}", "a/b": digest}
    with pytest.raises(FileExistsError):
        manifest.restore(store, tree, tmp_path / "back")
    assert os.listdir(tmp_path / "outside") == []


def test_restoring_over_something_is_refused(tmp_path: Path, store: ContentStore) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(StoreError, match="not empty"):
        manifest.restore(store, {}, tmp_path)


@pytest.mark.parametrize(
    ("data", "said"), [(b"junk", "junk"), (manifest.HEADER + b"{}[\n", "damaged")]
)
def test_a_damaged_manifest_is_named(data: bytes, said: str) -> None:
    with pytest.raises(StoreError, match=f"here.*{said}"):
        manifest.parse(data, "here")
