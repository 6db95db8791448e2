"""The agent that is any program: its settings, its words, its files; no sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.agentfiles.loader import (
    digest_now,
    load_agent,
    plan_agent,
    plan_agents,
    shown_files,
)
from pytest_mlab.agentfiles.settings import make_agent
from pytest_mlab.core.agent_api import Agent
from pytest_mlab.core.plan import PlannedAgent
from pytest_mlab.core.sandbox_api import Execution
from pytest_mlab.errors import ConfigError, ProgramFailed
from tests.support.fake_environment import FakeEnvironment, FakeModel

TASK = "Say {prompt_file} $HOME \"twice\" and 'once'."


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a program of its own."""
    (tmp_path / "solve.sh").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "solve.sh").chmod(0o755)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helper.py").write_text("x = 1\n")
    return tmp_path


def made(agent: PlannedAgent, root: Path) -> Agent:
    return make_agent(load_agent(agent.ref, root), agent.settings)


def run(root: Path, ref: str, text: str = TASK, **environment: object) -> FakeEnvironment:
    env = FakeEnvironment(FakeModel(), task_description=text, **environment)  # type: ignore[arg-type]
    made(plan_agent(ref, root), root).run(env)
    return env


def test_the_prompt_is_one_word_whatever_is_in_it(root: Path) -> None:
    env = run(root, "command:claude -p {prompt} --say 'all of:{prompt}'")
    ((argv, variables, stdin),) = env.programs
    assert argv[:2] == ("claude", "-p")
    assert argv[2].startswith(TASK)
    assert (argv[3], argv[4]) == ("--say", f"all of:{argv[2]}")
    assert (variables["MLAB_TASK"], stdin) == (argv[2], b"")
    assert env.put == {}


def test_the_prompt_in_a_file(root: Path) -> None:
    env = run(root, "command:aider --message-file {prompt_file}")
    ((argv, _, stdin),) = env.programs
    assert (argv, stdin) == (("aider", "--message-file", "/home/task.md"), b"")
    assert env.put["task.md"].decode().startswith(TASK)


def test_a_command_that_asks_for_no_prompt_gets_it_on_its_standard_input(root: Path) -> None:
    ((argv, variables, stdin),) = run(root, "command:./solve.sh --quiet").programs
    assert argv == ("./solve.sh", "--quiet")
    assert stdin.decode() == variables["MLAB_TASK"]


@pytest.mark.parametrize("size", [128 * 1024, 3_000_000])
def test_a_text_that_fits_into_no_argument_and_no_variable(root: Path, size: int) -> None:
    long = "ä" * (size // 2)
    with pytest.raises(ProgramFailed, match=r"131071.*\{prompt_file\} in place of \{prompt\}"):
        run(root, "command:claude -p {prompt}", text=long)
    for words in ("aider --message-file {prompt_file}", "./solve.sh"):
        env = run(root, f"command:{words}", text=long)
        ((argv, variables, stdin),) = env.programs
        assert max(len(word.encode()) for word in argv) < 1000
        assert variables == {}
        assert long.encode() in (stdin or env.put["task.md"])
        assert "MLAB_TASK" in str(env.notes)


def test_settings(root: Path) -> None:
    agent = plan_agent("command[command=./solve.sh,env=A=1,patience=3]", root)
    env = FakeEnvironment(FakeModel())
    made(agent, root).run(env)
    assert env.programs[0][1]["A"] == "1"
    for wrong, words in (
        ("env=A", "env=A: "),
        ("command='x", "No closing quotation"),
        ("patience=-1", "patience"),
    ):
        with pytest.raises(ConfigError, match=words):
            plan_agent(f"command[{wrong}]", root)


@pytest.mark.parametrize("ref", ["command:", "command:  ", "command"])
def test_nothing_to_run(root: Path, ref: str) -> None:
    with pytest.raises(ConfigError, match="command"):
        plan_agent(ref, root)


def test_words_that_name_files_of_the_project_are_shown(root: Path) -> None:
    def shown(ref: str) -> dict[str, Path]:
        return dict(shown_files(made(plan_agent(ref, root), root), root))

    assert shown("command:./solve.sh {prompt}") == {"./solve.sh": root / "solve.sh"}
    assert shown("command:sh solve.sh lib ./lib") == {
        "solve.sh": root / "solve.sh",
        "./lib": root / "lib",
    }
    assert shown("command:python -c pass") == {}
    assert shown("command[command=sh solve.sh,files=lib]") == {
        "solve.sh": root / "solve.sh",
        "lib": root / "lib",
    }


def test_files_that_are_wrong(root: Path) -> None:
    (root / "plain.sh").write_text("exit 0\n")
    for ref, words in (
        ("command:./missing.sh", "missing.sh does not exist"),
        ("command:./plain.sh", r"plain.sh may not be executed: chmod \+x ./plain.sh"),
        ("command[command=sh solve.sh,files=gone]", "gone .files=gone. does not exist"),
    ):
        with pytest.raises(ConfigError, match=words):
            plan_agent(ref, root)


def test_the_digest_covers_the_files_and_the_line(root: Path) -> None:
    agent = plan_agent("command[command=./solve.sh,files=lib]", root)
    assert digest_now(agent, root) == agent.digest
    digests = {
        agent.digest,
        plan_agent("command:./solve.sh", root).digest,
        plan_agent("command:./solve.sh x", root).digest,
    }
    (root / "lib" / "helper.py").write_text("x = 2\n")
    digests.add(digest_now(agent, root))
    (root / "lib" / "helper.py").chmod(0o755)
    digests.add(digest_now(agent, root))
    assert len(digests) == 5


def test_names(root: Path) -> None:
    refs = [
        "command:./solve.sh",
        "command:/usr/bin/env x",
        "command:claude -p",
        "command:claude --other [1]",
    ]
    first, second, third, fourth = plan_agents(refs, root)
    assert (first.name, second.name) == ("command-solve", "command-env")
    assert (third.name, fourth.name) == (
        f"command-claude-{third.digest[:4]}",
        f"command-claude-{fourth.digest[:4]}",
    )
    assert fourth.settings == {"command": "claude --other [1]"}
    assert (first.needs_model, first.model_optional) == (True, True)


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (Execution(3, b"a\n\nb\nc\n", 7, 1.0), "./solve.sh ended with exit status 3: a / b / c"),
        (Execution(1, b"", 0, 1.0), "./solve.sh ended with exit status 1 and printed nothing"),
        (Execution(None, b"x", 1, 1.0, "memory"), r"./solve.sh was killed \(memory\): x"),
    ],
)
def test_a_program_that_fails(root: Path, ended: Execution, words: str) -> None:
    with pytest.raises(ProgramFailed, match=words):
        run(root, "command:./solve.sh", ended=ended)
