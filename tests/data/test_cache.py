"""Where the cache is."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.data.cache import default_cache_dir


def test_the_variable_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAB_CACHE_DIR", str(tmp_path / "here"))
    assert default_cache_dir() == tmp_path / "here"


def test_without_it_the_platforms_place_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLAB_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "pytest-mlab"
