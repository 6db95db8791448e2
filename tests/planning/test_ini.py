"""pytest's ini settings, read without pytest."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.errors import ConfigError
from pytest_mlab.planning.ini import read_ini


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\nmlab_repeats = 3\nmlab_model = a 'b c'\n"),
        ("tox.ini", "[pytest]\nmlab_repeats = 3\nmlab_model = a 'b c'\n"),
        ("setup.cfg", "[tool:pytest]\nmlab_repeats = 3\nmlab_model = a 'b c'\n"),
        (
            "pyproject.toml",
            '[tool.pytest.ini_options]\nmlab_repeats = "3"\nmlab_model = ["a", "b c"]\n',
        ),
        ("pyproject.toml", '[tool.pytest]\nmlab_repeats = 3\nmlab_model = ["a", "b c"]\n'),
        ("pytest.toml", '[pytest]\nmlab_repeats = 3\nmlab_model = ["a", "b c"]\n'),
    ],
)
def test_every_kind_of_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    ini = read_ini(tmp_path)
    assert str(ini("mlab_repeats")) == "3"
    assert ini("mlab_model") == ["a", "b c"]
    assert ini("mlab_agent") is None


def test_no_file_is_no_setting(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert read_ini(tmp_path)("mlab_repeats") is None


def test_the_first_file_that_configures_pytest_counts(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmlab_repeats = 3\n")
    assert read_ini(tmp_path)("mlab_repeats") is None
    (tmp_path / "pytest.ini").unlink()
    assert read_ini(tmp_path)("mlab_repeats") == 3


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest\n")
    with pytest.raises(ConfigError, match=r"pyproject\.toml"):
        read_ini(tmp_path)
