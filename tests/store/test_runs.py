from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import ConfigError, StoreError
from pytest_mlab.store.runs import find_run, find_trial
from tests.core.builders import a_result
from tests.reporting.runs import a_run


def test_a_run_is_found_by_id_by_path_and_as_the_last(tmp_path: Path) -> None:
    for name in ("20240101-a", "20240102-b"):
        a_run(tmp_path / name, [a_result(1)])
    (tmp_path / "20240109-no-run").mkdir()
    assert find_run("20240101-a", tmp_path).path == tmp_path / "20240101-a"
    assert (
        find_run(str(tmp_path / "20240101-a"), tmp_path / "elsewhere").path
        == tmp_path / "20240101-a"
    )
    assert find_run("last", tmp_path).path == tmp_path / "20240102-b"


def test_the_last_run_is_the_last_that_can_be_read(tmp_path: Path) -> None:
    a_run(tmp_path / "20240101-a", [a_result(1)])
    a_run(tmp_path / "20240102-b", [a_result(1)])
    (tmp_path / "20240102-b" / "plan.json").write_text("{")
    assert find_run("last", tmp_path).path.name == "20240101-a"
    with pytest.raises(StoreError):
        find_run("20240102-b", tmp_path)


def test_an_unknown_run_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no run"):
        find_run("x", tmp_path / "none")
    with pytest.raises(ConfigError, match="holds no run"):
        find_run("last", tmp_path / "none")
    a_run(tmp_path / "20240101-a", [a_result(1)])
    with pytest.raises(ConfigError, match=r"'20240101-b' .*20240101-a"):
        find_run("20240101-b", tmp_path)


def test_a_trial_is_found_by_name_and_by_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = a_run(Path("r"), [a_result(1), a_result(2)])
    assert find_trial("toy-research-m-2", run) == TrialId("toy", "research", "m", 2)
    assert find_trial("r/trials/toy/research--m/2/", run) == TrialId("toy", "research", "m", 2)
    with pytest.raises(ConfigError, match=r"did you mean 'toy-research-m-1'\?.*has 2"):
        find_trial("toy-reserch-m-1", run)
