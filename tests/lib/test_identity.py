"""What a run says about where it ran."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_mlab.lib import identity
from pytest_mlab.store import serial


def git(folder: Path, *args: str) -> None:
    options = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(folder), *options, *args], check=True, capture_output=True)


def test_commit_and_dirty_flag(tmp_path: Path) -> None:
    assert identity.git(tmp_path) == {}
    git(tmp_path, "init")
    (tmp_path / "f").write_text("1")
    git(tmp_path, "add", "f")
    git(tmp_path, "commit", "-m", "one")
    clean = identity.git(tmp_path)
    assert clean["dirty"] is False
    assert len(clean["commit"]) == 40
    (tmp_path / "f").write_text("2")
    assert identity.git(tmp_path) == {"commit": clean["commit"], "dirty": True}


def test_no_git_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert identity.git(tmp_path) == {}


def test_everything_is_plain_and_nothing_heavy_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\nfrom pytest_mlab.lib import"
        " identity\nidentity.collect(pathlib.Path(sys.argv[1]))\nprint(sorted({'torch', 'numpy',"
        " 'pandas', 'scipy', 'litellm', 'docker'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"
    found = identity.collect(tmp_path)
    assert serial.plain(found) == found
    assert found["versions"]["python"].startswith("3.")
    assert "no-such-package" not in identity.versions(["no-such-package"])
    assert found["machine"]["cores"] >= 1
    assert found["machine"]["cpu"] in found["machine"]["fingerprint"]
