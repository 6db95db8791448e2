"""``--mlab-resume``: only what is missing runs."""

from __future__ import annotations

import json
import shutil

import pytest

from pytest_mlab import cli
from tests.support.project import RUN, Project

SLOW = """\
from pytest_mlab import Action


class Slow:
    needs_model = False

    def run(self, env):
        env.note("plan", {})
        content = "import time; time.sleep(1.5)"
        env.execute(Action("Write File", {"file_name": "slow.py", "content": content}))
        env.execute(Action("Execute Script", {"script_name": "slow.py"}))
"""


def test_finished_trials_are_reported_and_not_run_again(project: Project) -> None:
    project.run("--mlab-agent=reference", "--mlab-repeats=2")
    before, names = project.summary(), set(project.junit())
    kept = project.trial("guess/reference/1")
    shutil.rmtree(project.trial("guess/reference/2"))
    marks = {
        file: (file.stat().st_ino, file.stat().st_mtime_ns)
        for file in kept.iterdir()
        if file.is_file()
    }

    result = project.run(f"--mlab-resume={RUN}", run_dir=False)
    assert result.ret == 0, result.stdout.str()
    assert {file: (file.stat().st_ino, file.stat().st_mtime_ns) for file in marks} == marks
    after = project.summary()
    assert after["subjects"][0]["success"] == before["subjects"][0]["success"]
    assert set(project.junit()) == names
    assert project.result("guess/reference/2")["outcome"] == "success"


def test_a_finished_run_is_judged_again_by_another_gate(project: Project) -> None:
    project.run("--mlab-agent=baseline")
    result = project.run(f"--mlab-resume={RUN}", "--mlab-gate=aggregate", run_dir=False)
    assert result.ret == 0, result.stdout.str()
    assert result.parseoutcomes()["below"] == 1


def test_a_resumed_run_is_judged_as_it_was_started(project: Project) -> None:
    (project.path / "pytest.ini").write_text("[pytest]\naddopts = --mlab-gate=trial\n")
    project.agent("slow", SLOW)
    # what goes on is named, and not what was noted last
    result = project.spawn("--mlab-agent=slow", "--mlab-gate=none", "--mlab-heartbeat=0.3s")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["  guess-slow-1: step 2/50, Execute Script, *s"])
    result = project.run(f"--mlab-resume={RUN}", "--mlab-allow-nothing", run_dir=False)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["gate none: recorded only"])


def test_the_same_command_again_with_resume_alone(project: Project) -> None:
    project.run("--mlab-agent=reference", run_dir=False)
    result = project.run("--mlab-agent=reference", "--mlab-resume", run_dir=False)
    assert result.ret == 0, result.stdout.str()
    assert len(list((project.path / "reports").iterdir())) == 1


def test_a_selection_of_a_resumed_run_does_not_forget_the_rest(project: Project) -> None:
    project.run("--mlab-agent=reference", "--mlab-repeats=2")
    shutil.rmtree(project.trial("guess/reference/2"))
    result = project.run(f"--mlab-resume={RUN}", "-k", "reference-1", run_dir=False)
    assert project.plan() == ["guess-reference-1", "guess-reference-2"]
    result.stdout.fnmatch_lines(
        ["MISSING: 1 of 2 planned trials did not run", "*pytest --mlab-resume=run"]
    )


def test_a_trial_that_was_interrupted_starts_afresh(project: Project) -> None:
    project.run("--mlab-agent=reference")
    (project.trial("guess/reference/1") / "result.json").unlink()
    result = project.run(f"--mlab-resume={RUN}", run_dir=False)
    assert result.ret == 0, result.stdout.str()
    assert (project.trial("guess/reference/1") / "attempts" / "1" / "trace.jsonl").is_file()


def test_the_limits_of_the_whole_run_may_be_others_and_a_trials_may_not(project: Project) -> None:
    project.run("--mlab-agent=reference", run_dir=False)
    same = ("--mlab-agent=reference", "--mlab-resume")
    result = project.run(*same, "--mlab-run-max-cost=5", "--mlab-rpm=60", run_dir=False)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["mlab: $5.00 for the run"])
    [plan] = (project.path / "reports").glob("*/plan.json")
    assert json.loads(plan.read_text())["settings"]["run_max_cost"] == 5.0
    result = project.run(*same, run_dir=False)
    result.stdout.fnmatch_lines(["mlab: $5.00 for the run"])
    result = project.run(*same, "--mlab-exclude-waits", run_dir=False)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: *budget was *exclude_waits=False*"])


def test_a_retry_runs_chosen_outcomes_again_and_counts_once(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.run("--mlab-agent=reference", "--mlab-repeats=3")
    for repeat, outcome in (("1", "infra_error"), ("2", "provider_error")):
        file = project.trial(f"guess/reference/{repeat}") / "result.json"
        result = json.loads(file.read_text(encoding="utf-8"))
        result["outcome"] = outcome
        result["ledger"]["cost"] = 0.25
        file.write_text(json.dumps(result), encoding="utf-8")

    kept = project.run(f"--mlab-resume={RUN}", run_dir=False)
    text = " ".join(kept.stdout.str().split())
    printed = f"pytest --mlab-resume={RUN} --mlab-retry=infra,provider"
    assert f"2 trials ended as infra_error or provider_error; {KEPT} {printed}" in text
    assert project.summary()["earlier_attempts"]["attempts"] == 0

    # The command as it is printed; -k leaves trials out, which keep their results.
    words = printed.split()[1:]
    project.run(*words, "-k", "reference-1", run_dir=False)
    assert project.result("guess/reference/2")["outcome"] == "provider_error"
    again = project.run(*words, run_dir=False)
    assert again.ret == 0, again.stdout.str()
    again.stdout.fnmatch_lines(["2 earlier attempts of 2 trials put aside, *$0.50*"])
    summary = project.summary()
    assert summary["earlier_attempts"] == {"attempts": 2, "trials": 2, "cost_usd": 0.5}
    assert summary["planned"] == 3
    assert list(project.result("guess/reference/1")["id"].values())[-1] == 1
    capsys.readouterr()
    assert cli.main(["show", str(project.run_dir)]) == 0
    shown = capsys.readouterr().out
    assert "guess-reference-1  success (earlier attempts: infra_error)" in shown
    assert cli.main(["show", str(project.run_dir), "guess-reference-1"]) == 0
    assert "earlier attempt, infra_error: " in capsys.readouterr().out


KEPT = "a resumed run keeps that result; to run them again:"
