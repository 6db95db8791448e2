"""Fixtures: projects with a toy suite, and pytest run in them. Conftests import them by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project, keep_modules

keep_modules()


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests: the toy data are prepared once."""
    return tmp_path_factory.mktemp("mlab-cache")


@pytest.fixture
def project(
    pytester: pytest.Pytester, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A project with the toy suite's one task, ``guess``."""
    return Project.create(pytester, shared_cache, monkeypatch)
