"""A folder of tasks in MLAgentBench's own format, given by its path, runs like any other suite."""

from __future__ import annotations

import pytest

from tests.support.foreign_suite import PREPARE, files_below, foreign_task
from tests.support.project import Project

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
    args = ("--mlab-suite=checkout/benchmarks", "--mlab-agent=yes", "--mlab-agent=baseline", "-k", "guess")
    result = project.run(*args, "--mlab-gate=none", "-v")
    result.stdout.fnmatch_lines(["task_suites/test_benchmarks.py::test_beats_baseline[[]guess-yes-1[]]*"])
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
def test_what_is_missing_is_a_skip_that_says_so(project: Project, changed: dict[str, str], message: str) -> None:
    foreign_task(project.path / "benchmarks" / "guess", dict(changed))
    result = project.run("--mlab-suite=./benchmarks", "--mlab-agent=baseline", "-rs")
    assert result.parseoutcomes()["skipped"] == 1
    result.stdout.fnmatch_lines([f"SKIPPED*{message}"])


def test_an_unknown_task_is_a_usage_error_with_the_lines_to_add(project: Project) -> None:
    foreign_task(project.path / "benchmarks" / "guess", {"mlab.toml": None})
    result = project.run("--mlab-suite=./benchmarks", "--mlab-agent=baseline")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*write these lines*", '*direction = "maximize"*', "*starter_script*"])
