"""Objects of a bucket: listed first, each downloaded once, resumed, checked."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.prepare import prepare
from pytest_mlab.data.sources import download
from pytest_mlab.errors import DataUnavailable, SuiteError
from tests.data.file_server import Cut, FileServer, Status, file_server
from tests.data.shapes import bucket_serves
from tests.data.tasks import COPY_ALL, task_with

BUCKET = "goes_contrails_dataset"
LIST = f"/storage/v1/b/{BUCKET}/o"
TRAIN, TEST = (
    "2023/tfrecords/train.tfrecords-00000-of-00100",
    "2023/tfrecords/validation.tfrecords-00000-of-00100",
)
OBJECTS = {
    TRAIN: bytes(range(256)) * 400,
    TEST: b"validation" * 100,
    "2023/tfrecords/notes.txt": b"notes",
    "2023/other/train.tfrecords-00000-of-00100": b"other",
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(download, "_sleep", lambda seconds: None)
    with file_server() as running:
        bucket_serves(running, BUCKET, OBJECTS)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", running.address)
        yield running


def full_task(
    tmp_path: Path, pattern: str = "2023/tfrecords/*.tfrecords-*", consent: str = ""
) -> Task:
    source = Source("gcs", f"{BUCKET}/{pattern}", size_mb=1.0, licence="CC BY 4.0", consent=consent)
    return task_with(tmp_path, source, data_py=COPY_ALL, variant="full")


def contents(tmp_path: Path, task: Task, **options: Any) -> dict[str, bytes]:
    ready = prepare(task, "full", tmp_path / "cache", **options)
    return {name: (ready.public / name).read_bytes() for name in ready.files}


def test_the_objects_that_match_are_fetched_once(tmp_path: Path, server: FileServer) -> None:
    task = full_task(tmp_path)
    expected = {Path(name).name: OBJECTS[name] for name in (TRAIN, TEST)}
    assert contents(tmp_path, task) == expected
    assert server.ranges == [""] * 3  # the list and two objects
    assert contents(tmp_path, task, force=True) == expected
    assert server.ranges == [""] * 4


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (
            "2023/*/train*",
            {"tfrecords/train.tfrecords-00000-of-00100", "other/train.tfrecords-00000-of-00100"},
        ),
        (TRAIN, {"train.tfrecords-00000-of-00100"}),
        ("2023/tfrecords/notes.???", {"notes.txt"}),
    ],
)
def test_names_are_kept_below_the_patterns_folder(
    tmp_path: Path, server: FileServer, pattern: str, names: set[str]
) -> None:
    assert set(contents(tmp_path, full_task(tmp_path, pattern))) == names


def test_a_list_of_several_pages_is_read_to_its_end(tmp_path: Path, server: FileServer) -> None:
    whole = json.loads(server.files.pop(LIST))
    first, second = whole["items"][:1], whole["items"][1:]
    query = "?prefix=2023%2Ftfrecords%2F&fields=items(name,size,md5Hash,generation),nextPageToken"
    server.files[LIST + query] = json.dumps({"items": first, "nextPageToken": "more/1="}).encode()
    server.files[LIST + query + "&pageToken=more/1%3D"] = json.dumps({"items": second}).encode()
    assert len(contents(tmp_path, full_task(tmp_path))) == 2


def test_a_download_that_was_cut_goes_on_where_it_ended(tmp_path: Path, server: FileServer) -> None:
    address = f"/{BUCKET}/{TRAIN}?generation=1"
    server.cut_once[address] = Cut(50_000)
    contents(tmp_path, full_task(tmp_path))
    assert "bytes=50000-" in server.ranges


def test_another_content_than_listed_is_refused(tmp_path: Path, server: FileServer) -> None:
    server.files[f"/{BUCKET}/{TRAIN}"] = b"x" * len(OBJECTS[TRAIN])
    right = hashlib.md5(OBJECTS[TRAIN]).hexdigest()
    with pytest.raises(
        DataUnavailable,
        match=rf"is not the expected file: md5 \w+ \(102400 bytes\), expected {right}",
    ):
        contents(tmp_path, full_task(tmp_path))


def test_an_object_without_md5_is_checked_by_its_size(tmp_path: Path, server: FileServer) -> None:
    listed = json.loads(server.files[LIST])
    for item in listed["items"]:
        del item["md5Hash"]
    server.files[LIST] = json.dumps(listed).encode()
    server.files[f"/{BUCKET}/{TRAIN}"] = b"short"
    with pytest.raises(DataUnavailable, match="is not the expected file: 5 bytes, expected 102400"):
        contents(tmp_path, full_task(tmp_path))
    server.files[f"/{BUCKET}/{TRAIN}"] = OBJECTS[TRAIN]
    assert len(contents(tmp_path, full_task(tmp_path))) == 2


def test_a_new_generation_is_another_object(tmp_path: Path, server: FileServer) -> None:
    task = full_task(tmp_path)
    contents(tmp_path, task)
    content = bytes(reversed(OBJECTS[TRAIN]))
    listed = json.loads(server.files[LIST])
    listed["items"][0].update(
        generation="7", md5Hash=base64.b64encode(hashlib.md5(content).digest()).decode()
    )
    server.files[LIST] = json.dumps(listed).encode()
    server.files[f"/{BUCKET}/{TRAIN}"] = content
    assert contents(tmp_path, task, force=True)[Path(TRAIN).name] == content


def test_number_size_and_licence_are_said_as_they_are_before_an_object_is_fetched(
    tmp_path: Path, server: FileServer, capsys: pytest.CaptureFixture[str]
) -> None:
    contents(tmp_path, full_task(tmp_path), progress=True)
    said = capsys.readouterr().err
    assert (
        f"downloading 2 of 2 objects of {BUCKET}/2023/tfrecords/*.tfrecords-* (0.1034 MB, licence:"
        " CC BY 4.0)" in said
    )


def test_rules_must_have_been_accepted_before_the_list_is_read(
    tmp_path: Path, server: FileServer
) -> None:
    task = full_task(tmp_path, consent="https://rules.invalid")
    with pytest.raises(DataUnavailable, match=r"read them at https://rules\.invalid"):
        contents(tmp_path, task)
    assert server.ranges == []
    contents(tmp_path, task, consent=["toy"])


def test_no_such_objects_are_the_tasks_fault(tmp_path: Path, server: FileServer) -> None:
    with pytest.raises(SuiteError, match="the bucket has no such objects"):
        contents(tmp_path, full_task(tmp_path, "2023/tfrecords/*.zip"))


@pytest.mark.parametrize(
    "name", ["2023/tfrecords/../../x.tfrecords-1", "2023/tfrecords//x.tfrecords-1"]
)
def test_names_outside_the_folder_are_refused(
    tmp_path: Path, server: FileServer, name: str
) -> None:
    bucket_serves(server, BUCKET, {name: b"x"})
    with pytest.raises(DataUnavailable, match=r"x\.tfrecords-1"):
        contents(tmp_path, full_task(tmp_path))


@pytest.mark.parametrize(("status", "requests"), [(404, 1), (403, 1), (503, 5)])
def test_a_bucket_that_refuses_its_list(
    tmp_path: Path, server: FileServer, status: int, requests: int
) -> None:
    server.troubles = [Status(status)] * 10
    with pytest.raises(
        DataUnavailable,
        match=rf"the list of {BUCKET}/.*the server answers {status}; to fix: mlab prepare",
    ):
        contents(tmp_path, full_task(tmp_path))
    assert len(server.ranges) == requests


def test_a_list_that_is_none(tmp_path: Path, server: FileServer) -> None:
    server.files[LIST] = b"<html>"
    with pytest.raises(DataUnavailable, match="JSON object"):
        contents(tmp_path, full_task(tmp_path))


def test_nobody_there_is_said_after_three_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(download, "_sleep", waits.append)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:1")
    with pytest.raises(DataUnavailable, match=r"the list of .*ConnectError"):
        contents(tmp_path, full_task(tmp_path))
    assert waits == [download.UNREACHED_PAUSE] * 2
