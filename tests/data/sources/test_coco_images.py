"""Images from a list: all of them, once, in spite of trouble, and never outside their folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.prepare import prepare
from pytest_mlab.data.sources import coco_images, download
from pytest_mlab.errors import DataUnavailable, SuiteError
from tests.data.file_server import Cut, FileServer, Status, file_server
from tests.data.tasks import COPY_ALL, task_with

COUNT = 20


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(coco_images, "_sleep", lambda seconds: None)
    with file_server() as running:
        for number in range(COUNT):
            running.files[f"/images/{number}.png"] = content(number)
        yield running


def content(number: int) -> bytes:
    return b"image %d" % number * 100


def task_for(
    tmp_path: Path, server: FileServer, *, names: dict[int, str] | None = None, consent: str = ""
) -> Task:
    """A task with an embedded list of the server's images."""
    entries = [
        {
            "file_name": (names or {}).get(n, f"{n}.png"),
            "coco_url": f"{server.address}/images/{n}.png",
        }
        for n in range(COUNT)
    ]
    return task_with_list(tmp_path, json.dumps({"images": entries}), consent=consent)


def task_with_list(tmp_path: Path, listed: str, *, consent: str = "") -> Task:
    sources = (
        Source("embedded", "train.json", licence="CC0"),
        Source("coco-images", "train.json", size_mb=1.0, licence="CC BY", consent=consent),
    )
    task = task_with(tmp_path, *sources, data_py=COPY_ALL, variant="full")
    (task.folder / "train.json").write_text(listed, encoding="utf-8")
    return task


def test_all_images_are_fetched_once(tmp_path: Path, server: FileServer) -> None:
    task = task_for(tmp_path, server)
    ready = prepare(task, "full", tmp_path / "cache")
    for number in range(COUNT):
        assert (ready.public / "images" / f"{number}.png").read_bytes() == content(number)
    assert len(server.ranges) == COUNT
    prepare(task, "full", tmp_path / "cache", force=True)
    assert len(server.ranges) == COUNT


def test_an_image_that_is_listed_twice_is_fetched_once(tmp_path: Path, server: FileServer) -> None:
    url = f"{server.address}/images/3.png"
    listed = {
        "images": [{"file_name": "a.png", "coco_url": url}, {"file_name": "b.png", "coco_url": url}]
    }
    ready = prepare(task_with_list(tmp_path, json.dumps(listed)), "full", tmp_path / "cache")
    assert (ready.public / "images" / "a.png").read_bytes() == (
        ready.public / "images" / "b.png"
    ).read_bytes()
    assert len(server.ranges) == 1


def test_trouble_on_the_way_is_got_over(tmp_path: Path, server: FileServer) -> None:
    server.troubles = [Status(503), Cut(10), Status(429)]
    ready = prepare(task_for(tmp_path, server), "full", tmp_path / "cache")
    for number in range(COUNT):
        assert (ready.public / "images" / f"{number}.png").read_bytes() == content(number)
    assert len(server.ranges) == COUNT + 3


def test_missing_images_are_counted_and_the_others_kept(tmp_path: Path, server: FileServer) -> None:
    gone = server.files.pop("/images/7.png")
    task = task_for(tmp_path, server)
    with pytest.raises(
        DataUnavailable,
        match=r"1 of 20 images are missing, among them \S+/images/7\.png \(the server",
    ):
        prepare(task, "full", tmp_path / "cache")
    server.files["/images/7.png"] = gone
    before = len(server.ranges)
    prepare(task, "full", tmp_path / "cache")
    assert len(server.ranges) == before + 1


def test_a_server_that_stays_away_is_not_asked_for_everything(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coco_images, "MOST_FAILURES", 3)
    monkeypatch.setattr(coco_images, "AT_ONCE", 2)
    server.files.clear()
    with pytest.raises(DataUnavailable, match="20 of 20 images are missing"):
        prepare(task_for(tmp_path, server), "full", tmp_path / "cache")
    assert len(server.ranges) < 10


def test_nobody_there_is_said_after_three_attempts_at_the_first_images(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(coco_images, "_sleep", waits.append)
    monkeypatch.setattr(coco_images, "AT_ONCE", 2)
    server.address = "http://127.0.0.1:1"
    with pytest.raises(
        DataUnavailable, match=r"20 of 20 images are missing, among them .*ConnectError"
    ):
        prepare(task_for(tmp_path, server), "full", tmp_path / "cache")
    assert set(waits) == {download.UNREACHED_PAUSE}
    assert len(waits) <= 2 * 2 * 2


def test_images_of_a_server_that_is_away_do_not_end_those_of_another(
    tmp_path: Path, server: FileServer
) -> None:
    addresses = [f"{server.address}/images/{n}.png" for n in range(COUNT)]
    addresses[10] = "http://127.0.0.1:1/gone.png"
    entries = [
        {"file_name": f"{n}.png", "coco_url": address} for n, address in enumerate(addresses)
    ]
    task = task_with_list(tmp_path, json.dumps({"images": entries}))
    with pytest.raises(
        DataUnavailable,
        match=r"1 of 20 images are missing, among them http://127\.0\.0\.1:1/gone\.png",
    ):
        prepare(task, "full", tmp_path / "cache")


def test_an_empty_answer_is_no_image(tmp_path: Path, server: FileServer) -> None:
    server.files["/images/0.png"] = b""
    with pytest.raises(DataUnavailable, match="the server sent nothing"):
        prepare(task_for(tmp_path, server), "full", tmp_path / "cache")


@pytest.mark.parametrize("name", ["../out.png", "/etc/passwd", "a/b.png", "", ".hidden"])
def test_names_outside_the_folder_are_refused(
    tmp_path: Path, server: FileServer, name: str
) -> None:
    with pytest.raises(SuiteError, match="which is not safe"):
        prepare(task_for(tmp_path, server, names={4: name}), "full", tmp_path / "cache")
    assert not server.ranges


def test_other_kinds_of_addresses_are_refused(tmp_path: Path) -> None:
    listed = {"images": [{"file_name": "a.png", "coco_url": "file:///etc/passwd"}]}
    with pytest.raises(SuiteError, match="which is not safe"):
        prepare(task_with_list(tmp_path, json.dumps(listed)), "full", tmp_path / "cache")


@pytest.mark.parametrize(
    "listed", ["", "[]", "{}", '{"images": [{"file_name": "a.png"}]}', '{"images": 3}']
)
def test_what_is_no_list_of_images_is_the_tasks_fault(tmp_path: Path, listed: str) -> None:
    with pytest.raises(SuiteError, match=r"train\.json.* COCO file"):
        prepare(task_with_list(tmp_path, listed), "full", tmp_path / "cache")


def test_rules_and_size_are_said_before_anything_is_fetched(
    tmp_path: Path, server: FileServer
) -> None:
    task = task_for(tmp_path, server, consent="https://example.org/terms")
    with pytest.raises(
        DataUnavailable,
        match=r"1 MB, licence: CC BY\) come under rules .* https://example\.org/terms",
    ):
        prepare(task, "full", tmp_path / "cache")
    assert not server.ranges
    prepare(task, "full", tmp_path / "cache", consent=[task.name])


def test_a_missing_package_is_named(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(DataUnavailable, match="needs the package httpx"):
        prepare(task_for(tmp_path, server), "full", tmp_path / "cache")
