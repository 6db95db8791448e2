"""``--mlab-agent-arg`` and variants of an agent: from the command line into the trial, the reports
and a resumption."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.support.project import RUN, Project

TELLING = """\
from pydantic import BaseModel, Field

from pytest_mlab import Action


class Settings(BaseModel, frozen=True, extra="forbid"):
    word: str = Field("nothing", description="what to say")
    times: int = Field(1, ge=1, description="how often")


class Telling:
    needs_model = False
    Settings = Settings

    def __init__(self, settings=None):
        self.settings = settings or Settings()

    def run(self, env):
        for _ in range(self.settings.times):
            env.note("told", {"word": self.settings.word})
        env.execute(Action("Final Answer", {"final_answer": self.settings.word}))
"""


@pytest.fixture
def telling(project: Project) -> Project:
    """A project with an agent that says what it was set to."""
    project.agent("telling", TELLING)
    return project


def told(project: Project, trial: str) -> list[str]:
    trace = (project.trial(trial) / "trace.jsonl").read_text().splitlines()
    return [
        event["data"]["word"] for event in map(json.loads, trace) if event.get("kind") == "told"
    ]


def test_a_setting_reaches_the_trial_and_the_reports(telling: Project) -> None:
    result = telling.run(
        "--mlab-agent=telling", "--mlab-agent-arg=word=a b", "--mlab-agent-arg=times=2", "-vv"
    )
    result.stdout.fnmatch_lines(["mlab: settings of telling: word=a b, times=2"])
    assert told(telling, "guess/telling/1") == ["a b", "a b"]
    assert telling.summary()["run"]["agent_settings"] == {"telling": {"word": "a b", "times": 2}}
    assert "word=a b, times=2" in (telling.run_dir / "report.md").read_text()


def test_the_ini_file_sets_too(telling: Project) -> None:
    telling.pytester.makeini("[pytest]\nmlab_agent_arg = word=ini")
    telling.run("--mlab-agent=telling")
    assert told(telling, "guess/telling/1") == ["ini"]


def test_variants_are_compared_in_one_run(telling: Project) -> None:
    result = telling.run(
        "--mlab-agent=telling", "--mlab-agent=telling[word=loud]", "-n2", "--mlab-gate=none"
    )
    assert result.ret == 0, result.stdout.str()
    subjects = [subject["agent"] for subject in telling.summary()["subjects"]]
    assert subjects == ["telling", "telling[word=loud]"]
    words = {
        word
        for folder in (telling.run_dir / "trials" / "guess").iterdir()
        for word in told(telling, f"guess/{folder.name}/1")
    }
    assert words == {"nothing", "loud"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--mlab-agent-arg=times=often"],
            "*the agent telling: times=often: *valid integer*settings of telling*",
        ),
        (
            ["--mlab-agent-arg=tiems=2"],
            "*the agent telling: tiems=2: unknown setting 'tiems'; did you mean 'times'*",
        ),
        (["--mlab-agent-arg=loud"], "*--mlab-agent-arg=loud: give key=value"),
        (
            ["--mlab-agent=baseline", "--mlab-agent-arg=baseline.x=1"],
            "*the agent baseline has no settings, found x=1*",
        ),
    ],
)
def test_mistakes_are_usage_errors_before_anything_runs(
    telling: Project, args: list[str], message: str
) -> None:
    result = telling.run("--mlab-agent=telling", *args)
    assert result.ret == 4
    result.stderr.fnmatch_lines([message])
    assert not telling.run_dir.exists()


def test_a_run_is_resumed_with_its_settings_only(telling: Project) -> None:
    telling.run("--mlab-agent=telling", "--mlab-agent-arg=word=first")
    shutil.rmtree(telling.trial("guess/telling/1"))
    refused = telling.run(
        f"--mlab-resume={RUN}",
        "--mlab-agent=telling",
        "--mlab-agent-arg=word=second",
        run_dir=False,
    )
    refused.stderr.fnmatch_lines(
        ["*other settings: the agent telling had word=first, has word=second*"]
    )
    telling.run(f"--mlab-resume={RUN}", run_dir=False)
    assert told(telling, "guess/telling/1") == ["first"]
