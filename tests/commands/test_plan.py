"""``mlab plan``: what would run, worst cases, what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_mlab.cli import main
from tests.support.toy_suite import write_toy_suite, write_toy_task


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_toy_suite(tmp_path, tasks=("first", "second"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLAB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


COMMON = ("plan", "--mlab-suite=toy", "--mlab-sandbox=local", "-p", "no:langsmith_plugin")


def test_trials_hours_and_dollars(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                *COMMON,
                "--mlab-agent=reference",
                "--mlab-repeats=3",
                "--mlab-max-time=59m",
                "-n",
                "3",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "6 trials; data mini, sandbox local, 50 steps a trial" in out
    assert "at worst 2h with 3 workers, $0.00" in out
    assert max(map(len, out.splitlines())) <= 80


def test_settings_of_agents_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-0123456789")
    words = [*COMMON, "--mlab-agent=act", "--mlab-model=gpt-4-turbo", "--mlab-agent-arg=re_asks=2"]
    assert main(words) == 0
    assert "\nsettings of act: re_asks=2\n" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["agent_settings"] == {"act": {"re_asks": 2}}


def test_missing_key_is_listed_and_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMON, "--mlab-model=gpt-4-turbo", "--mlab-repeats=1", "--mlab-max-cost=2"]) == 1
    out = capsys.readouterr().out
    assert "$4.00" in out
    assert (
        "2 trials: the model gpt-4-turbo needs OPENAI_API_KEY; to fix: export OPENAI_API_KEY" in out
    )


def test_unknown_price_is_said_and_never_zero(capsys: pytest.CaptureFixture[str]) -> None:
    main([*COMMON, "--mlab-model=openai/some-model-of-mine"])
    out = capsys.readouterr().out
    assert "price unknown: bound the run by --mlab-max-tokens" in out
    assert "unknown" in out.splitlines()[1]


def test_old_names_go_to_their_provider(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    for name in ("claude-3-opus", "claude-3-opus-20240229", "claude-v1"):
        assert main([*COMMON, f"--mlab-model={name}", "--mlab-repeats=1"]) == 1
        assert f"2 trials: the model {name} needs ANTHROPIC_API_KEY" in capsys.readouterr().out


def test_an_alias_and_its_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mlab-models.toml").write_text(
        '[models.mine]\nmodel = "ollama/llama3"\n', encoding="utf-8"
    )
    assert (
        main([*COMMON, "--mlab-model=mine", "--mlab-model-arg=num_ctx=4096", "--mlab-repeats=1"])
        == 0
    )
    assert "research with mine" in capsys.readouterr().out
    assert main([*COMMON, "--mlab-model=mine", "--mlab-model-arg=num_ctxt=4096"]) != 0
    assert (
        "--mlab-model-arg: num_ctxt=4096: ollama takes no such parameter" in capsys.readouterr().err
    )


def test_arguments_of_a_model_without_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMON, "--mlab-agent=reference", "--mlab-model-arg=temperature=1"]) != 0
    assert "uses no model; leave --mlab-model-arg out" in capsys.readouterr().err


def test_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_toy_task(tmp_path / "task_suites" / "toy" / "third", requirements=("no-such-package",))
    assert (
        main([*COMMON, "--mlab-agent=baseline", "--mlab-repeats=1", "--mlab-max-time=1m", "--json"])
        == 1
    )
    plan = json.loads(capsys.readouterr().out)
    assert plan["trials"] == ["first-baseline-1", "second-baseline-1", "third-baseline-1"]
    assert plan["max_seconds"] == 3 * 120.0
    assert plan["max_cost_usd"] == 0.0
    assert "no-such-package" in plan["missing"]["third-baseline-1"]


def test_mistakes_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMON, "--mlab-agent=refrence"]) == 2
    assert "did you mean 'reference'" in capsys.readouterr().err
    assert main([*COMMON, "--mlab-agent=reference", "-n", "-1"]) == 2


LIMITED = (*COMMON, "--mlab-model=gpt-4-turbo", "--mlab-repeats=4", "--mlab-max-cost=2", "-n", "2")


def test_limits_of_the_whole_run_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    limits = ("--mlab-run-max-cost=5", "--mlab-rpm=60", "--mlab-tpm=gpt-4-turbo=30000")
    main([*LIMITED, *limits])
    out = capsys.readouterr().out
    assert "limits: $5.00 for the run; gpt-4-turbo 60 requests, 30.0k tokens a minute" in out
    assert (
        "2 workers, $9.00" in out
    )  # 5 dollars, and what the trials of both workers may cost in the end
    main([*LIMITED, *limits, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["max_cost_usd"], found["run_max_cost_usd"]) == (9.0, 5.0)
    assert found["limits_a_minute"] == {"gpt-4-turbo": {"requests": 60, "tokens": 30_000}}
    main([*LIMITED, "--mlab-run-max-cost=100"])
    assert "2 workers, $16.00" in capsys.readouterr().out


def test_waits_that_do_not_count_make_the_worst_case_longer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(
        [
            *COMMON,
            "--mlab-agent=reference",
            "--mlab-repeats=1",
            "--mlab-max-time=59m",
            "--mlab-exclude-waits",
        ]
    )
    assert "1h58m" in capsys.readouterr().out
