"""A built-in task is its folder alone: a folder beside the others is planned, listed, validated
and documented."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.lib.locate import builtin
from tests.tasks.conftest import SUITE, TASKS, load
from tests.validation.tasks import sound_task


def test_a_new_folder_is_planned_listed_validated_and_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = tmp_path / "task_suites" / SUITE
    shutil.copytree(builtin("task_suites") / SUITE, suite)
    sound_task(suite / "aa-new")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLAB_CACHE_DIR", str(tmp_path / "cache"))

    words = ["--mlab-agent=reference", "--mlab-repeats=1", "--collect-only", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    planned = [line.partition("[")[2] for line in done.stdout.splitlines() if "::" in line]
    assert planned == [f"{name}-reference-1]" for name in ("aa-new", *TASKS)]

    assert cli.main(["tasks"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("aa-new")
    assert cli.main(["tasks", "--markdown"]) == 0
    assert "| aa-new | mini | accuracy, higher is better |" in capsys.readouterr().out
    assert cli.main(["validate", SUITE, "--only", "schema", "--markdown"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.endswith("| yes |")]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == ["aa-new", *TASKS]


@pytest.mark.parametrize("name", TASKS)
def test_embedded_data_have_their_licence_in_the_task_s_folder(name: str) -> None:
    task = load(name)
    embedded = {
        source.ref
        for variant in task.variants.values()
        for source in variant.sources
        if source.kind == "embedded" and "NOTICE" in source.licence
    }
    notice = task.folder / "NOTICE"
    assert notice.is_file() is bool(embedded)
    for ref in embedded:
        assert ref in notice.read_text(encoding="utf-8")
