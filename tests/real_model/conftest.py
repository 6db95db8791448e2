"""The real model: one server for each worker of pytest-xdist, so that its counters are of one test
at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.llama_server import LlamaServer, missing

KEY = "sk-not-a-real-key-0123456789"
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.real_model)


@pytest.fixture(scope="session")
def running_model() -> Iterator[LlamaServer]:
    if reason := missing():
        pytest.skip(reason)
    with LlamaServer() as server:
        yield server


@pytest.fixture
def model(running_model: LlamaServer, monkeypatch: pytest.MonkeyPatch) -> LlamaServer:
    """The session's server; OPENAI_BASE_URL points to it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", running_model.base_url)
    monkeypatch.setenv("MLAB_MODEL_ATTEMPTS", "1")
    return running_model
