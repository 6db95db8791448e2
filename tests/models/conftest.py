"""One scripted server a module, with a key in the environment, for tests that go through the real
litellm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.scripted_server import ScriptedServer

KEY = "sk-not-a-real-key-0123456789"


@pytest.fixture(scope="module")
def running_server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def server(running_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> ScriptedServer:
    """The module's server with an empty script; OPENAI_BASE_URL points to it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", running_server.base_url)
    running_server.restart([])
    return running_server
