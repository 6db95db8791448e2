"""What is checked of models before a run begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.plan import PlannedAgent
from pytest_mlab.core.values import PerModel
from pytest_mlab.errors import ConfigError
from pytest_mlab.planning.fresh import planned_models
from pytest_mlab.planning.options import MlabOptions
from pytest_mlab.planning.requirements import missing_key

HERE = Path(__file__).parent
AGENT = PlannedAgent("mine", "mine", "", needs_model=True)


def resolve_models(options: MlabOptions, rootdir: Path) -> tuple[ModelSettings, ...]:
    return planned_models(options, (AGENT,), rootdir)


def test_known_and_priced() -> None:
    options = MlabOptions(
        model=("gpt-4-turbo", "openai/gpt-5"), fast_model="gpt-4-turbo", max_cost=1.0
    )
    assert [model.name for model in resolve_models(options, HERE)] == [
        "gpt-4-turbo",
        "openai/gpt-5",
    ]
    assert [model.name for model in resolve_models(MlabOptions(model=("openai/mine",)), HERE)] == [
        "openai/mine"
    ]
    replayed = MlabOptions(model=("gpt-4-turbo",), replay=HERE)
    assert resolve_models(replayed, HERE) == ()


def test_an_unknown_provider() -> None:
    with pytest.raises(ConfigError, match="unknown provider 'opnai'"):
        resolve_models(MlabOptions(model=("opnai/gpt-5",)), HERE)


def test_a_limit_in_dollars_without_a_price() -> None:
    options = MlabOptions(model=("gpt-4-turbo",), edit_model="openai/my-model", max_cost=1.0)
    with pytest.raises(
        ConfigError,
        match=r'price of openai/my-model is unknown; write .*"openai/my-model"\] in mlab-',
    ):
        resolve_models(options, HERE)


def test_a_price_that_the_user_wrote_down(tmp_path: Path) -> None:
    (tmp_path / "mlab-models.toml").write_text(
        '[models."openai/my-model"]\ninput_cost_per_token = 1e-6\noutput_cost_per_token = 2e-6\n',
        encoding="utf-8",
    )
    [model] = resolve_models(MlabOptions(model=("openai/my-model",), max_cost=1.0), tmp_path)
    assert model.prices is not None


def test_settings_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAB_MODEL_ATTEMPTS", "none")
    with pytest.raises(ConfigError, match="MLAB_MODEL_ATTEMPTS='none'"):
        resolve_models(MlabOptions(model=("gpt-4-turbo",)), HERE)


def test_the_key_of_a_model_is_where_the_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mlab-models.toml").write_text(
        '[models.mine]\nmodel = "openai/my-model"\napi_key_env = "MINE_API_KEY"\n', encoding="utf-8"
    )
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("MINE_API_KEY", raising=False)
    [model] = resolve_models(MlabOptions(model=("mine",)), tmp_path)
    assert (
        missing_key(model)
        == "the model mine needs MINE_API_KEY; to fix: export MINE_API_KEY=<your key>"
    )
    monkeypatch.setenv("MINE_API_KEY", "sk-x")
    assert missing_key(model) == ""


def test_a_limit_for_the_whole_run_needs_prices_too() -> None:
    with pytest.raises(
        ConfigError, match=r"a limit of \$5 cannot be kept: the price of openai/my-model is unknown"
    ):
        resolve_models(
            MlabOptions(model=("gpt-4-turbo", "openai/my-model"), run_max_cost=5.0), HERE
        )


def test_limits_a_minute_come_from_the_file_and_from_options(tmp_path: Path) -> None:
    (tmp_path / "mlab-models.toml").write_text(
        '[models.mine]\nmodel = "openai/my-model"\nrpm = 30\n', encoding="utf-8"
    )
    options = MlabOptions(
        model=("mine", "gpt-4-turbo"), rpm=(PerModel(60),), tpm=(PerModel(5000, "gpt-4-turbo"),)
    )
    mine, listed = resolve_models(options, tmp_path)
    assert (mine.rpm, mine.tpm) == (30, None)
    assert (listed.rpm, listed.tpm) == (60, 5000)


def test_the_window_of_limits_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAB_MODEL_WINDOW", "long")
    with pytest.raises(ConfigError, match="MLAB_MODEL_WINDOW='long'"):
        resolve_models(MlabOptions(model=("gpt-4-turbo",)), HERE)
