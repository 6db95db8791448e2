"""``mlab validate`` from the command line: which tasks, which checks, how it is told, the exit
status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.commands import USAGE
from pytest_mlab.validation.registry import BUILT_IN
from tests.suites.folders import edit
from tests.support.foreign_suite import PREPARE, files_below, foreign_task
from tests.validation.tasks import sound_task


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite of two sound tasks, in the working directory."""
    folder = tmp_path / "task_suites" / "lab"
    for name in ("guess", "other"):
        sound_task(folder / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLAB_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def validate(*words: str) -> int:
    return cli.main(["validate", "--sandbox", "local", *words])


def test_all_checks_of_a_sound_task(
    suite: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert validate("guess") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "lab/guess (data mini)"
    assert lines[-1] == "1 of 1 task passed"
    assert [line.split()[1] for line in lines[1:-1] if line[2] != " "] == [
        check.name for check in BUILT_IN
    ]
    assert all(line[2:].startswith(("ok ", "   ")) for line in lines[1:-1])
    assert max(map(len, lines)) <= 80
    assert not list((tmp_path / "cache" / "workspaces").iterdir())


def test_a_suite_and_chosen_checks(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (suite / "other" / "evaluator.py").unlink()
    assert validate("lab", "--only", "files", "--only", "schema") == 1
    out = capsys.readouterr().out
    assert out.splitlines() == [
        "lab/guess (data mini)",
        "  ok      schema        version 1, tabular, accuracy, maximize",
        "  ok      files         1 starter and 2 data files (0.0 MB)",
        "lab/other (data mini)",
        *out.splitlines()[4:-4],
        "  NOT RUN files         the task's files are wrong: see schema",
        *out.splitlines()[-3:-1],
        "1 of 2 tasks passed; not: other",
    ]
    assert out.splitlines()[4].startswith("  FAIL    schema")
    assert [line.rpartition(", ")[0] for line in out.splitlines()[-3:-1]] == [
        "  guess  passed",
        "  other  FAILED (schema, files)",
    ]
    assert "the task has no file evaluator.py" in " ".join(out.split())


def test_several_tasks_at_a_time_say_the_same(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (suite / "other" / "evaluator.py").unlink()
    words = ("lab", "--only", "schema", "--only", "files", "--only", "reference")
    assert validate(*words) == 1
    alone = capsys.readouterr().out
    assert validate(*words, "--jobs", "2") == 1
    together = capsys.readouterr().out

    def shown(out: str) -> list[str]:
        return [re.sub(r"[0-9.]+ s$", "", line) for line in out.splitlines()]

    assert shown(together) == shown(alone)


def test_what_a_killed_validation_left_is_removed(
    suite: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (suite / "guess" / "env" / "train.py").write_text(
        "open('../begun', 'w').close()\nimport time\ntime.sleep(600)\n"
    )
    place = tmp_path / "cache" / "workspaces"
    argv = [
        sys.executable,
        "-m",
        "pytest_mlab",
        "validate",
        "guess",
        "--sandbox",
        "local",
        "--only",
        "starter",
    ]
    with subprocess.Popen(argv, cwd=tmp_path) as killed:
        while not list(place.glob("validate-*/begun")):
            assert killed.poll() is None
            os.sched_yield()
        assert validate("other", "--only", "starter") == 0
        assert "left by" not in capfd.readouterr().err, "its owner lives"
        killed.kill()
    (left,) = place.iterdir()
    assert validate("other", "--only", "starter") == 0
    assert f"removed {left.name}, left by a validation that was killed" in capfd.readouterr().err
    assert not list(place.iterdir())


@pytest.mark.parametrize("consent", [["--accept-rules", "guess"], ["--yes"]])
def test_rules_are_accepted_as_by_mlab_prepare(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], consent: list[str]
) -> None:
    foreign_task(
        tmp_path / "bench" / "guess", {"scripts/prepare.py": "input('Consent?')\n" + PREPARE}
    )
    words = ("./bench/guess", "--only", "files")
    assert validate(*words) == 1
    assert "NOT RUN files" in (refused := " ".join(capsys.readouterr().out.split()))
    assert "come under rules that you must accept" in refused
    assert validate(*words, *consent) == 0
    streams = capsys.readouterr()
    assert "  ok      files" in streams.out
    assert ("you accept the rules at" in streams.err) is (consent == ["--yes"])


def test_json(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(
        suite / "guess" / "task.toml",
        "scores = [0.6, 0.6, 0.6]\nmean = 0.6",
        "scores = [0.7, 0.7, 0.7]\nmean = 0.7",
    )
    assert (
        validate("lab/guess", "--json", "--only", "baseline", "--only", "order", "--runs", "3") == 1
    )
    (report,) = json.loads(capsys.readouterr().out)
    assert (report["task"], report["suite"], report["data"], report["sandbox"]) == (
        "guess",
        "lab",
        "mini",
        "local",
    )
    assert report["passed"] is False
    assert [(check["check"], check["status"]) for check in report["checks"]] == [
        ("baseline", "fail"),
        ("order", "ok"),
    ]
    assert (
        report["checks"][0]["facts"]["scores"] == [0.6] * 5
    )  # a baseline outside its interval is tried five times


def test_markdown(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = [word for name in ("starter", "reference", "degenerate") for word in ("--only", name)]
    (suite / "other" / "reference" / "train.py").write_text("raise SystemExit('lost')\n")
    assert validate("lab", "--markdown", *only) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "# Validated tasks of the suite lab"
    head, _, first, second = (
        line.strip("| ").split(" | ") for line in lines if line.startswith("|")
    )
    assert head[:7] == [
        "task", "metric", "direction", "baseline (mean ± sd)", "degenerate", "reference", "seconds",
    ]  # fmt: skip
    assert first[:6] == ["guess", "accuracy", "higher is better", "0.6 ± 0", "0.6", "1"]
    assert (first[7], second[7]) == ("yes", "no")
    assert "- **other**, reference: other: train.py failed with exit status 1: lost" in lines


def test_folders(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = sound_task(tmp_path / "mine" / "guess")
    assert validate("./mine", "--only", "schema") == 0
    assert validate(str(mine), "--only", "schema") == 0
    assert capsys.readouterr().out.count("mine/guess (data mini)") == 2


def test_folders_in_mlagentbenchs_format(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = tmp_path / "bench"
    foreign_task(bench / "Guess")
    foreign_task(bench / "odd", {"mlab.toml": None})
    foreign_task(bench / "tool", {"scripts/eval.py": None})
    before = files_below(bench)
    assert validate("./bench", "--only", "files", "--only", "starter", "--only", "schema") == 1
    out = capsys.readouterr().out
    assert "bench/guess (data mini)" in out
    assert "1 starter and 1 data files" in out
    assert "scored after" in out
    assert "bench/odd (data mini)" in out
    assert "'odd' is not one of its own tasks" in " ".join(out.split())
    assert "tool" not in out
    assert validate("./bench/Guess", "--only", "files") == 0
    assert validate("./bench/tool") == USAGE
    assert "tool has no scripts/eval.py" in capsys.readouterr().err
    assert files_below(bench) == before


def test_what_that_format_does_not_have_is_not_asked_for(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign_task(tmp_path / "bench" / "guess")
    foreign_task(tmp_path / "bench" / "bare", {"mlab.toml": 'direction = "maximize"\n'})
    assert (
        validate("./bench/guess", "--only", "schema", "--only", "reference", "--only", "degenerate")
        == 0
    )
    assert "MLAgentBench's format has no reference solution" in capsys.readouterr().out
    assert validate("./bench/bare", "--only", "schema") == 1
    said = " ".join(capsys.readouterr().out.split())
    assert (
        f"no baseline is known: mlab measure bare --suite {tmp_path}/bench, then baseline ="
        " [...] in " in said
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gess"], "unknown suite or task 'gess'; did you mean 'guess'?"),
        (["guess", "--only", "leak"], "unknown check 'leak'; did you mean 'leaks'?"),
        (["guess", "--runs", "0"], "--runs 0: at least 1 is needed"),
        (["guess", "--jobs", "0"], "--jobs 0: at least 1 is needed"),
        (["guess", "--leak-limit", "rang=1"], "unknown limit 'rang'"),
        (["guess", "--leak-limit", "rank=x"], "--leak-limit rank=x: 'x' is no number"),
        (["./task_suites"], "in it and one folder below there is neither a task.toml"),
    ],
)
def test_words_that_mean_nothing(
    suite: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert validate(*words) == USAGE
    assert message in capsys.readouterr().err


def test_a_name_in_two_suites(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sound_task(suite.parent / "second" / "guess")
    assert validate("guess", "--only", "schema") == USAGE
    assert "say lab/guess or second/guess" in capsys.readouterr().err
    assert validate("second/guess", "--only", "schema") == 0


def test_leak_limits(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = (
        '    write(public / "all.csv", ["id", "label"], [(k, label(x)) for k, x in train + test])\n'
    )
    data = suite / "guess" / "data.py"
    data.write_text(data.read_text() + line)
    assert validate("guess", "--only", "leaks") == 1
    assert "FAIL    leaks         all.csv: label equals label of" in capsys.readouterr().out
    assert validate("guess", "--only", "leaks", "--leak-limit", "bits=98") == 0


def test_the_list_of_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert validate("--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [check.name for check in BUILT_IN]
    assert max(map(len, lines)) <= 80


def test_a_missing_sandbox_is_no_fault_of_the_task(
    suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    words = ["validate", "guess", "--sandbox", "bubblewrap", "--only", "starter"]
    assert cli.main(words) == 1
    assert (
        "NOT RUN starter       the sandbox bubblewrap does not work here" in capsys.readouterr().out
    )
