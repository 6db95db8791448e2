"""What README shows is run as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.scripted_server import ScriptedServer
from tests.support.toy_suite import BETTER_TRAIN, write_toy_task

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def block(marker: str) -> str:
    found = [text for text in BLOCKS if marker in text]
    assert len(found) == 1, f"README has {len(found)} python blocks with {marker!r}"
    return str(found[0])


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """README's task, its files in the toy task's words, and README's test."""
    root = pytester.path
    task = write_toy_task(root / "task_suites" / "mine" / "spam", evaluator=block("def evaluate"))
    for path in task.rglob("*"):
        if path.is_file():
            path.write_text(
                path.read_text().replace('"label"', '"spam"').replace("label and", "spam and")
            )
    (root / "task_suites" / "test_mine.py").write_text(block("def test_beats_baseline"))
    (root / "agents").mkdir()
    (root / "agents" / "greedy.py").write_text(block("class Greedy"))
    monkeypatch.setenv("MLAB_CACHE_DIR", str(root / "cache"))
    return root


def test_the_task_is_won_by_its_reference_and_not_by_its_starter(
    project: Path, pytester: pytest.Pytester
) -> None:
    options = [
        "--mlab-suite=mine",
        "--mlab-repeats=1",
        "--mlab-sandbox=local",
        "--mlab-gate=aggregate",
    ]
    done = pytester.runpytest_subprocess(
        *options, "--mlab-agent=reference", "--mlab-agent=baseline", "-v"
    )
    assert done.ret == 0
    done.stdout.fnmatch_lines(["*spam-reference-1*PASSED*", "*spam-baseline-1*BELOW*"])


def test_the_agent_works_with_a_model(
    project: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer(["print(1) /", BETTER_TRAIN.replace('"label"', '"spam"')]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-readme")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        options = ["--mlab-suite=mine", "--mlab-repeats=1", "--mlab-sandbox=local"]
        done = pytester.runpytest_subprocess(
            *options, "--mlab-agent=greedy", "--mlab-model=openai/any"
        )
    assert done.ret == 0
    assert len(server.requests) == 2


def test_each_command_is_one_line_under_its_heading() -> None:
    for heading in ("Run it", "Test it"):
        found = re.search(rf"^## {heading}\n+```\n(.*)\n```", README, flags=re.MULTILINE)
        assert found, f"no one-line block under {heading!r}"
        assert shlex.split(found[1])[:4] == ["python", "-m", "pip", "install"]
