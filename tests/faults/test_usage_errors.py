"""Names and values that do not exist: exit status 4, what exists with the nearest first, and
nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.session import Session
from tests.support.toy_agents import write_toy_agents

AGENT = "--mlab-agent=baseline"

ERRORS = {
    # one a kind: arguments, parts of the message in their order
    "agent": (
        ["--mlab-agent=rasing"],
        ["unknown agent 'rasing'; did you mean 'raising'?", "agents: raising, ", "good"],
    ),
    "task": (
        [AGENT, "--mlab-task=othr"],
        ["unknown task 'othr'; did you mean 'other'? tasks: other, guess (suite toy)"],
    ),
    "suite": (
        [AGENT, "--mlab-suite=tyo"],
        ["unknown suite 'tyo'; did you mean 'toy'?", "toy, mlagentbench"],
    ),
    "provider": (["--mlab-model=opnai/x"], ["unknown provider 'opnai'", "nearest: openai/x, "]),
    "choice": ([AGENT, "--mlab-gate=agregate"], ["--mlab-gate=agregate: allowed: aggregate, "]),
    "data": ([AGENT, "--mlab-data=fll"], ["--mlab-data=fll: allowed: full, mini"]),
    "sandbox": ([AGENT, "--mlab-sandbox=doker"], ["'doker'; did you mean 'docker'", "bubblewrap"]),
    "duration": (
        [AGENT, "--mlab-max-time=5x"],
        ["--mlab-max-time=5x: '5x' is not a duration", "5h"],
    ),
    "number": ([AGENT, "--mlab-repeats=0"], ["--mlab-repeats=0: give a whole number from 1"]),
    "share": (
        [AGENT, "--mlab-fail-under=2"],
        ["--mlab-fail-under=2: give a share between 0 and 1"],
    ),
    "keyword": (
        [AGENT, "-k", "othr"],
        ["no trial is selected by -k 'othr'; tasks of the plan: other, guess;"],
    ),
    "mark": (
        [AGENT, "-m", "image"],
        ["no trial is selected by -m 'image'; tasks of the plan: guess, other;"],
    ),
    "path": ([AGENT, "missing.py"], ["file or directory not found: missing.py"]),
    "file": (["--mlab-agent=agents/none.py"], ["agent file 'agents/none.py' does not exist"]),
    "class": (
        ["--mlab-agent=agents/idle.py:Agnt"],
        ["no class 'Agnt' there; classes with a method run: Agent"],
    ),
    "folder": (
        [AGENT, "--mlab-run-dir=/proc/none"],
        ["/proc/none cannot be written", "--mlab-run-dir"],
    ),
    "spread": (
        [AGENT, "-n", "2", "--mlab-task=othr"],
        ["unknown task 'othr'; did you mean 'other'?"],
    ),
    "spread-keyword": ([AGENT, "-n", "2", "-k", "othr"], ["no trial is selected by -k 'othr'"]),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    found = Session(tmp_path_factory.mktemp("project"), tasks=("guess", "other"))
    write_toy_agents(found.path)
    return found


@pytest.mark.parametrize("kind", ERRORS)
def test_error(session: Session, kind: str) -> None:
    args, parts = ERRORS[kind]
    said = session.pytest(*args)
    assert said.ret == pytest.ExitCode.USAGE_ERROR, said.out
    at = 0
    for part in parts:
        found = said.err.find(part, at)
        assert found >= 0, (part, said.err)
        at = found + len(part)
    assert said.err.startswith("ERROR: ")
    assert "Traceback" not in said.out + said.err
    assert "INTERNALERROR" not in said.out
    assert not session.run_dir.exists()


def test_a_setting_is_named_as_such(session: Session, tmp_path: Path) -> None:
    here = Session(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmlab_agent = baseline\nmlab_data = fll\n")
    said = here.pytest()
    assert said.ret == pytest.ExitCode.USAGE_ERROR
    assert "mlab_data" in said.err
    assert "allowed: full, mini" in said.err


def test_mlab_plan_says_the_same(session: Session) -> None:
    said = session.mlab("plan", "--mlab-agent=rasing", "--mlab-suite=toy")
    assert said.ret != 0
    assert "unknown agent 'rasing'; did you mean 'raising'?" in said.err
    assert "Traceback" not in said.err
