"""``mlab plan``: what would run, worst cases, what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_mlab.cli import main
from pytest_mlab.commands.plan import trial_cost
from tests.support.toy_suite import write_toy_suite, write_toy_task


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_toy_suite(tmp_path, tasks=("first", "second"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLAB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


COMMON = ("plan", "--mlab-suite=toy", "--mlab-sandbox=local")


def test_trials_hours_and_dollars(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMON, "--mlab-agent=reference", "--mlab-repeats=3", "--mlab-max-time=59m", "-n", "3"]) == 0
    out = capsys.readouterr().out
    assert "6 trials; data mini, sandbox local, 50 steps a trial" in out
    assert "at worst 2h with 3 workers, $0.00" in out
    assert max(map(len, out.splitlines())) <= 80


def test_missing_key_is_listed_and_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMON, "--mlab-model=gpt-4-turbo", "--mlab-repeats=1", "--mlab-max-cost=2"]) == 1
    out = capsys.readouterr().out
    assert "$4.00" in out
    assert "2 trials: the model gpt-4-turbo needs OPENAI_API_KEY; mend: export OPENAI_API_KEY" in out


def test_unknown_price_is_said_and_never_zero(capsys: pytest.CaptureFixture[str]) -> None:
    main([*COMMON, "--mlab-model=openai/some-model-of-mine"])
    out = capsys.readouterr().out
    assert "price unknown: bound the run by --mlab-max-tokens" in out
    assert "unknown" in out.splitlines()[1]


def test_price_times_context_times_steps() -> None:
    once = trial_cost(("gpt-4-turbo",), 1, None)
    assert once is not None
    assert once > 0
    assert trial_cost(("gpt-4-turbo",), 50, None) == pytest.approx(50 * once)
    assert trial_cost(("gpt-4-turbo", "gpt-3.5-turbo"), 1, None) == once
    assert trial_cost(("gpt-4-turbo", "openai/mine"), 1, None) is None
    assert trial_cost(("openai/mine",), 50, 1.5) == 1.5


def test_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_toy_task(tmp_path / "task_suites" / "toy" / "third", requirements=("no-such-package",))
    assert main([*COMMON, "--mlab-agent=baseline", "--mlab-repeats=1", "--mlab-max-time=1m", "--json"]) == 1
    plan = json.loads(capsys.readouterr().out)
    assert plan["trials"] == ["first-baseline-1", "second-baseline-1", "third-baseline-1"]
    assert plan["max_seconds"] == 3 * 120.0
    assert plan["max_cost_usd"] == 0.0
    assert "no-such-package" in plan["missing"]["third-baseline-1"]


def test_settings_of_the_ini_file_count(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmlab_agent = baseline\nmlab_repeats = 2\n")
    assert main([*COMMON]) == 0
    assert "4 trials" in capsys.readouterr().out


def test_mistakes_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMON, "--mlab-agent=refrence"]) == 2
    assert "did you mean 'reference'" in capsys.readouterr().err
    assert main([*COMMON, "--mlab-agent=reference", "-n", "-1"]) == 2
