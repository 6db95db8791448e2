"""Each submission of a batch is evaluated in a process of its own."""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module
from pathlib import Path

import psutil
import pytest

from pytest_mlab.evaluation.batch import evaluate_each


def test_forks_are_apart_inherit_imports_and_fail_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["a", "b", "crashes", "hangs", "z"]
    for name in names:
        (tmp_path / "in" / name).mkdir(parents=True)
    monkeypatch.delitem(sys.modules, "this_is_imported", raising=False)
    (tmp_path / "this_is_imported.py").write_text("import os\nOWNER = os.getpid()\n")
    monkeypatch.syspath_prepend(tmp_path)

    def one(submission: Path, result: Path) -> None:
        if submission.name == "crashes":
            os._exit(3)
        if submission.name == "hangs":
            time.sleep(60)
        owner = import_module("this_is_imported").OWNER
        result.write_text(f"{os.getpid()} {owner}")

    before = set(psutil.Process().children())  # of other tests in this process
    evaluate_each(tmp_path / "in", tmp_path / "out", 2.0, one)
    written = {path.stem: path.read_text().split() for path in (tmp_path / "out").iterdir()}
    assert set(written) == {"a", "b", "z"}
    assert len({own for own, _ in written.values()} | {str(os.getpid())}) == 4
    assert written["a"][0] == written["a"][1]
    assert written["b"][1] == written["z"][1] == str(os.getpid())
    monkeypatch.delitem(sys.modules, "this_is_imported")
    assert set(psutil.Process().children()) <= before
