"""A folder of tasks in MLAgentBench's own format, given by its path, runs like any other suite."""

from __future__ import annotations

import pytest

from pytest_mlab import cli
from tests.support.foreign_suite import EVAL, MLAB_TOML, PREPARE, files_below, foreign_task
from tests.support.project import RUN, Project

AGENT = """\
from pytest_mlab import Action


class YesAgent:
    needs_model = False

    def run(self, env):
        env.execute(Action("Write File", {"file_name": "train.py", "content": SOURCE}))
        env.execute(Action("Execute Script", {"script_name": "train.py"}))
        env.execute(Action("Final Answer", {"final_answer": "yes"}))


SOURCE = '''
with open("test.csv") as file:
    ids = file.read().split()[1:]
with open("submission.csv", "w") as file:
    file.write("id,label\\\\n" + "".join(f"{one},yes\\\\n" for one in ids))
'''
"""


def test_a_path_stands_for_a_suite(project: Project) -> None:
    bench = project.path / "checkout" / "benchmarks"
    foreign_task(bench / "guess")
    foreign_task(bench / "other")
    before = files_below(bench)
    project.agent("yes", AGENT)
    args = (
        "--mlab-suite=checkout/benchmarks",
        "--mlab-agent=yes",
        "--mlab-agent=baseline",
        "-k",
        "guess",
    )
    result = project.run(*args, "--mlab-gate=none", "-v")
    result.stdout.fnmatch_lines(
        ["task_suites/test_benchmarks.py::test_beats_baseline[[]guess-yes-1[]]*"]
    )
    assert project.result("guess/yes/1")["score"] == 0.6
    assert project.result("guess/yes/1")["outcome"] == "success"
    assert project.result("guess/baseline/1")["score"] == 0.4
    assert project.result("guess/baseline/1")["outcome"] == "below_threshold"
    assert files_below(bench) == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scripts/prepare.py": "input('Consent?')\n" + PREPARE}, "*--accept-rules guess*"),
        ({"mlab.toml": 'direction = "maximize"\n'}, "*has no baseline: add baseline = *"),
    ],
)
def test_what_is_missing_is_a_skip_that_says_so(
    project: Project, changed: dict[str, str], message: str
) -> None:
    foreign_task(project.path / "benchmarks" / "guess", dict(changed))
    result = project.run("--mlab-suite=./benchmarks", "--mlab-agent=baseline", "-rs")
    assert result.parseoutcomes()["skipped"] == 3  # the trial, and two verdicts about it
    result.stdout.fnmatch_lines([f"SKIPPED*{message}"])


def test_an_unknown_task_is_skipped_alone_with_the_lines_to_add(project: Project) -> None:
    bench = project.path / "benchmarks"
    foreign_task(bench / "guess")
    foreign_task(bench / "odd", {"mlab.toml": None})
    result = project.run(
        "--mlab-suite=./benchmarks", "--mlab-agent=baseline", "--mlab-gate=none", "-rs"
    )
    result.stdout.fnmatch_lines(
        [
            "SKIPPED*'odd' is not one of its own tasks*write these lines*",
            '*direction = "maximize"*',
            "*starter_script*",
        ]
    )
    assert project.result("guess/baseline/1")["score"] == 0.4
    assert project.summary()["missing"][0]["trial"] == "odd-baseline-1"


def test_an_unknown_task_is_in_nobodys_way(project: Project) -> None:
    bench = project.path / "benchmarks"
    foreign_task(bench / "guess")
    foreign_task(bench / "odd", {"mlab.toml": None})
    result = project.run(
        "--mlab-suite=./benchmarks", "--mlab-agent=baseline", "--mlab-gate=none", "-k", "guess"
    )
    assert result.ret == 0
    assert project.plan() == ["guess-baseline-1"]
    assert "odd" not in result.stdout.str()


def test_what_was_skipped_runs_once_its_facts_are_there(project: Project) -> None:
    bench = project.path / "benchmarks"
    foreign_task(bench / "odd", {"mlab.toml": None})
    project.run("--mlab-suite=./benchmarks", "--mlab-agent=baseline", "--mlab-gate=none")
    result = project.run(f"--mlab-resume={RUN}", "-rs", run_dir=False)
    result.stdout.fnmatch_lines(["SKIPPED*'odd' is not one of its own tasks*"])
    (bench / "odd" / "mlab.toml").write_text(MLAB_TOML)
    result = project.run(f"--mlab-resume={RUN}", run_dir=False)
    result.stderr.fnmatch_lines(["*the task odd has changed since*start a new run*"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_folders_that_are_no_tasks_are_told_in_the_header(
    project: Project, workers: tuple[str, ...]
) -> None:
    bench = project.path / "benchmarks"
    foreign_task(bench / "guess")
    foreign_task(bench / "tool", {"scripts/eval.py": None})
    args = ("--mlab-suite=./benchmarks", "--mlab-agent=baseline", "--mlab-gate=none")
    result = project.run(*args, *workers)
    result.stdout.fnmatch_lines(["mlab: no tasks, and left out: tool (no scripts/eval.py)"])
    assert result.stdout.str().count("left out: tool") == 1
    assert "left out: tool" not in project.run(*args, "--mlab-task=guess").stdout.str()


def test_packages_that_the_code_imports_are_asked_for_before_a_trial(project: Project) -> None:
    foreign_task(
        project.path / "benchmarks" / "guess",
        {"scripts/eval.py": "import no_such_package\n" + EVAL},
    )
    result = project.run("--mlab-suite=./benchmarks", "--mlab-agent=baseline", "-rs")
    result.stdout.fnmatch_lines(
        ["SKIPPED*no_such_package (scripts/eval.py); to fix: python -m pip install no_such_package"]
    )
    assert not project.trial("guess/baseline/1").exists()


BROKEN = "def load(path):\n    raise ValueError('no such column')\n\n\nload('test.csv')\n"


def test_starter_code_that_does_not_run_is_the_tasks_fault_and_told_in_a_line(
    project: Project,
) -> None:
    foreign_task(project.path / "benchmarks" / "guess", {"env/train.py": BROKEN})
    result = project.run("--mlab-suite=./benchmarks", "--mlab-agent=baseline")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    found = project.result("guess/baseline/1")
    assert found["outcome"] == "task_error"
    assert found["reason"].startswith(
        "the task's own code does not run here: train.py failed at train.py:2: ValueError: no such"
        " column; so "
    )


def test_an_agents_own_script_that_failed_is_told_beside_what_is_missing(project: Project) -> None:
    foreign_task(project.path / "benchmarks" / "guess")
    project.agent(
        "breaks",
        AGENT.replace("YesAgent", "BreaksAgent").replace("with open", "undefined\nwith open", 1),
    )
    project.run("--mlab-suite=./benchmarks", "--mlab-agent=breaks", "--mlab-gate=none")
    found = project.result("guess/breaks/1")
    assert found["outcome"] == "no_submission"
    assert (
        found["reason"]
        == "submission.csv is missing; the last script, train.py failed at train.py:2: NameError:"
        " name 'undefined' is not defined"
    )


def test_tasks_lists_what_cannot_be_run_and_what_is_left_out(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = project.path / "benchmarks"
    foreign_task(bench / "guess")
    foreign_task(bench / "odd", {"mlab.toml": None})
    foreign_task(bench / "tool", {"scripts/eval.py": None})
    assert cli.main(["tasks", "--suite", str(bench)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("guess ") for line in lines)
    assert any(line.startswith("odd cannot be run: ") for line in lines)
    assert lines[-2:] == ["left out, since they are not tasks:", "  tool: no scripts/eval.py"]
