"""The file of models and --mlab-model-arg: what is read, and what is refused in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.model_settings import ModelSettings, TokenPrices
from pytest_mlab.errors import ConfigError
from pytest_mlab.models.settings import ModelTables, arguments

FULL = """
[models.mine]
model = "openai/my-model"
temperature = 0.2
base_url = "http://localhost:8000/v1"
tools = "text"
context = 32000
images = true
input_cost_per_token = 1e-6
output_cost_per_token = 2e-6
cache_read_input_token_cost = 1e-7
rpm = 60
tpm = 100000
api_key_env = "MINE_API_KEY"

[models.gpt-4-turbo]
rpm = 500
"""


def one(table: dict[str, Any], *args: str) -> ModelSettings:
    [found] = ModelTables("models.toml: models", {"a": {"model": "openai/x", **table}}).settings(
        ["a"], main=["a"], args=args
    )
    return found


def test_a_whole_table(tmp_path: Path) -> None:
    (tmp_path / "mlab-models.toml").write_text(FULL, encoding="utf-8")
    mine, turbo, plain = ModelTables.find(None, tmp_path).settings(
        ["mine", "gpt-4-turbo", "", "mine", "openai/y"]
    )
    assert mine == ModelSettings(
        name="mine",
        model="openai/my-model",
        params={"temperature": 0.2, "base_url": "http://localhost:8000/v1"},
        tools="text",
        context=32000,
        images=True,
        prices=TokenPrices(prompt=1e-6, completion=2e-6, cached=1e-7),
        rpm=60,
        tpm=100000,
        api_key_env="MINE_API_KEY",
    )
    assert turbo == ModelSettings("gpt-4-turbo", "gpt-4-turbo", rpm=500)
    assert plain == ModelSettings("openai/y", "openai/y")


def test_cached_tokens_cost_what_others_do_unless_it_is_said() -> None:
    prices = one({"input_cost_per_token": 3, "output_cost_per_token": 5.0}).prices
    assert prices == TokenPrices(3, 5, 3)
    assert TokenPrices(3, 5, 1).cost(prompt=10, cached=4, completion=2) == 6 * 3 + 4 * 1 + 2 * 5


def test_tables_in_pyproject(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text('[tool.mlab.models.mine]\nmodel = "openai/x"\n', encoding="utf-8")
    assert ModelTables.find(None, tmp_path).settings(["mine"])[0].model == "openai/x"
    (tmp_path / "mlab-models.toml").write_text(FULL, encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"mlab-models.toml and in .*pyproject.toml: tool.mlab.models; move"
    ):
        ModelTables.find(None, tmp_path)
    project.write_text("[tool.other]\n", encoding="utf-8")
    assert ModelTables.find(None, tmp_path).settings(["mine"])[0].model == "openai/my-model"


def test_a_file_by_name_here_or_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.toml").write_text(FULL, encoding="utf-8")
    assert ModelTables.find(Path("m.toml"), tmp_path).tables.keys() == {"mine", "gpt-4-turbo"}
    monkeypatch.chdir(tmp_path)
    assert ModelTables.find(Path("m.toml"), tmp_path / "elsewhere").tables
    with pytest.raises(ConfigError, match=r"--mlab-models=n.toml: "):
        ModelTables.find(Path("n.toml"), tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[models.a\n", "at line 1"),
        ("[model.a]\n", "unknown key 'model'; everything stands in tables"),
        ("models = 3\n", "write one table for each model"),
        ("[models]\nrpm = 3\n", "write one table for each model"),
    ],
)
def test_files_that_are_none(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "mlab-models.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"mlab-models.toml: .*{words}"):
        ModelTables.find(None, tmp_path)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"rpm": 0}, "rpm: found 0; input should be greater than 0"),
        ({"rpm": "many"}, 'rpm: found "many"; input should be a valid integer'),
        ({"rpm": True}, "rpm: found true"),
        ({"tools": "both"}, "tools: found \"both\"; input should be 'native' or 'text'"),
        ({"context": 1.5}, "context: found 1.5"),
        (
            {"input_cost_per_token": -1.0, "output_cost_per_token": 1.0},
            "input_cost_per_token: found -1.0",
        ),
        ({"input_cost_per_token": 1.0}, "belong together; write both"),
        ({"cache_read_input_token_cost": 1.0}, "needs input_cost_per_token"),
        ({"model": "opnai/x"}, "unknown provider 'opnai'.*nearest: openai/x"),
        (
            {"temprature": 0.2},
            "temprature=0.2: openai takes no such parameter for openai/x; nearest: temperature",
        ),
        ({"temperature": "warm"}, 'temperature="warm": give a number'),
        ({"stop": ["x"]}, "stop cannot be set: the agent decides"),
        ({"stream": True}, "stream cannot be set"),
        ({"num_retries": 3}, "MLAB_MODEL_ATTEMPTS"),
        ({"model": "openai/o3-mini", "top_p": 0.5}, "top_p"),
        ({"model": "openai/gpt-5", "temperature": 0.2}, "Only temperature=1 is supported"),
        (
            {"model": "anthropic/claude-3-opus-20240229", "reasoning_effort": "low"},
            "takes no such parameter",
        ),
    ],
)
def test_what_is_wrong_is_said_by_file_key_and_value(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=f"^models.toml: models.a: .*{words}"):
        one(table)


@pytest.mark.parametrize(
    "table",
    [
        {"api_key": "x"},
        {"aws_secret_access_key": "x"},
        {"extra_headers": {"Authorization": "x"}},
        {"extra_headers": {"X-Mine": "Bearer abcdefghijklmnop"}},
        {"extra_body": {"auth_token": "x"}},
        {"base_url": "https://me:pass@host/v1"},
        {"user": "sk-abcdefghijklmnop"},
    ],
    ids=str,
)
def test_secrets_do_not_belong_here(table: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"models.a: .*api_key_env") as caught:
        one(table)
    for secret in ("abcdefghijklmnop", "pass"):
        assert secret not in str(caught.value).replace("password", "")


@pytest.mark.parametrize("name", ["MINE", "", 3])
def test_the_variable_of_a_key_is_one_that_is_kept_secret(name: object) -> None:
    with pytest.raises(ConfigError, match=r"api_key_env: .*ends in _API_KEY"):
        one({"api_key_env": name})


@pytest.mark.parametrize(
    "table",
    [
        {
            "temperature": 1,
            "max_tokens": 9,
            "top_p": 0.1,
            "seed": 1,
            "timeout": 30,
            "reasoning_effort": "high",
        },
        {
            "extra_body": {"top_k": 3},
            "extra_headers": {"X-Team": "red"},
            "api_version": "2024-01-01",
        },
        {"model": "anthropic/claude-3-opus-20240229", "top_k": 4},
        {"model": "ollama/llama3", "num_ctx": 4096},
        {"model": "openai/gpt-5", "temperature": 1, "reasoning_effort": "low", "verbosity": "low"},
        {
            "model": "gpt-4-turbo",
            "reasoning_effort": "low",
            "allowed_openai_params": ["reasoning_effort"],
        },
        {"additional_drop_params": ["temperature"]},
    ],
    ids=str,
)
def test_what_providers_take(table: dict[str, Any]) -> None:
    assert one(table).params == {key: value for key, value in table.items() if key != "model"}


def test_arguments_win_over_the_file_for_the_main_models_only() -> None:
    tables = ModelTables("f", {"a": {"model": "openai/x", "temperature": 0.5, "seed": 1, "rpm": 5}})
    main, other = tables.settings(
        ["a", "openai/y"], main=["a"], args=["temperature=0.2", "rpm=7", "tools=text"]
    )
    assert (main.params, main.rpm, main.tools) == ({"temperature": 0.2, "seed": 1}, 7, "text")
    assert (other.params, other.rpm) == ({}, None)


def test_values_of_arguments() -> None:
    texts = ["a=1", "b=0.5", "c=high", 'd={"x": [true]}', "e=", "f=a=b"]
    assert arguments(texts) == {
        "a": 1,
        "b": 0.5,
        "c": "high",
        "d": {"x": [True]},
        "e": "",
        "f": "a=b",
    }


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["temperature"], "--mlab-model-arg=temperature: write key=value"),
        (["model=openai/y"], "named by --mlab-model"),
        (["seed=1", "seed=2"], "seed is given twice"),
        (["temprature=1"], "--mlab-model-arg: temprature=1: .*nearest: temperature"),
        (["rpm=x"], '--mlab-model-arg: rpm: found "x"'),
        (["api_key=x"], "--mlab-model-arg: api_key looks like a secret"),
    ],
)
def test_arguments_that_cannot_be(args: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        one({}, *args)


def test_an_alias_that_does_not_exist() -> None:
    tables = ModelTables("f.toml: models", {"mine": {"model": "openai/x"}})
    with pytest.raises(
        ConfigError,
        match=r"no known provider serves a model named 'mne'.*aliases in f.toml.*: mine",
    ):
        tables.settings(["mne"])
