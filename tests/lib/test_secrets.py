"""Secrets are hidden in every channel, and text that only looks like one stays."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_mlab.core.budget import Budget, Usage
from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.core.model_api import Message, ModelFacts, ModelReply, ModelRequest, ToolCall
from pytest_mlab.core.plan import Models
from pytest_mlab.core.trial import Outcome, TrialId, TrialResult
from pytest_mlab.lib.secrets import Redactor, holds_secret, is_secret_parameter, is_secret_variable
from pytest_mlab.models.provider_errors import hide_keys, translate
from pytest_mlab.models.recording.format import Header
from pytest_mlab.models.recording.recorder import cleaner
from pytest_mlab.models.recording.writer import RecordingFile
from pytest_mlab.reporting.figures import RunFigures
from pytest_mlab.reporting.junit import trial_properties
from pytest_mlab.reporting.render import write_reports
from pytest_mlab.reporting.table import table
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.events import Note
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.metering import MeteredModel
from pytest_mlab.trial.redacted import RedactedJournal
from pytest_mlab.trial.runner import _tidy_log
from tests.reporting.runs import a_run

TRIAL = TrialId("toy", "research", "m", 1)

NAMES = (
    "OPENAI_API_KEY", "MYAPITOKEN", "MY_KEY", "AUTH_TOKEN_X", "AWS_SECRET_ACCESS_KEY", "OPENAIKEY",
    "AWS_ACCESS_KEY_ID", "HF_TOKEN", "ANTHROPIC_AUTH_TOKEN", "X_SECRET", "DB_PASSWORD", "MY_JWT",
    "WATSONX_APIKEY", "OPENAI_API_KEY_2", "my_api_key", "PGPASSWD", "VAULT_CREDENTIALS", "DB_PASS",
)  # fmt: skip
NOT_SECRET_NAMES = (
    "PATH", "HOME", "KEYBOARD", "TOKENIZERS_PARALLELISM", "MAX_TOKENS", "MONKEY", "TURKEY",
    "SSL_KEY_FILE", "TOKEN_URL", "API_KEY_ENV", "AUTHOR", "PASSENGERS", "PWD", "KEYMAP",
)  # fmt: skip

_A = "[A-Za-z0-9]"
_B = "[A-Za-z]{3}[0-9]{2}[A-Za-z]{4}[A-Za-z0-9_-]{20,60}[A-Za-z0-9]"
SHAPES = (
    f"sk-{_A}{{16,48}}", f"sk-proj-{_B}", f"sk-ant-api03-{_B}", f"sk-or-v1-{_B}", f"sk_live_{_B}",
    f"gsk_[a-z]4{_A}{{30,50}}", f"hf_{_A}{{34}}", f"gh[pousr]_{_A}{{36}}", f"github_pat_{_B}",
    "(AKIA|ASIA)[0-9A-Z]{16}", "AIza[0-9A-Za-z_-]{35}",
    "xox[abprs]-[0-9]{10}-[0-9]{10}-[a-z0-9]{20}",
    f"eyJ{_A}{{15,30}}[.]eyJ{_A}{{15,60}}[.][A-Za-z0-9_-]{{43}}", "key-[0-9a-f]{31}[0-9]",
    f"glpat-{_B}", f"pk-lf-{_B}", f"rk-{_B}", f"pk_{_B}", f"xai-{_A}{{80}}", f"nvapi-{_B}",
    f"pplx-{_A}{{48}}", f"r8_{_A}{{37}}",
)  # fmt: skip
AROUND = (
    "{}", "key: {}", '"{}"', "(\n{}\n)", "Authorization: Bearer {}", "api_key='{}',", "x={};",
    "{}.",
    '{{"k": "{}"}}', "a\t{} b", "https://host/v1?api_key={}&x=1", "https://user:{}@host/v1",
)  # fmt: skip
IN_CONTEXT = (
    "Bearer {}",
    "https://host/v1?api_key={}",
    "postgres://user:{}@host/db",
    "/v1?a=1&key={}",
)

STAYS = (
    "monkey-business-20240310-123456", "KEYBOARD=us-international", "TOKENIZERS_PARALLELISM=false",
    "sk-learn-style-estimators-are-used-here", "sk-learn-1.5.2", "turkey-20241128-roast-4kg",
    "key-frame", "key-frame-20240310", "key_padding_mask=key_padding_mask", "hf_hub_download",
    "hf_t5x_base_model_finetuned_v2", "risk-adjusted-return-2024-q3a7b9",
    "task-0a1b2c3d4e5f60718293",
    "/home/user/sk-project/data/train_2024.csv",
    "/usr/lib/python3.11/site-packages/sklearn/base.py",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "bbe0fe2a4c1d9e8f7a6b5c4d3e2f1a0b9c8d7e6f", "550e8400-e29b-41d4-a716-446655440000",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Erg==",
    "eyJsb3NzIjogMC41LCAiYWNjdXJhY3kiOiAwLjkxfQ==", "the bearer of bad news", "Bearer tokens",
    "https://host:8080/path?key_frame=12&page=3", "https://user@host/repo.git", "git@host:a/b.git",
    "api_key=os.environ['MINE']", "https://{user}:{password}@host", "MAX_TOKENS=4096",
    "AKIArchitecture",
    "self.x_sk_embedding_2024_layer", "weight_high_2x2_conv3x3_block", "xoxo-lovely-2024",
)  # fmt: skip


def _trace(folder: Path, text: str) -> str:
    path = folder / "trace.jsonl"
    with RedactedJournal(path, Redactor(os.environ)) as journal:
        journal.write(Note(t=1.0, kind="x", data={"text": text, "list": [text]}))
    return path.read_text()


class _Echo:
    """A model that answers with the prompt."""

    def complete(self, request: ModelRequest) -> ModelReply:
        text = request.messages[0].content
        return ModelReply(text, "m", Usage(), 0.0, 0.0, tool_calls=(ToolCall("1", "x", text),))

    def facts(self, model: str) -> ModelFacts:
        return ModelFacts(model, True, None, None)


def _model_call(folder: Path, text: str) -> str:
    redact = Redactor(os.environ)
    with RedactedJournal(folder / "trace.jsonl", redact) as journal:
        account = Account(Budget())
        store = ContentStore(folder / "store")
        MeteredModel(_Echo(), Models("m"), account, journal, store, redact).complete(text)
    files = (path for path in folder.rglob("*") if path.is_file())
    return "\n".join(path.read_text(errors="replace") for path in files)


def _log(folder: Path, text: str) -> str:
    path = folder / "agent.log"
    path.write_text(f"first line\n{text}\nlast line", encoding="utf-8")
    _tidy_log(path)
    return path.read_text()


def _provider_error(folder: Path, text: str) -> str:
    return str(translate(RuntimeError(text), "m", hide_keys))


def _recording(folder: Path, text: str) -> str:
    file = RecordingFile(folder / "1.jsonl", Header(TRIAL, "", ""), cleaner(hide_keys, []))
    file.add(
        ModelRequest("m", (Message("user", text),), stop=(text,), extra={"user": text}),
        ModelReply(text, "m", Usage(), 0.0, 0.0),
        0.0,
    )
    file.end()
    return (folder / "1.jsonl").read_text()


def _reports(folder: Path, text: str) -> str:
    run = a_run(folder / "r", [], [TRIAL])
    result = TrialResult(TRIAL, Outcome.AGENT_ERROR, text, notes=(text,))
    figures = RunFigures.of(run, GatePolicy(), {TRIAL: result})
    write_reports(figures)
    written = [(run.path / name).read_text() for name in ("summary.json", "report.md")]
    return "\n".join([*written, *table(figures)])


def _junit(folder: Path, text: str) -> str:
    return str(
        dict(trial_properties(TrialResult(TRIAL, Outcome.AGENT_ERROR, text), ""))["mlab.reason"]
    )


CHANNELS: Mapping[str, Callable[[Path, str], str]] = {
    "trace": _trace,
    "model call": _model_call,
    "log": _log,
    "provider error": _provider_error,
    "recording": _recording,
    "reports": _reports,
    "junit": _junit,
}


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, variables):
        yield Path(folder)


values = st.from_regex(r"(Zq7|/Zq7)[A-Za-z0-9/+=_.:\"\\-]{10,40}[A-Za-z0-9]", fullmatch=True)
shapes = st.sampled_from(SHAPES).flatmap(lambda shape: st.from_regex(shape, fullmatch=True))


@pytest.mark.parametrize("channel", CHANNELS)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_secret_enters_no_channel(channel: str, data: st.DataObject) -> None:
    if data.draw(st.booleans(), "by name"):
        secret = data.draw(values, "value")
        variables = {data.draw(st.sampled_from(NAMES), "name"): secret}
    else:
        secret, variables = data.draw(shapes, "key"), {}
    text = data.draw(st.sampled_from(AROUND), "around").replace("{{", "{").replace("}}", "}")
    with environment(variables) as folder:
        written = CHANNELS[channel](folder, text.replace("{}", secret))
    assert secret not in written
    assert json.dumps(secret)[1:-1] not in written


@pytest.mark.parametrize("channel", CHANNELS)
def test_text_that_only_looks_like_a_secret_stays(channel: str) -> None:
    for text in STAYS:
        with environment({}) as folder:
            written = CHANNELS[channel](folder, text)
        escaped = text.replace("*", "\\*").replace("[", "\\[")
        assert text in written or escaped in written, text
        assert "[key]" not in written, text


@given(
    secret=st.from_regex("[A-Za-z0-9]{10,30}", fullmatch=True), around=st.sampled_from(IN_CONTEXT)
)
def test_a_key_without_a_shape_is_hidden_where_only_keys_stand(secret: str, around: str) -> None:
    secret += "0123456789"
    shown = Redactor({})(around.format(secret))
    assert secret not in shown
    assert shown == around.format("[key]")


@settings(max_examples=100)
@given(
    st.lists(st.one_of(shapes, values, st.sampled_from((*AROUND, *STAYS, "[A_KEY]")), st.text()))
)
def test_hiding_twice_is_hiding_once(parts: list[str]) -> None:
    redact = Redactor({"A_KEY": "0123456789abcdef"})
    once = redact(" ".join(parts))
    assert redact(once) == once


@pytest.mark.parametrize("name", NAMES)
def test_a_value_is_replaced_by_its_name(name: str) -> None:
    assert is_secret_variable(name)
    assert Redactor({name: "/abc/def="})("a /abc/def=.") == f"a [{name}]."


@pytest.mark.parametrize("name", NOT_SECRET_NAMES)
def test_other_variables_stay(name: str) -> None:
    assert not is_secret_variable(name)
    assert Redactor({name: "some-value"})("some-value") == "some-value"


def test_short_values_stay() -> None:
    assert Redactor({"OPENAI_API_KEY": "short"})("short") == "short"


def test_the_longer_of_two_values_is_replaced_first() -> None:
    key = "0123456789abcdef"
    redact = Redactor({"A_KEY": key, "B_KEY": f"{key}-longer"})
    assert redact(f"{key}-longer {key}") == "[B_KEY] [A_KEY]"


def test_a_tree_is_cleaned_keys_included() -> None:
    key = "sk-0123456789abcdef"
    redact = Redactor({"A_KEY": key})
    assert redact.tree({key: [key, (1, key)], "n": None}) == {
        "[A_KEY]": ["[A_KEY]", (1, "[A_KEY]")],
        "n": None,
    }


def test_a_private_key_is_hidden_whole() -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n" * 20
    text = f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----"
    assert "MII" not in Redactor({})(text)
    assert "MII" not in Redactor({})(json.dumps({"private_key": text}))


@pytest.mark.parametrize(
    "prefix", ["sk-", "hf_", "key-", "eyJ", "://a:", "?key=", "Bearer ", "xoxa-"]
)
def test_a_text_of_nothing_but_prefixes_takes_no_quadratic_time(prefix: str) -> None:
    Redactor({})(prefix * 30_000)  # minutes when a search goes on to the end of the text


@pytest.mark.parametrize(
    "name", ["api_key", "X-API-Key", "Authorization", "auth_token", "password"]
)
def test_secret_parameters(name: str) -> None:
    assert is_secret_parameter(name)


@pytest.mark.parametrize("name", ["prompt_cache_key", "max_tokens", "stop_token", "top_k", "user"])
def test_other_parameters(name: str) -> None:
    assert not is_secret_parameter(name)


def test_a_login_in_a_url_is_a_secret() -> None:
    assert holds_secret("https://me@host/v1")
    assert holds_secret("Bearer abcdefghijklmnop")
    assert not holds_secret("https://host/v1?page=me@host")
