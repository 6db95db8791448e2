"""Hugging Face data through the real huggingface_hub: from its cache, and from a stand-in for the
hub."""

from __future__ import annotations

import gc
import hashlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.prepare import prepare
from pytest_mlab.data.sources import download
from pytest_mlab.errors import DataUnavailable, SuiteError
from tests.data.file_server import Cut, FileServer, Status, file_server
from tests.data.shapes import hub_cache_has, hub_serves
from tests.data.tasks import COPY_ALL, task_with

hub = pytest.importorskip("huggingface_hub")
constants = pytest.importorskip("huggingface_hub.constants")

REPOSITORY, REVISION = "lab/points", "e6281661ce1c48d982bc483cf8a173c1bbeb5d31"
FILES = {
    "README.md": b"# points\n",
    "plain/test-00000-of-00001.parquet": b"PAR1" + bytes(range(256)) * 400 + b"PAR1",
    "plain/train-00000-of-00001.parquet": b"PAR1" + bytes(range(255)) * 900 + b"PAR1",
}
TEST, TRAIN = "plain/test-00000-of-00001.parquet", "plain/train-00000-of-00001.parquet"


@pytest.fixture(autouse=True)
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no account, and a hub that nobody answers for."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    point_hub_at(monkeypatch, "http://127.0.0.1:1")
    sleep = time.sleep
    monkeypatch.setattr(
        time, "sleep", lambda seconds: sleep(min(seconds, 0.001))
    )  # the hub's waits between attempts
    monkeypatch.setattr(download, "_sleep", lambda seconds: None)
    return tmp_path / "hub"


def point_hub_at(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """What the environment variable HF_ENDPOINT does when the package is imported."""
    monkeypatch.setattr(constants, "ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A stand-in for the hub that has the repository."""
    with file_server() as running:
        hub_serves(running, REPOSITORY, REVISION, FILES)
        point_hub_at(monkeypatch, running.address)
        yield running
    gc.collect()  # what was left open is this test's fault, not a later one's


def full_task(tmp_path: Path, paths: str = "", *, sha256: str = "", consent: str = "") -> Task:
    ref = f"datasets/{REPOSITORY}@{REVISION}" + (f":{paths}" if paths else "")
    source = Source("huggingface", ref, sha256, size_mb=0.3, licence="CC0", consent=consent)
    return task_with(tmp_path, source, data_py=COPY_ALL, variant="full")


def contents(tmp_path: Path, task: Task) -> dict[str, bytes]:
    ready = prepare(task, "full", tmp_path / "cache")
    return {name: (ready.public / name).read_bytes() for name in ready.files}


def test_files_named_one_by_one_come_from_the_cache_without_the_network(
    tmp_path: Path, hub_cache: Path, server: FileServer
) -> None:
    hub_cache_has(hub_cache, REPOSITORY, REVISION, FILES)
    assert contents(tmp_path, full_task(tmp_path, f"{TEST},{TRAIN}")) == {
        name: FILES[name] for name in (TEST, TRAIN)
    }
    assert server.ranges == []


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("", set(FILES)),
        ("plain/*.parquet", {TEST, TRAIN}),
        (TRAIN, {TRAIN}),
        (f"README.md,{TEST}", {"README.md", TEST}),
    ],
)
def test_a_revisions_files_are_downloaded(
    tmp_path: Path, server: FileServer, paths: str, expected: set[str]
) -> None:
    assert contents(tmp_path, full_task(tmp_path, paths)) == {
        name: FILES[name] for name in expected
    }


def test_a_cache_that_lacks_a_file_is_completed(
    tmp_path: Path, hub_cache: Path, server: FileServer
) -> None:
    hub_cache_has(hub_cache, REPOSITORY, REVISION, {TEST: FILES[TEST], "README.md": b"# points\n"})
    assert set(contents(tmp_path, full_task(tmp_path, f"{TEST},{TRAIN}"))) == {TEST, TRAIN}


def test_a_download_that_was_cut_goes_on_where_it_ended(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    task = full_task(tmp_path, TRAIN)
    address = f"/datasets/{REPOSITORY}/resolve/{REVISION}/{TRAIN}"
    server.cut_once[address] = Cut(100_000)
    try:
        found = contents(tmp_path, task)
    except DataUnavailable:
        found = contents(tmp_path, task)
    assert found == {TRAIN: FILES[TRAIN]}
    assert "bytes=100000-" in server.ranges


def test_a_file_is_checked_by_its_sha256(tmp_path: Path, hub_cache: Path) -> None:
    hub_cache_has(hub_cache, REPOSITORY, REVISION, FILES)
    right = hashlib.sha256(FILES[TRAIN]).hexdigest()
    assert contents(tmp_path, full_task(tmp_path, TRAIN, sha256=right)) == {TRAIN: FILES[TRAIN]}
    with pytest.raises(
        DataUnavailable, match=rf"sha256 {right}, expected {'1' * 64}; remove .*blobs"
    ):
        prepare(full_task(tmp_path, TRAIN, sha256="1" * 64), "full", tmp_path / "another")


@pytest.mark.parametrize("paths", ["plain/no-such.parquet", "*.csv"])
def test_a_path_that_is_not_there_is_the_tasks_fault(
    tmp_path: Path, server: FileServer, paths: str
) -> None:
    with pytest.raises(SuiteError, match=r"the repository has no file '.*' at this revision"):
        prepare(full_task(tmp_path, paths), "full", tmp_path / "cache")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "RepoNotFound",
            (
                "no such repository, or shows it only to accounts that accepted its terms; to fix:"
                " HF_TOKEN="
            ),
        ),
        (
            "GatedRepo",
            (
                "no such repository, or shows it only to accounts that accepted its terms; to fix:"
                " HF_TOKEN="
            ),
        ),
        ("RevisionNotFound", "Hugging Face has no such revision"),
    ],
)
def test_refusals_are_explained(
    tmp_path: Path, server: FileServer, code: str, message: str
) -> None:
    server.headers["404"] = {"X-Error-Code": code}
    server.files.clear()
    with pytest.raises((DataUnavailable, SuiteError)) as caught:
        prepare(full_task(tmp_path, TRAIN), "full", tmp_path / "cache")
    assert message in f"{caught.value}"


def test_no_network_is_said_after_three_attempts_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(download, "_sleep", waits.append)
    monkeypatch.setattr(hub, "snapshot_download", None)  # is not reached
    with pytest.raises(
        DataUnavailable,
        match=(
            r"could not be fetched: http://127.0.0.1:1: ConnectError.*"
            r"to fix: mlab prepare toy --data"
        ),
    ):
        prepare(full_task(tmp_path), "full", tmp_path / "cache")
    assert waits == [download.UNREACHED_PAUSE] * 2


def test_offline_the_hub_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(download, "client", None)  # is not reached
    with pytest.raises(DataUnavailable, match="could not be fetched: "):
        prepare(full_task(tmp_path), "full", tmp_path / "cache")


def test_a_hub_in_trouble_is_unavailable(tmp_path: Path, server: FileServer) -> None:
    server.troubles = [Status(500)] * 100
    with pytest.raises(DataUnavailable, match="could not be fetched: "):
        prepare(full_task(tmp_path, TRAIN), "full", tmp_path / "cache")


def test_rules_must_have_been_accepted_before_a_byte_is_fetched(
    tmp_path: Path, server: FileServer
) -> None:
    task = full_task(tmp_path, TRAIN, consent="https://rules.invalid")
    with pytest.raises(DataUnavailable, match=r"read them at https://rules\.invalid"):
        prepare(task, "full", tmp_path / "cache")
    assert server.ranges == []
    assert prepare(task, "full", tmp_path / "cache", consent=["toy"]).files.keys() == {TRAIN}


def test_size_and_licence_are_said_and_bars_are_for_terminals(
    tmp_path: Path, server: FileServer, capfd: pytest.CaptureFixture[str]
) -> None:
    task = full_task(tmp_path, TRAIN)
    prepare(task, "full", tmp_path / "lines", progress=True)
    said = capfd.readouterr().err
    assert "%" not in said
    assert (
        f"fetching datasets/{REPOSITORY}@{REVISION}:{TRAIN} from Hugging Face (0.3 MB, licence:"
        " CC0)" in said
    )
    assert not hub.utils.are_progress_bars_disabled()


def test_the_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        DataUnavailable, match=r"needs the package huggingface_hub; to fix: pip install .*full"
    ):
        prepare(full_task(tmp_path), "full", tmp_path / "cache")
