"""Commands about one task that messages print."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.core.task import Task
from pytest_mlab.core.task_commands import command, measure_command, suite_of
from pytest_mlab.data.sources.base import Options, prepare_command
from pytest_mlab.suites.catalog import Catalog
from tests.support.toy_suite import write_toy_suite


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A task of a suite that is given by its folder."""
    write_toy_suite(tmp_path)
    suite = Catalog(tmp_path, tmp_path / "cache").suite(str(tmp_path / "task_suites" / "toy"))
    return suite.task("guess")


def test_a_suite_that_is_not_found_by_name_is_named_by_its_folder(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert suite_of(task) == "toy"
    assert measure_command(task, "mini") == "mlab measure guess --data mini --suite toy --write"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    folder = tmp_path.resolve() / "task_suites" / "toy"
    assert suite_of(task) == str(folder)
    assert command("measure", task) == f"mlab measure guess --suite {folder}"


def test_the_printed_command_prepares_what_the_run_uses(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the folder of the run and from another, also where there is no default cache."""
    cache = tmp_path / "own cache"
    monkeypatch.setenv("MLAB_CACHE_DIR", str(tmp_path / "other"))
    for place, ended in (("", "prepared in"), ("elsewhere", "ready")):
        (tmp_path / place).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / place)
        mlab, *words = shlex.split(prepare_command(task, Options(cache, "mini")))
        assert (mlab, cli.main(words)) == ("mlab", 0)
        out = capsys.readouterr().out
        assert ended in out
        assert str(cache) in out
