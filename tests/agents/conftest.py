"""A trial's model over HTTP: scripted server, the real litellm, a real trace and content store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.plan import Models
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.retry import Retry
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.events import ModelCall
from pytest_mlab.store.journal import Journal, read_events
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.metering import MeteredModel
from tests.support.scripted_server import ScriptedServer

KEY = "sk-not-a-real-key-0123456789"


@dataclass(frozen=True)
class Trial:
    """What a trial writes, and its model."""

    folder: Path
    server: ScriptedServer
    model: MeteredModel
    account: Account

    @property
    def calls(self) -> list[ModelCall]:
        """The model calls in the trace."""
        return [
            event
            for event in read_events(self.folder / "trace.jsonl")
            if isinstance(event, ModelCall)
        ]

    def files(self) -> list[Path]:
        """Everything that was written."""
        return [path for path in self.folder.rglob("*") if path.is_file()]


@pytest.fixture(scope="module")
def running_server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def trial(
    running_server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Trial]:
    """A trial whose three models are gpt-4-turbo, gpt-4o and gpt-4o-mini of the scripted server."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", running_server.base_url)
    running_server.restart([], key=KEY)
    client = LitellmClient(Retry(attempts=3, base=0.0))
    account = Account(Budget(max_steps=12))
    models = Models("gpt-4-turbo", "gpt-4o", "gpt-4o-mini")
    with Journal(tmp_path / "trace.jsonl") as journal:
        store = ContentStore(tmp_path / "store")
        redact = Redactor({"OPENAI_API_KEY": KEY})
        yield Trial(
            tmp_path,
            running_server,
            MeteredModel(client, models, account, journal, store, redact),
            account,
        )
