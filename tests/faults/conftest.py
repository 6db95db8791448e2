"""The fault matrix: whole sessions in processes of their own, killed, starved and lied to."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder: they take minutes, and have a run of their own."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.faults)
