"""A client that records, and that no secret enters a recording."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_mlab.core.model_api import Message, ModelReply, ModelRequest, ToolCall
from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import (
    BadRequestError,
    ContextWindowError,
    ModelError,
    RateLimitError,
    StoreError,
)
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.recording.format import Header, RecordedError, read_recording
from pytest_mlab.models.recording.recorder import WORKSPACE, RecordingClient, cleaner
from pytest_mlab.models.recording.writer import RecordingFile
from pytest_mlab.models.retry import Retry
from tests.support import scripted_server as script
from tests.support.scripted_server import ScriptedServer

HEADER = Header(TrialId("t", "a", "m", 1), "", "")
SECRET = "a-password-of-mine"
ENVIRON = {"OPENAI_API_KEY": "sk-not-a-real-key-0123456789", "MLAB_TEST_TOKEN": SECRET}


def recorded(
    tmp_path: Path, server: ScriptedServer, *requests: ModelRequest
) -> tuple[bytes, list[object]]:
    """The recording of ``requests`` as bytes, and what came of each."""
    file = RecordingFile(tmp_path / "1.jsonl", HEADER, cleaner(Redactor(ENVIRON), ["/srv/space"]))
    client = RecordingClient(LitellmClient(retry=Retry(attempts=2, base=0.0)), file)
    for request in requests:
        with suppress(ModelError):
            client.complete(request)
    file.end()
    outcomes = [call.outcome for call in read_recording(tmp_path / "1.jsonl").calls]
    return (tmp_path / "1.jsonl").read_bytes(), list(outcomes)


def asking(text: str) -> ModelRequest:
    return ModelRequest("openai/m", (Message("user", text),))


def test_replies_and_faults_are_written_as_they_came(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.restart(
        [
            script.say("hello", cached=1),
            script.rate_limited(0),
            script.rate_limited(0),
            script.context_length(),
            script.bad_request(),
        ]
    )
    _, outcomes = recorded(tmp_path, server, *(asking(f"call {n}") for n in range(4)))
    answer, limited, long, bad = outcomes
    assert isinstance(answer, ModelReply)
    assert (answer.text, answer.usage) == ("hello", server.answered[0][1])
    kinds = [error.type for error in (limited, long, bad) if isinstance(error, RecordedError)]
    assert kinds == [
        kind.__name__ for kind in (RateLimitError, ContextWindowError, BadRequestError)
    ]
    assert isinstance(limited, RecordedError)
    assert limited.retries == 1


@pytest.mark.parametrize(
    "secret",
    [
        *ENVIRON.values(),
        "sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12",
        "sk-ant-api03-Ab12Cd34Ef56_Gh78Ij90-Kl12",
        "hf_abcdefghij1234567890abcdefghij1234",
        "gsk_abcdefghij1234567890abcdefghij1234567890",
        "ghp_abcdefghij1234567890abcdefghij123456",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    ],
)
def test_no_secret_enters_a_recording(tmp_path: Path, server: ScriptedServer, secret: str) -> None:
    server.restart(
        [
            script.say(f"your key is {secret}."),
            script.call(("Tool", {"key": secret})),
            script.unauthorized(echo=secret),
        ]
    )
    request = ModelRequest(
        "openai/m",
        (
            Message("user", f"my key:\n{secret}"),
            Message("assistant", "", (ToolCall("1", "x", f'{{"k": "{secret}"}}'),)),
            Message("tool", secret, tool_call_id="1"),
        ),
        stop=(f"stop {secret}",),
        extra={"user": secret},
        schema={"type": "object", "description": secret},
    )
    content, outcomes = recorded(tmp_path, server, request, request, request)
    assert secret.encode() not in content
    assert len(outcomes) == 3
    assert isinstance(outcomes[0], ModelReply)
    assert outcomes[0].text.startswith("your key is [")


def test_what_only_looks_a_little_like_a_key_stays() -> None:
    clean = cleaner(Redactor({}), [])
    code = (
        "self.attn(x, key_padding_mask=key_padding_mask)  #"
        " sk-learn-style-estimators-are-used-here, hf_hub_download"
    )
    assert clean(code) == code


def test_paths_of_the_workspace_are_not_written(tmp_path: Path, server: ScriptedServer) -> None:
    server.restart([script.say("open /srv/space/train.py")])
    content, outcomes = recorded(tmp_path, server, asking('File "/srv/space/train.py", line 1'))
    assert b"/srv/space" not in content
    assert isinstance(outcomes[0], ModelReply)
    assert outcomes[0].text == f"open {WORKSPACE}/train.py"


def test_a_full_disk_is_an_error_of_the_store(tmp_path: Path) -> None:
    code = f"""
        import resource, signal
        from pathlib import Path
        from tests.models.recording.test_recorder import fill
        fill(Path({str(tmp_path)!r}))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path.cwd(),
    )
    assert done.stdout.strip() == "StoreError", done.stderr


def fill(folder: Path) -> None:
    """Record more than a file may hold; print what is raised."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    class Talking:
        def complete(self, request: ModelRequest) -> ModelReply:
            from pytest_mlab.core.budget import Usage

            return ModelReply(os.urandom(30_000).hex(), "m", Usage(), None, 0.0)

    client = RecordingClient(Talking(), RecordingFile(folder / "1.jsonl", HEADER, str))  # type: ignore[arg-type]
    try:
        client.complete(asking("more"))
    except StoreError as error:
        print(type(error).__name__)  # noqa: T201
