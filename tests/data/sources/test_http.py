"""Downloads: whole, cut, resumed, wrong, refused."""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.prepare import prepare
from pytest_mlab.data.sources import download
from pytest_mlab.errors import DataUnavailable, SuiteError
from tests.data.file_server import Cut, FileServer, Status, Trouble, file_server
from tests.data.shapes import cifar10_archive
from tests.data.tasks import COPY_ALL, task_with

CONTENT = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(download, "_sleep", lambda seconds: None)
    with file_server() as running:
        running.files["/points.bin"] = CONTENT
        yield running


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def source(
    server: FileServer, path: str = "/points.bin", *, consent: str = "", digest: str = ""
) -> Source:
    digest = digest or sha256(server.files.get(path, b""))
    return Source(
        "http", server.address + path, digest, size_mb=1.0, licence="CC0", consent=consent
    )


def full_task(tmp_path: Path, *sources: Source) -> Task:
    return task_with(tmp_path, *sources, data_py=COPY_ALL, variant="full")


def test_a_file_is_downloaded_and_kept_for_the_next_time(
    tmp_path: Path, server: FileServer
) -> None:
    task = full_task(tmp_path, source(server))
    ready = prepare(task, "full", tmp_path / "cache")
    assert (ready.public / "points.bin").read_bytes() == CONTENT
    prepare(task, "full", tmp_path / "cache", force=True)
    assert server.ranges == [""]


def test_a_damaged_download_is_fetched_again(tmp_path: Path, server: FileServer) -> None:
    task = full_task(tmp_path, source(server))
    prepare(task, "full", tmp_path / "cache")
    (kept,) = (tmp_path / "cache" / "downloads").glob("*.bin")
    kept.write_bytes(b"damaged")
    assert (
        prepare(task, "full", tmp_path / "cache", force=True).public / "points.bin"
    ).read_bytes() == CONTENT
    assert len(server.ranges) == 2


def test_a_cut_connection_is_taken_up_where_it_ended(tmp_path: Path, server: FileServer) -> None:
    server.troubles = [Cut(300_000), Cut(400_000), Status(503), Cut(0)]
    ready = prepare(full_task(tmp_path, source(server)), "full", tmp_path / "cache")
    assert (ready.public / "points.bin").read_bytes() == CONTENT
    assert server.ranges == ["", "bytes=300000-", "bytes=700000-", "bytes=700000-", "bytes=700000-"]


def test_a_later_invocation_resumes_what_an_earlier_one_kept(
    tmp_path: Path, server: FileServer
) -> None:
    task = full_task(tmp_path, source(server))
    server.troubles = [Cut(500_000), *[Status(500)] * download.FRUITLESS_ATTEMPTS]
    with pytest.raises(
        DataUnavailable,
        match=r"the server answers 500\); 500000 bytes are kept; to fix: mlab prepare toy",
    ):
        prepare(task, "full", tmp_path / "cache")
    assert len(server.ranges) == 1 + download.FRUITLESS_ATTEMPTS
    assert (prepare(task, "full", tmp_path / "cache").public / "points.bin").read_bytes() == CONTENT
    assert server.ranges[-1] == "bytes=500000-"


@pytest.mark.parametrize("trouble", ["ignore-range", "wrong-range"])
def test_a_server_that_cannot_resume_is_read_from_the_start(
    tmp_path: Path, server: FileServer, trouble: Trouble
) -> None:
    server.troubles = [Cut(300_000), trouble]
    ready = prepare(full_task(tmp_path, source(server)), "full", tmp_path / "cache")
    assert (ready.public / "points.bin").read_bytes() == CONTENT


def test_a_server_that_tells_no_length_is_believed_by_the_checksum(
    tmp_path: Path, server: FileServer
) -> None:
    server.troubles = ["no-length"]
    ready = prepare(full_task(tmp_path, source(server)), "full", tmp_path / "cache")
    assert (ready.public / "points.bin").read_bytes() == CONTENT


def part_of(tmp_path: Path, server: FileServer, content: bytes) -> Task:
    """A task, and ``content`` left of an earlier download."""
    task = full_task(tmp_path, source(server))
    downloads = tmp_path / "cache" / "downloads"
    downloads.mkdir(parents=True)
    (downloads / f"{sha256(CONTENT)[:16]}-points.bin.part").write_bytes(content)
    return task


@pytest.mark.parametrize("left", [CONTENT, CONTENT + b"more", b"other" * 1000, CONTENT[:-1]])
def test_whatever_was_left_the_file_comes_out_right(
    tmp_path: Path, server: FileServer, left: bytes
) -> None:
    task = part_of(tmp_path, server, left)
    assert (prepare(task, "full", tmp_path / "cache").public / "points.bin").read_bytes() == CONTENT
    assert list((tmp_path / "cache" / "downloads").glob("*.part")) == []


def test_another_file_than_expected_is_refused_and_not_kept(
    tmp_path: Path, server: FileServer
) -> None:
    task = full_task(tmp_path, source(server, digest="1" * 64))
    with pytest.raises(DataUnavailable) as caught:
        prepare(task, "full", tmp_path / "cache")
    message = str(caught.value)
    assert f"sha256 {sha256(CONTENT)} (1048576 bytes), expected {'1' * 64}" in message
    assert "mlab prepare toy --data full" in message
    assert [path.suffix for path in (tmp_path / "cache" / "downloads").iterdir()] == [".lock"]
    assert len(server.ranges) == 1


@pytest.mark.parametrize(("status", "requests"), [(404, 1), (403, 1), (429, 5), (500, 5)])
def test_an_answer_that_will_not_change_is_asked_for_once(
    tmp_path: Path, server: FileServer, status: int, requests: int
) -> None:
    server.troubles = [Status(status)] * 10
    with pytest.raises(DataUnavailable, match=f"the server answers {status}"):
        prepare(full_task(tmp_path, source(server)), "full", tmp_path / "cache")
    assert len(server.ranges) == requests


@pytest.mark.parametrize("host", ["127.0.0.1:1", "no-such-host.invalid"])
def test_no_server_at_all_is_said_after_three_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    waits: list[float] = []
    monkeypatch.setenv("NO_PROXY", host)
    monkeypatch.setattr(download, "_sleep", waits.append)
    gone = Source("http", f"http://{host}/points.bin", "1" * 64, size_mb=1.0, licence="CC0")
    with pytest.raises(DataUnavailable, match=r"points\.bin failed \(ConnectError"):
        prepare(full_task(tmp_path, gone), "full", tmp_path / "cache")
    assert waits == [download.UNREACHED_PAUSE] * 2


def test_a_server_that_was_there_is_waited_for(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(download, "_sleep", waits.append)
    server.troubles = [Cut(300_000)]
    attempt = download.Download._attempt

    def then_away(self: download.Download, have: int) -> None:
        if have:
            raise download.Unreached("away")
        attempt(self, have)

    monkeypatch.setattr(download.Download, "_attempt", then_away)
    with pytest.raises(DataUnavailable, match=r"failed \(away\); 300000 bytes are kept"):
        prepare(full_task(tmp_path, source(server)), "full", tmp_path / "cache")
    assert sum(waits) > 10


def test_rules_must_have_been_accepted_before_a_byte_is_fetched(
    tmp_path: Path, server: FileServer
) -> None:
    task = full_task(tmp_path, source(server, consent="https://rules.invalid"))
    with pytest.raises(DataUnavailable) as caught:
        prepare(task, "full", tmp_path / "cache", consent=["another"])
    assert "read them at https://rules.invalid" in str(caught.value)
    assert caught.value.fix == "mlab prepare toy --data full --suite lab --accept-rules toy"
    assert server.ranges == []
    assert prepare(task, "full", tmp_path / "cache", consent=["toy"]).variant == "full"


def test_size_and_licence_are_said_first_and_a_terminal_shows_a_bar(
    tmp_path: Path,
    server: FileServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = full_task(tmp_path, source(server))
    prepare(task, "full", tmp_path / "quiet")
    assert capsys.readouterr().err == ""
    prepare(task, "full", tmp_path / "lines", progress=True)
    said = capsys.readouterr().err
    assert "(1 MB, licence: CC0)" in said
    assert "%" not in said
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    prepare(task, "full", tmp_path / "bar", progress=True)
    said = capsys.readouterr().err
    assert said.index("(1 MB, licence: CC0)") < said.index("100%")


def test_the_command_names_a_cache_that_is_not_the_default(
    tmp_path: Path, server: FileServer
) -> None:
    task = full_task(tmp_path, source(server, consent="https://rules.invalid"))
    with pytest.raises(DataUnavailable) as caught:
        prepare(task, "full", tmp_path / "my cache")
    assert caught.value.fix.endswith(
        f"--suite lab --cache-dir '{tmp_path}/my cache' --accept-rules toy"
    )


@pytest.mark.parametrize("package", ["httpx", "tqdm"])
def test_a_missing_package_is_named_with_the_command(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataUnavailable) as caught:
        prepare(full_task(tmp_path, source(server)), "full", tmp_path / "cache")
    assert f"needs the package {package}" in str(caught.value)
    assert caught.value.fix.startswith(
        'pip install "pytest-mlab[full]" && mlab prepare toy --data full'
    )


def test_an_archive_is_unpacked(tmp_path: Path, server: FileServer) -> None:
    server.files["/~kriz/cifar-10-python.tar.gz"] = cifar10_archive()
    server.troubles = [Cut(100)]
    ready = prepare(
        full_task(tmp_path, source(server, "/~kriz/cifar-10-python.tar.gz")),
        "full",
        tmp_path / "cache",
    )
    folder = ready.public / "cifar-10-batches-py"
    assert len(list(folder.iterdir())) == 8
    with (folder / "test_batch").open("rb") as stream:
        assert pickle.load(stream)[b"labels"] == [5, 6]


def test_an_archive_that_would_write_elsewhere_is_the_tasks_fault(
    tmp_path: Path, server: FileServer
) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../../evil"), io.BytesIO())
    server.files["/evil.tar.gz"] = out.getvalue()
    with pytest.raises(
        SuiteError, match=r"evil\.tar\.gz: member '\.\./\.\./evil' would be written outside"
    ):
        prepare(full_task(tmp_path, source(server, "/evil.tar.gz")), "full", tmp_path / "cache")
