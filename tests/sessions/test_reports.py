"""What a run leaves behind: the table, summary.json, report.md and JUnit."""

from __future__ import annotations

import pytest

from tests.support.project import Project

TRIAL = "task_suites.test_toy::test_beats_baseline[guess-{}-1]"


@pytest.fixture
def done(project: Project) -> Project:
    """A run of both control agents."""
    result = project.run("--mlab-agent=baseline", "--mlab-agent=reference", "--mlab-gate=aggregate")
    assert result.ret == 0, result.stdout.str()
    return project


def test_junit_summary_and_report_say_all_of_a_run(done: Project) -> None:
    cases = done.junit()
    assert set(cases) == {
        TRIAL.format("baseline"),
        TRIAL.format("reference"),
        "mlab::guess-baseline",
        "mlab::guess-reference",
        "mlab::suite-baseline",
        "mlab::suite-reference",
    }
    good = cases[TRIAL.format("reference")]
    assert good.status == ""
    for name, value in {
        "mlab.task": "guess",
        "mlab.agent": "reference",
        "mlab.repeat": "1",
        "mlab.outcome": "success",
        "mlab.score": "1.0",
        "mlab.baseline": "0.4",
        "mlab.steps": "3",
        "mlab.trace": "run/trials/guess/reference/1/trace.jsonl",
    }.items():
        assert good.properties[name].startswith(value), name
    assert float(good.properties["mlab.improvement"]) == pytest.approx(1.5)
    below = cases[TRIAL.format("baseline")]
    assert below.status == "skipped"
    assert below.text.startswith("below_threshold: ")
    verdict = cases["mlab::guess-reference"]
    assert verdict.properties["mlab.success_rate"] == "1.0"
    assert verdict.properties["mlab.trials"] == "1"
    suite = done.junit_suite()
    assert suite["mlab.planned"] == "2"
    assert suite["mlab.sandbox"] == "local"
    assert suite["mlab.reference.success_rate"] == "1.0"
    assert suite["mlab.gate_passed"] == "True"
    summary = done.summary()
    assert summary["planned"] == 2
    assert summary["missing"] == []
    assert [s["success"]["rate"] for s in summary["subjects"]] == [0.0, 1.0]
    assert summary["run"]["identity"]["options"]["--mlab-gate"] == "aggregate"
    assert "reference" in (done.run_dir / "report.md").read_text()


def test_the_table_fits_and_names_the_files(project: Project) -> None:
    result = project.run("--mlab-agent=reference")
    result.stdout.fnmatch_lines(
        [
            "*= mlab =*",
            "agent reference",
            "guess * 1/1 *",
            "gate trial: passed",
            "wrote run/summary.json",
        ]
    )
    lines = result.outlines
    begin = next(i for i, line in enumerate(lines) if "= mlab =" in line)
    end = next(i for i, line in enumerate(lines) if line.startswith("wrote run/report.md"))
    assert max(map(len, lines[begin:end])) <= 80


def test_a_junit_file_asked_for_elsewhere_is_written_there_and_copied(project: Project) -> None:
    assert project.run("--mlab-agent=reference", "--junitxml=mine.xml").ret == 0
    assert (project.path / "mine.xml").read_bytes() == (project.run_dir / "junit.xml").read_bytes()


@pytest.mark.parametrize(
    ("which", "cases", "suite"), [("suite", False, True), ("none", False, False)]
)
def test_properties_can_be_left_out(project: Project, which: str, cases: bool, suite: bool) -> None:
    assert project.run("--mlab-agent=reference", f"--mlab-junit-properties={which}").ret == 0
    assert any(case.properties for case in project.junit().values()) is cases
    assert bool(project.junit_suite()) is suite


def test_the_default_run_directory_is_named_by_time(project: Project) -> None:
    assert project.run("--mlab-agent=reference", run_dir=False).ret == 0
    (run,) = (project.path / "reports").iterdir()
    assert {file.name for file in run.iterdir()} >= {
        "plan.json",
        "run.json",
        "summary.json",
        "report.md",
        "junit.xml",
    }
