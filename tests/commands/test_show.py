from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.store.events import (
    AgentEnded,
    Evaluation,
    ModelCall,
    Note,
    StepDone,
    TrialFinished,
    TrialStarted,
    WorkspaceRestored,
    WorkspaceRestoring,
)
from pytest_mlab.store.rundir import RunDir
from tests.core.builders import a_result
from tests.reporting.runs import a_run

TRIAL = TrialId("toy", "research", "m", 1)
LEDGER = Ledger(steps=1).with_call(Usage(1000, 200), 0.01)


def a_traced_run(path: Path) -> RunDir:
    """A run of one trial with every kind of event, and one trial that never ran."""
    run = a_run(path, [], [TRIAL, TrialId("toy", "research", "m", 2)])
    messages = [{"role": "user", "content": "Improve it.\nNow."}]
    prompt = run.store.put_bytes(json.dumps(messages).encode()).digest
    reply = run.store.put_bytes(b"Thought: run it\x1b[2J").digest
    blocks = [
        {"type": "thinking", "thinking": "hm\x1b"},
        {"type": "redacted_thinking", "data": "x"},
    ]
    reasoning = run.store.put_bytes(json.dumps(blocks).encode()).digest
    folder = run.trial(TRIAL)
    with folder.journal() as journal:
        journal.write(
            TrialStarted(
                t=0,
                trial=TRIAL,
                pid=1,
                sandbox="bubblewrap",
                budget=Budget(),
                task_digest="",
                data="mini",
                data_digest="",
                agent_digest="",
                machine="a machine",
                starter="",
            )
        )
        journal.write(
            ModelCall(
                t=1,
                role="main",
                model="m",
                prompt=prompt,
                reply=reply,
                reasoning=reasoning,
                usage=Usage(1000, 200),
                cost=None,
                seconds=3.2,
                waited=1.0,
                remark="asked by text from now on",
                retries=1,
                ledger=LEDGER,
            )
        )
        journal.write(Note(t=1, kind="plan", data={"status": "first"}))
        journal.write(
            StepDone(
                t=2,
                index=1,
                action="Execute Script",
                args={"script_name": "train.py", "content": "a\nb " + "x" * 300},
                observation="\n".join(f"epoch {n} é" for n in range(20)) + "\x1b[31m" + "y" * 100,
                ok=False,
                exit_status=1,
                output_file="outputs/1.txt",
                output_bytes=123456,
                seconds=12.0,
                snapshot="s1",
                set={"train.py": "a" * 64},
                deleted=["old.txt"],
                ledger=LEDGER,
            )
        )
        journal.write(WorkspaceRestoring(t=2, step=0, snapshot="s0"))
        journal.write(
            WorkspaceRestored(
                t=2, step=0, snapshot="s0", missing=["model.pt"], seconds=0.25, ledger=LEDGER
            )
        )
        journal.write(
            AgentEnded(t=3, ended_by=EndedBy.SUBMITTED, tampered=["train.csv"], ledger=LEDGER)
        )
        journal.write(Evaluation(t=4, verdict="scored", score=0.5, seconds=2.0))
        journal.write(
            TrialFinished(
                t=5, outcome=Outcome.BELOW_THRESHOLD, reason="accuracy 0.5 is not above 0.55"
            )
        )
    result = a_result(1, Outcome.BELOW_THRESHOLD, improvement=0.0, within_noise=True)
    folder.write_result(
        TrialResult(
            **{**vars(result), "ended_by": EndedBy.SUBMITTED, "tools_by_text": ("openai/m",)}
        )
    )
    return run


def show(path: Path, *words: str) -> int:
    return cli.main(["show", *words, "--reports", str(path)])


def test_a_trial_reads_from_start_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_traced_run(tmp_path / "r")
    assert show(tmp_path, "r", TRIAL.name) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "trial toy-research-m-1 of run 20240310-1200-abcd"
    for line in (
        "below_threshold: a reason",
        "note: tools by text, no native ones: the provider of openai/m refused them",
        "score 0.7; baseline 0.5; needed 0.55; improvement +0.0%; within the baseline's",
        "started in sandbox bubblewrap, data mini, on a machine",
        "  model call: main, m, 1.2k tokens, $?, 3.2s, 1 retry (1.0s of waiting), asked",
        "    by text from now on",
        '  note plan: {"status": "first"}',
        "step 1: Execute Script, 12.0s, exit status 1, error",
        "    script_name: train.py",
        "    | epoch 0 é",
        "    | (14 lines more)",
        "    whole output (123k bytes): outputs/1.txt",
        "workspace restored to what it was at the start, 0.2s",
        "    not there again, because they were not kept: model.pt",
        "agent ended: submitted",
        "    read-only files changed: train.csv",
        "evaluation of the final workspace: scored, score 0.5, 2.0s",
        "finished: below_threshold: accuracy 0.5 is not above 0.55",
    ):
        assert line in lines, line
    assert all(len(line) <= 80 for line in lines if str(tmp_path) not in line and "xxx" not in line)


def test_a_step_is_shown_whole_with_its_model_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_traced_run(tmp_path / "r")
    assert show(tmp_path, "r", TRIAL.name, "--step", "1") == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[2:7] == [
        "    prompt:",
        "    | [user]",
        "    | Improve it.",
        "    | Now.",
        "    reply:",
    ]
    assert r"    | Thought: run it\x1b[2J" in lines
    thought = lines.index("    reasoning:")
    assert lines[thought + 1 : thought + 4] == [
        r"    | hm\x1b",
        "    |",
        "    | (redacted_thinking)",
    ]
    assert "    | epoch 18 é" in lines
    assert out.replace("\n    | ", "").count("x" * 300) == 1
    assert "\x1b" not in out
    assert "    changed train.py (aaaaaaaaaaaa)" in lines
    assert "    deleted old.txt" in lines
    assert max(map(len, lines)) <= 80


def test_a_step_that_is_not_there_names_the_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_traced_run(tmp_path / "r")
    assert show(tmp_path, "r", TRIAL.name, "--step", "7") == 2
    assert "no step 7 in the trace; its last step is 1" in capsys.readouterr().err


def test_a_trial_that_did_not_run_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_traced_run(tmp_path / "r")
    assert show(tmp_path, "r", "toy-research-m-2") == 2
    assert "toy-research-m-2 has not run" in capsys.readouterr().err


def test_a_trial_without_an_end_shows_what_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_traced_run(tmp_path / "r")
    (run.trial(TRIAL).path / "result.json").unlink()
    assert show(tmp_path, "r", TRIAL.name) == 0
    out = capsys.readouterr().out
    assert "no result yet: the trial is running, or it was interrupted" in out
    assert "step 1: Execute Script" in out


def test_a_step_has_its_own_model_calls_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(tmp_path / "r", [], [TRIAL])
    with run.trial(TRIAL).journal() as journal:
        for index in (1, 2):
            prompt = run.store.put_bytes(f"prompt {index}".encode()).digest
            journal.write(
                ModelCall(t=0, role="main", model="m", prompt=prompt, seconds=0.5, ledger=LEDGER)
            )
            journal.write(
                StepDone(
                    t=0,
                    index=index,
                    action="List Files",
                    args={"dir_path": "."},
                    observation="",
                    ok=True,
                    seconds=0.1,
                    snapshot="",
                    ledger=LEDGER,
                )
            )
    assert show(tmp_path, "r", TRIAL.name, "--step", "2") == 0
    out = capsys.readouterr().out
    assert "prompt 2" in out
    assert "prompt 1" not in out
    assert out.count("model call") == 1


def test_the_log_is_what_the_agent_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_traced_run(tmp_path / "r")
    assert show(tmp_path, "r", TRIAL.name, "--log") != 0
    assert "printed nothing" in capsys.readouterr().err
    (run.trial(TRIAL).path / "agent.log").write_bytes(b"one\x1b[2J\n\ttwo \xff\n")
    assert show(tmp_path, "r", TRIAL.name, "--log") == 0
    out = capsys.readouterr().out
    assert out.endswith("one\\x1b[2J\n    two \ufffd\n\n")
    assert "Execute Script" not in out


def test_without_a_trial_the_trials_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_traced_run(tmp_path / "20260101-000000-0001")
    assert cli.main(["show", "--reports", str(tmp_path), "last"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("run ")
    assert [line.split("  ")[0] for line in lines[1:]] == ["toy-research-m-1", "toy-research-m-2"]
    assert lines[2].endswith("  not run")
    assert cli.main(["show", "last", "--reports", str(tmp_path), "--step", "1"]) == 2
    assert "--step 1 is a step of a trial; name one" in capsys.readouterr().err
