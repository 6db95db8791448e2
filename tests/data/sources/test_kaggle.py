"""Kaggle data through the real kagglehub: from its cache, and from a stand-in for Kaggle's
servers."""

from __future__ import annotations

import gc
import io
import logging
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.prepare import prepare, refused_rules
from pytest_mlab.errors import DataUnavailable
from tests.data.file_server import FileServer, Status, file_server
from tests.data.shapes import kagglehub_has
from tests.data.tasks import COPY_ALL, task_with

HOUSE_PRICES = {
    "train.csv": "Id,MSSubClass,SalePrice\n1,60,208500\n2,20,181500\n",
    "test.csv": "Id,MSSubClass\n1461,20\n",
    "sample_submission.csv": "Id,SalePrice\n1461,169277.05\n",
    "data_description.txt": "MSSubClass: Identifies the type of dwelling\n",
    "train.csv.gz": "not unpacked",
}
SPACESHIP = {
    "train.csv": (
        "PassengerId,HomePlanet,CryoSleep,Cabin,Transported\n0001_01,Europa,False,B/0/P,False\n"
    ),
    "test.csv": "PassengerId,HomePlanet,CryoSleep,Cabin\n0013_01,Earth,True,G/3/S\n",
    "sample_submission.csv": "PassengerId,Transported\n0013_01,False\n",
}
RULES = "https://www.kaggle.com/competitions/home-data-for-ml-course/rules"
DOWNLOAD = "/v1/competitions.CompetitionApiService/DownloadDataFiles"


def point_kagglehub_at(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Let kagglehub take ``address`` for Kaggle's servers."""
    environment = pytest.importorskip(
        "kagglesdk.kaggle_env", reason="another kagglehub, with its servers built in"
    )
    monkeypatch.setitem(environment._env_to_endpoint, environment.KaggleEnv.PROD, address)


@pytest.fixture(autouse=True)
def kagglehub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and no account."""
    for name in ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLE_KERNEL_RUN_TYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path / "no-account"))
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path / "kagglehub"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "kagglehub"


@pytest.fixture
def kaggle(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A stand-in for Kaggle's servers, and an account there."""
    monkeypatch.setenv("KAGGLE_USERNAME", "someone")
    monkeypatch.setenv("KAGGLE_KEY", "0" * 32)
    with file_server() as server:
        point_kagglehub_at(monkeypatch, server.address)
        yield server
    gc.collect()  # what was left open is this test's fault, not a later one's


def zipped(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def full_task(tmp_path: Path, ref: str, rules: str = RULES) -> Task:
    source = Source("kaggle", ref, size_mb=0.5, licence="competition rules", consent=rules)
    return task_with(tmp_path, source, data_py=COPY_ALL, variant="full")


@pytest.mark.parametrize(
    ("slug", "files"), [("home-data-for-ml-course", HOUSE_PRICES), ("spaceship-titanic", SPACESHIP)]
)
def test_a_competition_in_kagglehubs_cache_needs_neither_account_nor_network(
    tmp_path: Path, kagglehub_cache: Path, slug: str, files: dict[str, str]
) -> None:
    kagglehub_has(kagglehub_cache, slug, files)
    ready = prepare(
        full_task(tmp_path, f"competitions/{slug}"), "full", tmp_path / "cache", consent=[slug]
    )
    assert {name: (ready.public / name).read_text() for name in ready.files} == files


def test_a_pinned_data_set_in_kagglehubs_cache_needs_neither(
    tmp_path: Path, kagglehub_cache: Path
) -> None:
    home = kagglehub_cache / "datasets" / "me" / "points"
    (home / "versions" / "3" / "sub").mkdir(parents=True)
    (home / "versions" / "3" / "sub" / "points.csv").write_text("1\n")
    (home / "3.complete").touch()
    task = full_task(tmp_path, "datasets/me/points/versions/3")
    ready = prepare(task, "full", tmp_path / "cache", consent=["points"])
    assert list(ready.files) == ["sub/points.csv"]


def test_a_competition_is_downloaded_and_unpacked(
    tmp_path: Path, kaggle: FileServer, kagglehub_cache: Path
) -> None:
    kaggle.files[DOWNLOAD] = zipped(HOUSE_PRICES)
    task = full_task(tmp_path, "competitions/home-data-for-ml-course")
    ready = prepare(task, "full", tmp_path / "cache", consent=["home-data-for-ml-course"])
    assert {name: (ready.public / name).read_text() for name in ready.files} == HOUSE_PRICES
    assert (kagglehub_cache / "competitions" / "home-data-for-ml-course.complete").exists()


def test_without_consent_nothing_is_asked_for(tmp_path: Path, kaggle: FileServer) -> None:
    with pytest.raises(DataUnavailable) as caught:
        prepare(
            full_task(tmp_path, "competitions/home-data-for-ml-course"), "full", tmp_path / "cache"
        )
    assert f"read them at {RULES}" in str(caught.value)
    assert "0.5 MB, licence: competition rules" in str(caught.value)
    assert (
        caught.value.fix
        == "mlab prepare toy --data full --suite lab --accept-rules home-data-for-ml-course"
    )
    assert kaggle.ranges == []


def test_rules_can_be_asked_about_beforehand(tmp_path: Path, kagglehub_cache: Path) -> None:
    task, cache = full_task(tmp_path, "competitions/home"), tmp_path / "cache"
    refusal = refused_rules(task, "full", cache, ["another"])
    assert refusal is not None
    assert refusal.fix == "mlab prepare toy --data full --suite lab --accept-rules home"
    assert refused_rules(task, "full", cache, ["home"]) is None
    assert refused_rules(task, "mini", cache, []) is None
    kagglehub_has(kagglehub_cache, "home", SPACESHIP)
    prepare(task, "full", cache, consent=["home"])
    assert refused_rules(task, "full", cache, []) is None


def test_without_an_account_the_command_that_gives_one_is_named(tmp_path: Path) -> None:
    task = full_task(tmp_path, "competitions/home")
    with pytest.raises(DataUnavailable) as caught:
        prepare(task, "full", tmp_path / "cache", consent=["home"])
    assert "create a token at https://www.kaggle.com/settings/api" in str(caught.value)
    assert (
        caught.value.fix
        == "KAGGLE_USERNAME=<name> KAGGLE_KEY=<key> mlab prepare toy --data full --suite lab"
        " --accept-rules home"
    )


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (
            403,
            (
                "Kaggle refuses competitions/home (403): accept the rules with your account at"
                f" {RULES}"
            ),
        ),
        (401, "Kaggle refuses competitions/home (401)"),
        (404, "competitions/home: Kaggle answers 404"),
        (500, "competitions/home: Kaggle answers 500"),
    ],
)
def test_refusals_are_explained(
    tmp_path: Path, kaggle: FileServer, status: int, expected: str
) -> None:
    kaggle.troubles = [Status(status)] * 10
    with pytest.raises(DataUnavailable) as caught:
        prepare(
            full_task(tmp_path, "competitions/home"), "full", tmp_path / "cache", consent=["home"]
        )
    assert expected in str(caught.value)


def test_a_broken_download_is_unavailable(tmp_path: Path, kaggle: FileServer) -> None:
    kaggle.files[DOWNLOAD] = b"no archive"
    with pytest.raises(
        DataUnavailable, match="competitions/home could not be fetched: Unsupported archive type"
    ):
        prepare(
            full_task(tmp_path, "competitions/home"), "full", tmp_path / "cache", consent=["home"]
        )


def test_no_network_is_unavailable(
    tmp_path: Path, kaggle: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    point_kagglehub_at(monkeypatch, "http://127.0.0.1:1")
    with pytest.raises(DataUnavailable, match="competitions/home could not be fetched: "):
        prepare(
            full_task(tmp_path, "competitions/home"), "full", tmp_path / "cache", consent=["home"]
        )


def test_kagglehubs_messages_appear_with_progress_only(
    tmp_path: Path, kagglehub_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kagglehub_has(kagglehub_cache, "home", SPACESHIP)
    task = full_task(tmp_path, "competitions/home")
    level = logging.getLogger("kagglehub").level
    prepare(task, "full", tmp_path / "quiet", consent=["home"])
    assert [record for record in caplog.records if record.name.startswith("kagglehub")] == []
    assert logging.getLogger("kagglehub").level == level


def test_the_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kagglehub", None)
    with pytest.raises(
        DataUnavailable,
        match=r'needs the package kagglehub; to fix: pip install "pytest-mlab\[full\]"',
    ):
        prepare(
            full_task(tmp_path, "competitions/home"), "full", tmp_path / "cache", consent=["home"]
        )
