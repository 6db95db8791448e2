"""Agents that raise, loop, leave, catch everything or detach processes: their own trial suffers,
and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.session import Said, Session, fits, marked
from tests.support.toy_agents import write_toy_agents

# Processes of the agent's own, outside any sandbox, in sessions of their own; they have the marker
# in their words.
DETACHING = '''\
import os
import subprocess
import sys

from pytest_mlab import Action

SLEEP = """
import signal, time
for number in (1, 2, 15):
    signal.signal(number, signal.SIG_IGN)
print(1, flush=True)
time.sleep(999)
"""


class Agent:
    needs_model = False

    def run(self, env):
        env.execute(Action("Execute Script", {"script_name": "train.py"}))
        for _ in range(3):
            words = [sys.executable, "-c", SLEEP, MARKER]
            child = subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE)
            child.stdout.read(1)
        env.note("detached", {"pid": child.pid})
        END
'''

# Starts the same inside the sandbox, and leaves it there.
INSIDE = """\
from pytest_mlab import Action

CODE = '''
import subprocess, sys
words = [sys.executable, "-c", "import time; time.sleep(999)", "MARKER"]
child = subprocess.Popen(words, start_new_session=True)
print("left", child.pid)
'''


class Agent:
    needs_model = False

    def run(self, env):
        env.execute(Action("Write File", {"file_name": "leave.py", "content": CODE}))
        seen = env.execute(Action("Execute Script", {"script_name": "leave.py"}))
        assert "left" in seen.text, seen.text
        env.execute(Action("Execute Script", {"script_name": "train.py"}))
"""

BROKEN_FILES = {
    "unreadable": ("class Agent:\n    def run(self, env)\n        pass\n", "unreadable.py"),
    "importing": ("import no_such_module_here\n", "no_such_module_here"),
    "building": (
        (
            "class Agent:\n    needs_model = False\n    def __init__(self):\n        raise"
            " KeyError('built')\n    def run(self, env):\n        pass\n"
        ),
        "its constructor raised KeyError: 'built'",
    ),
}

OUTCOMES = {
    "raising": ("agent_error", "the agent raised RuntimeError: lost my way (raising.py:14)"),
    "leaving": ("agent_error", "the agent raised SystemExit: I quit (leaving.py:13)"),
    "exiting": ("agent_error", "the agent ended its own process with status 3"),
    "crashing": ("agent_error", "the agent's process died of SIGSEGV (crashing.py:16 in run)"),
    "overlong": ("agent_error", "the agent raised ContextWindowError: too long (overlong.py:15)"),
    "building": ("agent_error", "its constructor raised KeyError: 'built'"),
    "looping": ("below_threshold", "accuracy 0.4 is not above 0.44"),
    "stubborn": ("below_threshold", "accuracy 0.4 is not above 0.44"),
    "patient": ("no_submission", "submission.csv is missing"),
    "parting": ("below_threshold", "accuracy 0.4 is not above 0.44"),
    "fleeing": ("agent_error", "the agent ended its own process with status 0"),
    "inside": ("below_threshold", "accuracy 0.4 is not above 0.44"),
}
ENDED_BY = {"looping": "seconds", "stubborn": "steps", "patient": "steps"}

MARKER = "mlab-marked-31415926"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    found = Session(tmp_path_factory.mktemp("project"))
    write_toy_agents(found.path)
    found.agent("parting", DETACHING.replace("MARKER", repr(MARKER)).replace("END", "return"))
    found.agent("fleeing", DETACHING.replace("MARKER", repr(MARKER)).replace("END", "os._exit(0)"))
    found.agent("inside", INSIDE.replace("MARKER", MARKER))
    for name, (source, _) in BROKEN_FILES.items():
        found.agent(name, source)
    yield found
    left = marked(MARKER)
    for process in left:
        process.kill()
    assert left == []


@pytest.fixture(scope="module")
def said(session: Session) -> Said:
    """On one worker and one fork server, the good agent between all the others: each repeat follows
    the bad ones."""
    agents = [f"--mlab-agent={name}" for name in (*OUTCOMES, "good")]
    said = session.pytest(*agents, "--mlab-max-time=4s", "--mlab-max-steps=8", "-p", "no:randomly")
    assert marked(MARKER) == []
    return said


@pytest.mark.parametrize("agent", OUTCOMES)
def test_outcome(session: Session, said: Said, agent: str) -> None:
    outcome, reason = OUTCOMES[agent]
    result = session.result(f"guess/{agent}/1")
    assert result["outcome"] == outcome, result["reason"]
    assert reason in result["reason"]
    assert result["ended_by"] == ENDED_BY.get(agent, result["ended_by"])
    text = said.part(f"test_beats_baseline[guess-{agent}-1]")
    assert text.startswith(f"{outcome}:")
    assert " ".join(reason.split()) in " ".join(text.split())
    assert "Traceback" not in text
    assert fits(text) == []
    assert session.case(f"guess-{agent}-1").text.startswith(f"{outcome}: {result['reason']}")


def test_the_next_trials_are_unaffected(session: Session, said: Said) -> None:
    assert said.ret == pytest.ExitCode.TESTS_FAILED
    assert session.result("guess/good/1")["outcome"] == "success"
    assert session.case("guess-good-1").status == ""
    assert not list((session.path / "cache" / "workspaces").iterdir())


def test_an_agent_past_its_budget_is_told_from_one_that_is_too_weak(
    session: Session, said: Said
) -> None:
    assert "used 1 of 8 steps, 4s of 4s" in said.part("test_beats_baseline[guess-looping-1]")
    assert "used 8 of 8 steps, " in said.part("test_beats_baseline[guess-stubborn-1]")


@pytest.mark.parametrize("agent", ["unreadable", "importing"])
def test_a_file_that_is_no_agent_is_a_usage_error(session: Session, agent: str) -> None:
    said = session.pytest(f"--mlab-agent={agent}", "--mlab-run-dir=none")
    assert said.ret == pytest.ExitCode.USAGE_ERROR, said.out
    assert BROKEN_FILES[agent][1] in said.err
    assert f"{agent}.py" in said.err
    assert "Traceback" not in said.err
    assert not (session.path / "none").exists()
