"""``--mlab-record`` and ``--mlab-replay``: what a session does with recordings, good ones and bad
ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_mlab.core.model_api import ModelReply
from pytest_mlab.models.recording.format import read_recording
from tests.faults.session import Session
from tests.support.project import RUN, Project
from tests.support.scripted_server import Request, ScriptedServer

KEY = "sk-not-a-real-key-0123456789"
MODEL = "openai/main"
TRIAL = "guess/talker--openai-main/1"

TALKER = """\
import os, sys

from pytest_mlab import Action


class Talker:
    needs_model = True

    def run(self, env):
        keys = [name for name in os.environ if "API_KEY" in name]
        env.note("inside", {"litellm": "litellm" in sys.modules, "keys": keys})
        env.execute(Action("Execute Script", {"script_name": "train.py"}))
        prompt = "first line\\nHow shall we do it?\\nlast line"
        said = env.model.complete(prompt, temperature=0.5).text
        said = env.model.complete(f"Shorter: {said}", role="fast").text
        env.execute(Action("Final Answer", {"final_answer": said}))
"""

SHOW_MODULES = """\
import sys


def pytest_unconfigure():
    print("LITELLM", "litellm" in sys.modules)
"""


def answer(request: Request) -> str:
    return f"{request.model} heard {len(request.prompt)} characters"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recordings of two repeats."""
    session = Session(tmp_path_factory.mktemp("recorded"))
    session.agent("talker", TALKER)
    with ScriptedServer(answer, key=KEY) as server:
        said = session.pytest(
            "--mlab-sandbox=local",
            "--mlab-agent=talker",
            f"--mlab-model={MODEL}",
            "--mlab-fast-model=openai/fast",
            "--mlab-repeats=2",
            "--mlab-gate=none",
            "--mlab-record=recordings",
            env={"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.base_url},
        )
    assert said.ret == 0, said.out
    assert "mlab: model calls are recorded into" in said.out
    return session.path / "recordings"


Replay = Callable[..., pytest.RunResult]


@pytest.fixture
def mine(project: Project, recordings: Path) -> Path:
    """A copy of the recordings in a project that has the agent."""
    project.agent("talker", TALKER)
    return Path(shutil.copytree(recordings, project.path / "recordings"))


@pytest.fixture
def replay(project: Project, mine: Path) -> Replay:
    """Replay, without key and without server."""

    def run(*args: str) -> pytest.RunResult:
        words = [
            "--mlab-agent=talker",
            f"--mlab-model={MODEL}",
            "--mlab-fast-model=openai/fast",
            "--mlab-gate=none",
        ]
        return project.run(*words, "--mlab-replay=recordings", *args)

    return run


def first(mine: Path) -> Path:
    return mine / "guess" / "talker--openai-main" / "1.jsonl"


def change(project: Project, old: str, new: str) -> None:
    assert TALKER.count(old) == 1
    project.agent("talker", TALKER.replace(old, new))


def usage_error(result: pytest.RunResult) -> str:
    assert result.ret == pytest.ExitCode.USAGE_ERROR, result.stdout.str()
    return " ".join((result.stderr.str() + result.stdout.str()).split())


# --- a replay that fits ---


def test_it_needs_no_key_and_no_litellm(project: Project, mine: Path) -> None:
    (project.path / "conftest.py").write_text(SHOW_MODULES, encoding="utf-8")
    words = [
        "--mlab-agent=talker",
        f"--mlab-model={MODEL}",
        "--mlab-fast-model=openai/fast",
        "--mlab-gate=none",
    ]
    result = project.spawn(*words, "--mlab-replay=recordings", "--mlab-repeats=2", "-s")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["mlab: REPLAYED (strict) from*", "LITELLM False"])
    trace = (project.trial(TRIAL) / "trace.jsonl").read_text(encoding="utf-8")
    notes = [
        event["data"] for event in map(json.loads, trace.splitlines()) if event["type"] == "note"
    ]
    assert notes == [{"litellm": False, "keys": []}]


def test_reports_say_that_nothing_was_measured_now(
    project: Project, replay: Replay, mine: Path
) -> None:
    result = replay()
    assert result.ret == 0
    assert "REPLAYED (strict) from" in " ".join(result.stdout.str().split("=\nrun ")[-1].split())
    assert "REPLAYED (strict) from" in (project.run_dir / "report.md").read_text(encoding="utf-8")
    assert (
        project.summary()["conditions"]["replayed_from"]
        == project.junit_suite()["mlab.replayed_from"]
        == str(mine)
    )
    replies = [call.outcome for call in read_recording(first(mine)).calls]
    used = project.result(TRIAL)["ledger"]
    assert used["model_calls"] == len(replies) == 2
    tokens = [reply.usage.prompt_tokens for reply in replies if isinstance(reply, ModelReply)]
    assert used["usage"]["prompt_tokens"] == sum(tokens) > 0


def test_the_recorded_time_passes_on_the_trials_clock(
    project: Project, replay: Replay, mine: Path
) -> None:
    path = first(mine)
    lines = path.read_text(encoding="utf-8").splitlines()
    slow = [
        json.dumps(json.loads(line) | {"seconds": 40.0}) if line.startswith('{"reply"') else line
        for line in lines
    ]
    path.write_text("\n".join(slow) + "\n", encoding="utf-8")
    assert replay("--mlab-max-time=60s").ret == 0
    result = project.result(TRIAL)
    assert result["ended_by"] == "seconds"
    assert result["ledger"]["seconds"] > 80
    assert result["finished_at"] - result["started_at"] < 60


def test_the_same_limits_hold(project: Project, replay: Replay) -> None:
    assert replay("--mlab-max-tokens=5").ret == 0
    assert project.result(TRIAL)["ended_by"] == "tokens"
    assert project.result(TRIAL)["ledger"]["model_calls"] == 1


def test_a_selection_of_the_recorded_tasks(project: Project, replay: Replay) -> None:
    shutil.copytree(
        project.path / "task_suites" / "toy" / "guess",
        project.path / "task_suites" / "toy" / "other",
    )
    toml = project.path / "task_suites" / "toy" / "other" / "task.toml"
    toml.write_text(toml.read_text().replace('name = "guess"', 'name = "other"'))
    assert replay("-k", "guess").ret == 0
    assert "no recording of the task other in" in usage_error(
        replay("-k", "other", "--mlab-run-dir=run2")
    )


# --- a replay that does not fit ---


def test_a_changed_prompt_is_an_error_in_every_gate(project: Project, replay: Replay) -> None:
    change(project, "How shall we do it?", "How do we do it?")
    for number, gate in enumerate(("trial", "aggregate")):
        result = replay(f"--mlab-gate={gate}", f"--mlab-run-dir=run{number}")
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(
            [
                "*message 1 (user) (- recorded, + now):",
                "*@@ line 1",
                "*first line",
                "*-How shall we do it?",
                "*+How do we do it?",
                "*last line",
                "*since the recording: the agent has changed",
            ]
        )


def test_lenient_lets_it_pass(project: Project, replay: Replay) -> None:
    change(project, "How shall we do it?", "How do we do it?")
    result = replay("--mlab-replay-mode=lenient")
    result.stdout.fnmatch_lines(["mlab: REPLAYED (lenient) from*"])
    assert project.result(TRIAL)["ended_by"] == "submitted"


def test_an_agent_that_catches_the_error_does_not_hide_it(project: Project, replay: Replay) -> None:
    source = TALKER.replace("temperature=0.5", "temperature=0.75")
    begin, _, end = source.partition("        said = ")
    body = "\n".join("    " + line for line in ("        said = " + end).splitlines())
    catching = f"{begin}        try:\n{body}\n        except Exception:\n"
    catching += '            env.execute(Action("Final Answer", {"final_answer": "all is well"}))\n'
    project.agent("talker", catching)
    assert replay().ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result = project.result(TRIAL)
    assert (result["outcome"], result["ended_by"]) == ("infra_error", "error")
    assert "parameters (- recorded, + now)" in result["reason"]
    assert '+ "temperature": 0.75' in result["reason"]


def test_more_calls_than_recorded(project: Project, replay: Replay) -> None:
    change(
        project,
        '        env.execute(Action("Final',
        "        env.model.complete('more')\n        env.execute(Action(\"Final",
    )
    replay()
    assert project.result(TRIAL)["outcome"] == "infra_error"
    assert (
        "this is call 3, and recordings/guess/talker--openai-main/1.jsonl has 2;"
        in project.result(TRIAL)["reason"]
    )


def test_fewer_calls_than_recorded_are_noted(project: Project, replay: Replay) -> None:
    change(project, '        said = env.model.complete(f"Shorter: {said}", role="fast").text\n', "")
    result = replay()
    note = "1 of the 2 calls of recordings/guess/talker--openai-main/1.jsonl were not asked for"
    assert project.result(TRIAL)["notes"] == [note]
    assert project.summary()["subjects"][0]["tasks"][0]["trials"][0]["notes"] == [note]
    assert note in (project.run_dir / "report.md").read_text(encoding="utf-8").replace("\\", "")
    assert "NOTES on 1 trial" in result.stdout.str()


def test_a_task_that_has_changed_is_noted(project: Project, replay: Replay) -> None:
    toml = project.path / "task_suites" / "toy" / "guess" / "task.toml"
    toml.write_text(toml.read_text().replace('version = "1"', 'version = "2"'))
    replay("--mlab-max-steps=9")
    (note,) = project.result(TRIAL)["notes"]
    assert note.startswith(
        "since recordings/guess/talker--openai-main/1.jsonl was recorded: the task has changed"
        " (digest"
    )
    assert "max-steps was 50, is 9" in note
    assert project.result(TRIAL)["ended_by"] == "submitted"


def test_a_torn_recording_answers_up_to_the_tear(
    project: Project, replay: Replay, mine: Path
) -> None:
    content = first(mine).read_bytes()
    first(mine).write_bytes(content[: content.rindex(b'{"reply"') + 20])
    replay()
    reason = project.result(TRIAL)["reason"]
    assert "this is call 2" in reason
    assert "has 1 and no end: its trial was killed, or the file was cut" in reason


def test_a_damaged_recording_is_an_error_of_its_trial(
    project: Project, replay: Replay, mine: Path
) -> None:
    content = first(mine).read_bytes()
    first(mine).write_bytes(content.replace(b'\n{"call": 1', b'\n<<<<<<< HEAD\n{"call": 1', 1))
    assert replay("--mlab-repeats=2").ret == 0
    result = project.result(TRIAL)
    assert result["outcome"] == "infra_error"
    assert "talker--openai-main/1.jsonl:" in result["reason"]
    assert project.result(TRIAL[:-1] + "2")["ended_by"] == "submitted"


# --- found out at start ---


def test_repeats_beyond_the_recorded_ones(project: Project, replay: Replay) -> None:
    said = usage_error(replay("--mlab-repeats=4"))
    assert not list(project.run_dir.glob("trials/*/*/*"))
    assert (
        "--mlab-replay: 2 of 4 trials cannot be replayed: no recording of repeat 3 of"
        " talker--openai-main" in said
    )
    assert "only of 1, 2; give --mlab-repeats=2 or record more" in said


def test_mlab_plan_says_what_is_missing(
    project: Project, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pytest_mlab.cli import main

    words = [
        "--mlab-suite=toy",
        "--mlab-agent=talker",
        f"--mlab-model={MODEL}",
        "--mlab-fast-model=openai/fast",
    ]
    assert (
        main(["plan", *words, "--mlab-repeats=3", f"--mlab-replay={mine}", "--mlab-sandbox=local"])
        == 1
    )
    said = capsys.readouterr().out
    assert "no recording of repeat 3" in said
    assert "$0.00" in said


# --- resuming ---


def test_a_resumed_run_goes_on_recording_and_replaying(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.agent("talker", TALKER)
    with ScriptedServer(answer, key=KEY) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        words = [
            "--mlab-agent=talker",
            f"--mlab-model={MODEL}",
            "--mlab-gate=none",
            "--mlab-repeats=2",
        ]
        assert project.spawn(*words, "--mlab-record=recordings").ret == 0
        path = first(project.path / "recordings")
        kept = path.with_name("2.jsonl").stat().st_mtime_ns
        path.write_bytes(path.read_bytes()[:-30])  # as if its worker had died
        (project.trial(TRIAL) / "result.json").unlink()
        assert project.run(f"--mlab-resume={RUN}", "--mlab-gate=none", run_dir=False).ret == 0
        assert read_recording(path).whole
        assert path.with_name("2.jsonl").stat().st_mtime_ns == kept

    monkeypatch.delenv("OPENAI_API_KEY")
    again = Project(project.pytester, "again")
    assert project.run(*words, "--mlab-replay=recordings", "--mlab-run-dir=again").ret == 0
    (again.trial(TRIAL) / "result.json").unlink()
    assert project.run("--mlab-resume=again", "--mlab-gate=none", run_dir=False).ret == 0
    assert again.result(TRIAL)["ended_by"] == "submitted"
    said = usage_error(project.run("--mlab-resume=again", "--mlab-replay=elsewhere", run_dir=False))
    assert "goes on recording or replaying as it began" in said
