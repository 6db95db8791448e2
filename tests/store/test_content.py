"""The content-addressed store."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.errors import StoreError
from pytest_mlab.store import content
from pytest_mlab.store.content import ContentStore


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(tmp_path / "store")


def files(store: ContentStore) -> list[str]:
    return sorted(
        str(p.relative_to(store.root))
        for p in store.root.rglob("*")
        if p.is_file() and p.name != ".used"
    )


def test_bytes_are_found_under_their_digest_and_stored_once(store: ContentStore) -> None:
    first = store.put_bytes(b"hello")
    assert first == (hashlib.sha256(b"hello").hexdigest(), 5, True)
    assert not store.put_bytes(b"hello").new
    assert files(store) == [f"{first.digest[:2]}/{first.digest[2:]}"]
    assert store.read_bytes(first.digest) == b"hello"
    assert store.has(first.digest)
    assert not store.has("0" * 64)
    assert store.used() == 5


@given(data=st.binary(max_size=40))
def test_a_file_of_any_size_is_the_same_content(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("content")
    (folder / "f").write_bytes(data)
    store = ContentStore(folder / "store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content, "BLOCK", 8)
        stored = store.put_file(folder / "f")
        assert stored == (hashlib.sha256(data).hexdigest(), len(data), True)
        assert not store.put_file(folder / "f").new
        store.copy_to(stored.digest, folder / "g")
    assert (folder / "g").read_bytes() == data


def test_copying_works_where_the_kernel_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError("not on this file system")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    data = os.urandom(content.BLOCK * 2 + 17)
    (tmp_path / "f").write_bytes(data)
    store = ContentStore(tmp_path / "store")
    assert store.read_bytes(store.put_file(tmp_path / "f").digest) == data


@pytest.mark.parametrize("kernel", [True, False])
def test_holes_need_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: bool) -> None:
    def refuse(*_: object) -> int:
        raise OSError("not on this file system")

    if not kernel:
        monkeypatch.setattr(os, "copy_file_range", refuse)
    with open(tmp_path / "f", "wb") as file:
        file.write(b"begin")
        file.seek(20 << 20)
        file.write(b"middle")
        file.truncate((40 << 20) + 1)
    if (tmp_path / "f").stat().st_blocks * 512 > 1 << 20:
        pytest.skip("this file system keeps no holes")
    store = ContentStore(tmp_path / "store")
    stored = store.put_file(tmp_path / "f")
    assert stored.size == (40 << 20) + 1
    assert store.read_bytes(stored.digest) == (tmp_path / "f").read_bytes()
    assert store.path(stored.digest).stat().st_blocks * 512 < 1 << 20


def test_links_and_special_files_are_not_followed(tmp_path: Path, store: ContentStore) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="symbolic links"):
        store.put_file(tmp_path / "link")
    with pytest.raises(StoreError, match="regular file"):
        store.put_file(tmp_path / "fifo")


def test_damage_is_found_when_read(tmp_path: Path, store: ContentStore) -> None:
    digest = store.put_bytes(b"hello").digest
    store.path(digest).chmod(0o644)
    store.path(digest).write_bytes(b"hellO")
    with pytest.raises(StoreError, match="damaged"):
        store.read_bytes(digest)
    with pytest.raises(StoreError, match="damaged"):
        store.copy_to(digest, tmp_path / "out")


def test_a_missing_content_says_why_it_may_be_missing(store: ContentStore) -> None:
    with pytest.raises(StoreError, match="size limit"):
        store.open("0" * 64)


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "AB" * 32, "0" * 63, "0" * 64 + "\n"])
def test_only_digests_name_contents(store: ContentStore, digest: str) -> None:
    with pytest.raises(StoreError, match="digest"):
        store.has(digest)


def test_a_failed_put_leaves_nothing(store: ContentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put_bytes(b"there")
    before = files(store)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        store.put_bytes(b"more")
    assert files(store) == before


def test_many_processes_store_at_once(store: ContentStore) -> None:
    code = (
        "import sys, pathlib\nfrom pytest_mlab.store.content import ContentStore\n"
        "s = ContentStore(pathlib.Path(sys.argv[1]))\nsys.stdin.readline()\n"
        "for i in range(200): s.put_bytes(str(i).encode())\n"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(store.root)], stdin=subprocess.PIPE)
        for _ in range(3)
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.close()
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    assert len(files(store)) == 200
    assert all(store.has(hashlib.sha256(str(i).encode()).hexdigest()) for i in range(200))


def test_what_others_count_meanwhile_is_not_lost(store: ContentStore) -> None:
    store.put_bytes(b"x")
    with open(store.root / ".used", "r+b", buffering=0) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        thread = threading.Thread(target=store.put_bytes, args=(b"yz",))
        thread.start()
        thread.join(
            0.05
        )  # it waits for the lock, or it has counted already and that gets lost here
        other.write((100).to_bytes(8, "little"))
    thread.join()
    assert store.used() == 102
