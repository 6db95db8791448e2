"""The tests' own cache is the default one, so that commands in messages are short."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the user's cache."""
    monkeypatch.setenv("MLAB_CACHE_DIR", str(tmp_path / "cache"))
