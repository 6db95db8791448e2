"""``mlab agents``."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.agentfiles.loader import builtin_agents
from pytest_mlab.cli import main


def test_lists_agents_with_their_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(any(line.startswith(f"{name}:") for line in lines) for name in builtin_agents())
    assert (
        "  retrieval = false (bool): keep a research log and read in it before each step" in lines
    )
    assert max(map(len, lines)) <= 80


def test_one_agent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents", "baseline"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("baseline: The control")
    assert "research" not in out


def test_a_broken_agent_is_told_among_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "broken.py").write_text("class\n")
    assert main(["agents", "--rootdir", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "broken.py:1: syntax error" in out
    assert "research:" in out


def test_an_unknown_agent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents", "reserach"]) == 2
    assert "did you mean 'research'" in capsys.readouterr().err
