"""Programs as agents from the command line: with and without a model, with workers, resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.project import Project
from tests.support.scripted_server import ScriptedServer

SOLVE = """#!/usr/bin/env python3
import os, subprocess, sys
assert "train.csv" in sys.stdin.read() and "train.csv" in os.environ["MLAB_TASK"]
print("OPENAI_BASE_URL" in os.environ)
subprocess.run([sys.executable, "train.py"], check=True)
"""

ASK = """#!/usr/bin/env python3
import os, subprocess, sys, urllib.request
body = b'{"model": "any", "messages": [{"role": "user", "content": "hello"}]}'
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
urllib.request.urlopen(urllib.request.Request(url, body)).read()
subprocess.run([sys.executable, "train.py"], check=True)
"""

QUIET = "--mlab-gate=none"


def put(project: Project, name: str, code: str) -> None:
    (project.path / name).write_text(code)
    (project.path / name).chmod(0o755)


def trace(project: Project, trial: str) -> list[dict[str, object]]:
    return [
        json.loads(line) for line in (project.trial(trial) / "trace.jsonl").read_text().splitlines()
    ]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda request: "hello") as found:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-0123456789")
        monkeypatch.setenv("OPENAI_BASE_URL", found.base_url)
        yield found


def test_without_a_model_a_program_is_one_step(project: Project) -> None:
    put(project, "solve.py", SOLVE)
    assert project.run("--mlab-agent=command:./solve.py", QUIET).ret == 0
    result = project.result("guess/command-solve/1")
    assert (result["outcome"], result["score"]) == ("below_threshold", 0.4)
    assert (result["ledger"]["steps"], result["ledger"]["model_calls"]) == (1, 0)
    (step,) = (
        event for event in trace(project, "guess/command-solve/1") if event["type"] == "step"
    )
    assert (step["action"], step["exit_status"], step["output_file"]) == (
        "Run Program",
        0,
        "outputs/program-01.txt",
    )
    assert str(step["observation"]).startswith("False\n")
    assert "submission.csv" in step["set"]  # type: ignore[operator]


def test_its_time_is_bounded(project: Project) -> None:
    assert project.run("--mlab-agent=command:sleep 600", "--mlab-max-time=1s", QUIET).ret == 0
    result = project.result("guess/command-sleep/1")
    assert (result["outcome"], result["ended_by"], result["ledger"]["steps"]) == (
        "no_submission",
        "seconds",
        1,
    )
    (step,) = (
        event for event in trace(project, "guess/command-sleep/1") if event["type"] == "step"
    )
    assert step["killed_for"] == "timeout"


def test_with_workers_recorded_resumed_and_replayed(
    project: Project, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, "ask.py", ASK)
    options = [
        "--mlab-agent=command:./ask.py",
        "--mlab-model=gpt-4-turbo",
        "--mlab-repeats=2",
        QUIET,
    ]
    trials = [f"guess/command-ask--gpt-4-turbo/{number}" for number in (1, 2)]

    def ended() -> list[tuple[object, ...]]:
        results = [project.result(trial) for trial in trials]
        return [
            (result["outcome"], result["ledger"]["steps"], result["ledger"]["model_calls"])
            for result in results
        ]

    assert project.spawn(*options, "--mlab-record=kept", "-n", "2").ret == 0
    (project.trial(trials[1]) / "result.json").unlink()
    assert project.spawn(f"--mlab-resume={project.run_dir}", QUIET, run_dir=False).ret == 0
    assert len(server.requests) == 3
    assert ended() == [("below_threshold", 1, 1)] * 2

    monkeypatch.delenv("OPENAI_API_KEY")
    project.name = "again"
    assert project.run(*options, "--mlab-replay=kept", "--mlab-run-dir=again").ret == 0
    assert len(server.requests) == 3
    assert ended() == [("below_threshold", 1, 1)] * 2


def test_a_program_that_is_not_there_is_said_before_anything_runs(project: Project) -> None:
    done = project.run("--mlab-agent=command:./missing.py")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*the agent command: the program */missing.py does not exist*"])


def test_a_program_that_is_not_installed_is_a_skip_that_says_so(project: Project) -> None:
    done = project.run("--mlab-agent=command:no-such-tool -p {prompt}", QUIET)
    assert done.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    done.stdout.fnmatch_lines(["*3 skipped*"])  # the trial, and two verdicts about it
    said = " ".join(done.stdout.str().split())
    assert (
        "needs the program no-such-tool, and there is none; to fix: install it below /usr, or"
        in said
    )


def test_a_report_says_that_calls_were_not_counted(project: Project) -> None:
    put(project, "solve.py", SOLVE)
    assert project.run("--mlab-agent=command:solve.py", QUIET).ret == 0
    report = (project.run_dir / "report.md").read_text()
    assert "command=solve.py, without a model: calls of its own are not counted" in report
