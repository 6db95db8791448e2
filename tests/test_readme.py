"""The code and the commands of README and docs/ work as they stand there."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from pytest_mlab.cli import COMMANDS
from pytest_mlab.planning.options import TABLE
from tests.support.scripted_server import ScriptedServer
from tests.support.toy_suite import BETTER_TRAIN, write_toy_task

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def block(page: str, marker: str) -> str:
    """The Python block of a page of docs/ that contains ``marker``."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```", text)
    [found] = [block for block in blocks if marker in block]
    return str(found)


def commands(page: Path) -> list[tuple[str, list[str]]]:
    """The `mlab` and `pytest` command lines of a page, in words, with their text."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"(?m)^ *(?:- run: )?((?:python -m )?(?:pytest|mlab) .*)$", text)
    spans = re.findall(r"`((?:pytest|mlab) [^`\n]*--[^`\n]+)`", text)
    found = []
    for line in [*lines, *spans]:
        line = re.sub(r"(?:^|\s)\.\.\.|…", "", line)
        words = shlex.split(line, comments=True)
        if words and words[0] in ("pytest", "mlab"):
            found.append((line, words))
    return found


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The task, test and agent of docs/; the task's files are the toy task's in its words."""
    root = pytester.path
    evaluator = block("your-task.md", "def evaluate")
    task = write_toy_task(root / "task_suites" / "mine" / "spam", evaluator=evaluator)
    for path in task.rglob("*"):
        if path.is_file():
            path.write_text(
                path.read_text().replace('"label"', '"spam"').replace("label and", "spam and")
            )
    test = block("your-task.md", "def test_beats_baseline")
    (root / "task_suites" / "test_mine.py").write_text(test)
    (root / "agents").mkdir()
    (root / "agents" / "greedy.py").write_text(block("your-agent.md", "class Greedy"))
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


@pytest.mark.parametrize("heading", ["Run it", "Test it"])
def test_each_command_is_one_line_under_its_heading(heading: str) -> None:
    """``.ci/run`` takes the test command from there."""
    found = re.search(
        rf"^## {heading}\n+```\n(.*)\n```", README.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert found
    assert shlex.split(found[1])[:4] == ["python", "-m", "pip", "install"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_have_options_that_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every `mlab …` line is parsed by its command; every `--mlab-*` flag is in the table."""
    flags = {option.flag for option in TABLE} | PYTEST_ONLY
    named = set(re.findall(r"--mlab-[a-z-]*[a-z]", page.read_text(encoding="utf-8")))
    assert named <= flags
    wrong = []
    for line, words in commands(page):
        if words[0] != "mlab" or words[1] not in COMMANDS:
            assert words[0] == "pytest" or words[1].startswith("COMMAND"), line
            continue
        command = import_module(COMMANDS[words[1]])
        parser = argparse.ArgumentParser(allow_abbrev=False)
        command.add_arguments(parser)
        try:
            # Without PASSES_ON as mlab parses: positionals may stand anywhere.
            if getattr(command, "PASSES_ON", False):
                parser.parse_known_args(words[2:])
            else:
                parser.parse_intermixed_args(words[2:])
            others: list[str] = []
        except SystemExit:
            others = [capsys.readouterr().err]
        if others and not getattr(command, "PASSES_ON", False):
            wrong.append((line, others))
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_headings(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", text):
        target = page.parent / name if name else page
        headings = re.findall(r"(?m)^#+ (.+)$", target.read_text(encoding="utf-8"))
        anchors = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in headings}
        assert anchor in anchors, f"{name}#{anchor}"


PYTEST_ONLY = {"--mlab-plan"}
"""Flags of pytest that are not options of a run."""


def test_messages_name_options_and_commands_that_exist() -> None:
    """In every text of the package: `--mlab-…` is in the table, `mlab COMMAND --option` is an
    option of that command."""
    flags = {option.flag for option in TABLE} | PYTEST_ONLY
    wrong = []
    checked = 0
    for file in sorted((ROOT / "pytest_mlab").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
                continue
            for flag in re.findall(r"--mlab-[a-z-]*[a-z]", node.value):
                checked += 1
                wrong += [(file.name, flag)] if flag not in flags else []
            for name, option in re.findall(r"\bmlab ([a-z]+) (--[a-z-]+)", node.value):
                checked += 1
                command = import_module(COMMANDS[name])
                parser = argparse.ArgumentParser()
                command.add_arguments(parser)
                known = option in parser.format_help() or getattr(command, "PASSES_ON", False)
                wrong += [(file.name, name, option)] if not known else []
    assert not wrong
    assert checked > 50
