"""Which suites and tasks are found, and what an unknown name is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.errors import ConfigError, SuiteError
from pytest_mlab.lib import locate
from pytest_mlab.suites.catalog import Catalog
from tests.suites.folders import toy_task


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built-in folder of suites that holds ``lab`` with tasks ``toy`` and ``trains``."""
    place = tmp_path / "shipped" / "task_suites"
    toy_task(place / "lab")
    toy_task(place / "lab", "trains")
    monkeypatch.setattr(locate, "builtin", lambda kind: place.parent / kind)
    return place


def test_tasks_come_sorted_and_other_folders_are_no_tasks(shipped: Path, tmp_path: Path) -> None:
    toy_task(shipped / "lab", "_draft")
    toy_task(shipped / "lab", "alpha")
    (shipped / "lab" / "notes").mkdir()
    (shipped / "empty").mkdir()
    (shipped / "README.md").write_text("text")
    catalog = Catalog(tmp_path / "project")
    assert catalog.suites() == ("lab",)
    assert [task.name for task in catalog.suite("lab").tasks()] == ["alpha", "toy", "trains"]
    assert catalog.suite("lab").task("toy").suite == "lab"


def test_the_users_suite_of_the_same_name_wins_whole(shipped: Path, tmp_path: Path) -> None:
    toy_task(tmp_path / "project" / "task_suites" / "lab", "own")
    toy_task(tmp_path / "project" / "task_suites" / "mine", "own")
    catalog = Catalog(tmp_path / "project")
    assert catalog.suites() == ("lab", "mine")
    assert catalog.suite("lab").names == ("own",)
    assert (
        catalog.suite("lab").folders["own"].parent == tmp_path / "project" / "task_suites" / "lab"
    )


def test_unknown_names_are_answered_with_what_exists_nearest_first(
    shipped: Path, tmp_path: Path
) -> None:
    catalog = Catalog(tmp_path / "project")
    with pytest.raises(
        ConfigError, match=r"unknown suite 'labs'; did you mean 'lab'\? suites: lab"
    ):
        catalog.suite("labs").tasks()
    with pytest.raises(
        ConfigError, match=r"unknown task 'trian'; did you mean 'trains'\? tasks: trains, toy"
    ):
        catalog.suite("lab").task("trian")
    with pytest.raises(ConfigError, match=r"unknown task 'zzzz'; tasks: "):
        catalog.suite("lab").task("zzzz")


def test_a_broken_task_keeps_its_name_and_spoils_only_itself(shipped: Path, tmp_path: Path) -> None:
    (shipped / "lab" / "toy" / "task.toml").write_text("name = \n")
    catalog = Catalog(tmp_path / "project")
    with pytest.raises(ConfigError, match="tasks: trains, toy"):
        catalog.suite("lab").task("train")
    assert catalog.suite("lab").task("trains").name == "trains"
    with pytest.raises(SuiteError, match=r"toy/task\.toml:1: not valid TOML"):
        catalog.suite("lab").task("toy")


def test_all_broken_tasks_are_listed_together(shipped: Path, tmp_path: Path) -> None:
    for name in ("toy", "trains"):
        (shipped / "lab" / name / "task.toml").write_text("name = \n")
    with pytest.raises(SuiteError) as caught:
        Catalog(tmp_path / "project").suite("lab").tasks()
    assert len(str(caught.value).splitlines()) == 2


def test_a_suite_of_an_installed_package_comes_last(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy_task(tmp_path / "package", "packed")
    entries = {"lab": tmp_path / "package", "extra": tmp_path / "package"}
    monkeypatch.setattr(locate, "entry_point_suites", lambda: entries)
    catalog = Catalog(tmp_path / "project")
    assert catalog.suites() == ("extra", "lab")
    assert catalog.suite("extra").names == ("packed",)
    assert catalog.suite("lab").names == ("toy", "trains")
