"""A trial's model behind the endpoint: scripted provider, real litellm, metering, and a sandbox
that leads to it."""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.model_api import Model, ModelReply
from pytest_mlab.core.plan import Models
from pytest_mlab.core.sandbox_api import Connection, SandboxOptions, SandboxSpec
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.models.endpoint.server import Endpoint
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.retry import Retry
from pytest_mlab.sandboxes import make
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.journal import Journal
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.metering import MeteredModel
from tests.support.scripted_server import Script, ScriptedServer

KEY = "sk-not-a-real-key-0123456789"
MAIN, FAST = "gpt-4-turbo", "gpt-4o-mini"


@dataclass
class Served:
    """The endpoint in use: ``about`` is what each call was said to be."""

    server: ScriptedServer
    endpoint: Endpoint
    connection: Connection
    make_model: Callable[[Account], Model]
    account: Account = field(default_factory=lambda: Account(Budget()))
    about: list[Mapping[str, Any]] = field(default_factory=list)

    def script(self, replies: Script, budget: Budget | None = None) -> None:
        """Begin anew: what the provider answers, and what may be used."""
        self.server.restart(replies, key=KEY)
        self.account = Account(budget or Budget())
        self.about.clear()

    def answer(self, about: Mapping[str, Any], call: Callable[[Model], ModelReply]) -> ModelReply:
        """A model call."""
        self.about.append(about)
        return call(self.make_model(self.account))

    def run(self, code: str) -> Any:
        """Run Python code inside with the endpoint's variables; what it printed last, as JSON. One
        process runs all of it, so that client packages, which take seconds, are imported once."""
        variables = self.endpoint.variables(self.connection.relay_port)
        done = self.connection.repl(
            f"import os\nos.environ.update({variables!r})\n{code}", timeout=120
        )
        assert done.exit_status == 0, done.output.decode()
        return json.loads(done.output.splitlines()[-1])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """In a bubblewrap sandbox, where the packages of the harness's own Python are seen."""
    if shutil.which("bwrap") is None:
        pytest.skip("bwrap is not installed: apt-get install bubblewrap")
    with serving(tmp_path_factory.mktemp("served"), "bubblewrap") as found:
        yield found


@contextlib.contextmanager
def serving(folder: Path, sandbox: str, docker_image: str = "") -> Iterator[Served]:
    """A model that is served to one sandbox."""
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        server = stack.enter_context(ScriptedServer())
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        journal = stack.enter_context(Journal(folder / "trace.jsonl"))
        store = ContentStore(folder / "store")

        def make_model(account: Account) -> Model:
            client = LitellmClient(Retry(attempts=2, base=0.0))
            return MeteredModel(
                client, Models(MAIN, "", FAST), account, journal, store, Redactor({"KEY": KEY})
            )

        endpoint = Endpoint(folder / "endpoint", {"main": [MAIN], "fast": [FAST]})
        stack.callback(endpoint.close)
        (folder / "workspace").mkdir()
        spec = SandboxSpec(
            folder / "workspace", f"endpoint-{uuid.uuid4().hex}", relay=endpoint.path
        )
        connection = make(SandboxOptions(sandbox, docker_image)).open(spec)
        stack.callback(connection.close)
        found = Served(server, endpoint, connection, make_model)
        stack.enter_context(endpoint.serve(found.answer))
        yield found
