"""Where suites and agents are found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_mlab.errors import ConfigError
from pytest_mlab.lib import locate


def test_a_source_checkout_has_its_top_level_folders() -> None:
    top = Path(locate.__file__).resolve().parents[2]
    assert locate.builtin("task_suites") == top / "task_suites"
    assert locate.builtin("agents") == top / "agents"


def test_a_wheel_has_package_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "pytest_mlab"
    (package / "_builtin" / "agents").mkdir(parents=True)
    (tmp_path / "site" / "agents").mkdir()
    monkeypatch.setattr(locate, "_PACKAGE", package)
    assert locate.builtin("agents") == package / "_builtin" / "agents"
    with pytest.raises(ConfigError, match="no built-in task_suites"):
        locate.builtin("task_suites")


def test_the_users_own_folder_comes_first(tmp_path: Path) -> None:
    shipped = locate.builtin("task_suites")
    assert locate.search_path(tmp_path, "task_suites") == (shipped,)
    (tmp_path / "task_suites").mkdir()
    assert locate.search_path(tmp_path, "task_suites") == (tmp_path / "task_suites", shipped)


def test_in_the_checkout_itself_the_folder_is_named_once() -> None:
    shipped = locate.builtin("task_suites")
    assert locate.search_path(shipped.parent, "task_suites") == (shipped,)


def _install(site: Path, value: str) -> None:
    info = site / "demo-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pytest_mlab.suites]\ndemo-lab = {value}\n")


def test_an_installed_package_offers_a_suite_without_being_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, "demo_suite_package")
    (tmp_path / "demo_suite_package").mkdir()
    (tmp_path / "demo_suite_package" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert locate.entry_point_suites()["demo-lab"] == tmp_path / "demo_suite_package"
    assert "demo_suite_package" not in sys.modules


@pytest.mark.parametrize("value", ["no_such_package", "no_such.package", "json.decoder"])
def test_an_entry_point_that_names_no_package_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    _install(tmp_path, value)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(
        ConfigError, match=f"'demo-lab' of group pytest_mlab.suites names '{value}'"
    ):
        locate.entry_point_suites()
