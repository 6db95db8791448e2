"""A person at a real pseudo-terminal runs pytest and answers: as the agent, and when another agent
asks for help."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator

import pexpect
import pytest

from tests.support.project import Project

ASKING = """\
from pytest_mlab import Action


class Asking:
    needs_model = False

    def run(self, env):
        for question in ("Which column?", "And now?"):
            seen = env.execute(Action("Request Help", {"request": question}))
            env.note("heard", {"ok": seen.ok, "text": seen.text})
        env.execute(Action("Final Answer", {"final_answer": "asked"}))
"""

PROMPT = r"steps, [\dhms]+ left\] > "

Start = Callable[..., "pexpect.spawn[str]"]


@pytest.fixture
def start(project: Project) -> Iterator[Start]:
    """Starts pytest in a terminal of 80 columns."""
    running: list[pexpect.spawn[str]] = []

    def spawn(*args: str) -> pexpect.spawn[str]:
        words = ["-m", "pytest", *project.arguments("--mlab-max-time=10m", *args)]
        environment = {**os.environ, "TERM": "dumb", "EDITOR": "", "VISUAL": ""}
        child = pexpect.spawn(
            sys.executable,
            words,
            cwd=str(project.path),
            env=environment,
            encoding="utf-8",
            timeout=120,
            dimensions=(40, 80),
        )
        child.delaybeforesend = None
        running.append(child)
        return child

    yield spawn
    for child in running:
        child.close(force=True)


def end_of(child: pexpect.spawn[str]) -> str:
    """What pytest says up to its end."""
    child.expect(pexpect.EOF)
    child.close()
    return str(child.before)


def test_a_whole_trial_by_hand(start: Start, project: Project) -> None:
    child = start("--mlab-agent=human", "--mlab-max-steps=9", "--mlab-heartbeat=1s")
    child.expect("mlab: human; 1 tasks x 1 repeats = 1 trials")
    child.expect("Predict the label of every")
    child.expect(PROMPT)
    child.sendline("ls")
    child.expect("step 1: List Files")
    child.expect("train.csv")
    child.expect(PROMPT)
    child.sendintr()
    child.expect("nothing else is lost")
    child.expect(PROMPT)
    child.sendline("w train.py")
    child.expect("line by line")
    for line in (
        "label = lambda i: 'yes' if 7 * i % 100 >= 40 else 'no'",
        "rows = ''.join(f'b{i},{label(i)}\\n' for i in range(100))",
        "open('submission.csv', 'w').write('id,label\\n' + rows)",
        ".",
    ):
        child.expect(r"\| ")
        child.sendline(line)
    child.expect("step 2: Write File")
    child.expect(PROMPT)
    child.sendline("r train.py")
    child.expect("step 3: Execute Script, exit status 0")
    child.expect(PROMPT)
    child.sendeof()
    child.expect("End the trial.*anything else goes on: ")
    child.sendline("s")
    said = end_of(child)
    assert "3 passed" in said, "the trial and its two verdicts"
    assert child.exitstatus == 0
    assert "running" not in said, "no heartbeat writes over the dialogue"
    assert project.result("guess/human/1")["outcome"] == "success"
    assert project.result("guess/human/1")["ledger"]["steps"] == 4


def test_ctrl_c_stops_the_script_and_not_the_trial(start: Start, project: Project) -> None:
    child = start("--mlab-agent=human", "-n0")
    child.expect(PROMPT)
    child.sendline(
        "py print('begun', flush=True); open('begun', 'w').close(); import time; time.sleep(3600)"
    )
    marker = project.path / "begun"
    assert not marker.exists()
    wait_for_file(project, "begun")
    child.sendintr()
    child.expect("step 1: Python REPL, error")
    child.expect("stopped from outside")
    child.expect(PROMPT)
    child.sendline("submit done")
    said = end_of(child)
    assert "no_submission" in said
    assert project.result("guess/human/1")["ended_by"] == "submitted"


def wait_for_file(project: Project, name: str) -> None:
    """Until a trial's workspace holds the file."""
    cache = os.environ["MLAB_CACHE_DIR"]
    while not any(name in files for _, _, files in os.walk(os.path.join(cache, "workspaces"))):
        pass


def test_another_agent_s_question_is_answered(start: Start, project: Project) -> None:
    project.agent("asking", ASKING)
    child = start("--mlab-agent=asking", "--mlab-help=human")
    child.expect("asks for help at step 1")
    child.expect("Which column")
    child.expect("an empty line ends it: ")
    child.sendline("The one called x.")
    child.expect(r"\.\.\. ")
    child.sendline("It is enough.")
    child.expect(r"\.\.\. ")
    child.sendline("")
    child.expect("And now")
    child.expect("an empty line ends it: ")
    child.sendeof()
    end_of(child)
    trace = (project.trial("guess/asking/1") / "trace.jsonl").read_text()
    assert r'{"ok":true,"text":"The one called x.\nIt is enough."}' in trace
    assert "no answer came; decide yourself and go on" in trace
    assert json.loads((project.run_dir / "plan.json").read_text())["settings"]["help"] == "human", (
        "for a resumed run"
    )


def test_nobody_answers_by_default(project: Project) -> None:
    project.agent("asking", ASKING)
    project.run("--mlab-agent=asking")
    trace = (project.trial("guess/asking/1") / "trace.jsonl").read_text()
    assert "no person can be asked in this run" in trace


@pytest.mark.parametrize("what", ["--mlab-agent=human", "--mlab-help=human"])
def test_without_a_terminal_it_is_a_usage_error(project: Project, what: str) -> None:
    agent = () if "agent" in what else ("--mlab-agent=baseline",)
    result = project.spawn(what, *agent)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *asks you at the terminal*"])
    assert not project.run_dir.exists()


def test_collecting_needs_nobody(project: Project) -> None:
    result = project.spawn("--mlab-agent=human", "--collect-only", "-q")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*guess-human-1*"])


def test_several_workers_are_refused(start: Start, project: Project) -> None:
    child = start("--mlab-agent=human", "-n2")
    said = " ".join(end_of(child).split())
    assert child.exitstatus == pytest.ExitCode.USAGE_ERROR
    assert (
        "the agent human asks you at the terminal, one thing at a time, and there are 2 workers;"
        " use -n 0" in said
    )
    assert not project.run_dir.exists()


def test_one_worker_will_do(start: Start, project: Project) -> None:
    child = start("--mlab-agent=human", "-n1")
    child.expect(PROMPT)
    child.sendline("submit done")
    said = end_of(child)
    assert "no_submission" in said
    assert project.result("guess/human/1")["ended_by"] == "submitted"
