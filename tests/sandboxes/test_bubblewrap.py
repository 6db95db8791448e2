"""What is particular to bubblewrap: what it shows, what it hides, and why it may not work."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

import pytest

from pytest_mlab.core.sandbox_api import Mount, SandboxSpec
from pytest_mlab.core.task import Resources
from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes.bubblewrap import Bubblewrap, own_packages, view

needs_bwrap = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bwrap is not installed: apt-get install bubblewrap"
)


@needs_bwrap
def test_hidden_paths_below_the_python_installation_are_not_seen(tmp_path: Path) -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    hidden = [library / "sqlite3", library / "this.py", tmp_path / "not there"]
    connection = Bubblewrap(hidden=hidden).open(SandboxSpec(tmp_path, "t"))
    code = (
        f"import os\nprint(os.listdir({str(library / 'sqlite3')!r}),"
        f" os.path.exists({str(library / 'json')!r}))\nfor path, mode in"
        f" ({str(library / 'this.py')!r}, 'r'), ({str(library / 'sqlite3' / 'x')!r}, 'w'):\n   "
        " try: print(open(path, mode).read())\n    except OSError as error: print(error.strerror)"
    )
    try:
        done = connection.execute([connection.python, "-c", code])
    finally:
        connection.close()
    assert done.output.decode().splitlines() == [
        "[] True",
        "Permission denied",
        "Read-only file system",
    ]


@needs_bwrap
def test_pip_fails_at_once_and_says_why(tmp_path: Path) -> None:
    connection = Bubblewrap().open(SandboxSpec(tmp_path, "t"))
    try:
        argv = [connection.python, "-m", "pip", "install", "no-such-package"]
        done = connection.execute(argv, timeout=60)
    finally:
        connection.close()
    said = done.output.decode()
    assert done.exit_status == 1, said
    assert "Looking in links: /this-sandbox-has-no-network" in said
    assert "Retrying" not in said
    assert done.seconds < 10


def test_every_copy_of_the_package_is_hidden(tmp_path: Path) -> None:
    left_over = tmp_path / "site-packages" / "pytest_mlab"
    left_over.mkdir(parents=True)
    found = own_packages([str(left_over.parent), str(tmp_path / "nothing")])
    assert left_over.resolve() in found
    assert len(found) == 2


def test_of_a_prefix_that_is_a_project_only_the_installation_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bin", "lib", "task_suites"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    shown = view(SandboxSpec(tmp_path / "w", "t"), ())
    assert str(tmp_path / "lib") in shown
    assert str(tmp_path / "bin") in shown
    assert str(tmp_path) not in shown
    assert str(tmp_path / "task_suites") not in shown


def test_the_network_and_devices_are_shared_only_when_asked_for(tmp_path: Path) -> None:
    plain = view(SandboxSpec(tmp_path, "t"), ())
    assert "--share-net" not in plain
    assert "--dev-bind-try" not in plain
    assert "/etc/resolv.conf" not in plain
    open_one = view(SandboxSpec(tmp_path, "t", network=True, resources=Resources(gpus=1)), ())
    assert {"--share-net", "--dev-bind-try", "/etc/resolv.conf"} <= set(open_one)


def test_mounts_come_after_the_workspace_and_are_read_only(tmp_path: Path) -> None:
    words = view(SandboxSpec(tmp_path, "t", mounts=(Mount(tmp_path, "data"),)), ())
    place = words.index("/workspace/data")
    assert words[place - 2] == "--ro-bind"
    assert place > words.index("/workspace")


def test_without_bwrap_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "apt-get install bubblewrap" in Bubblewrap().check()
    with pytest.raises(SandboxError, match="apt-get install bubblewrap"):
        Bubblewrap().open(SandboxSpec(tmp_path, "t"))


def test_a_bwrap_that_may_not_make_namespaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
    )
    refusing.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(refusing))
    reason = Bubblewrap().check()
    assert "No permissions to create new namespace" in reason
    assert "sysctl" in reason


@needs_bwrap
def test_a_mount_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="no-such-data"):
        Bubblewrap().open(
            SandboxSpec(tmp_path, "t", mounts=(Mount(tmp_path / "no-such-data", "/data"),))
        )


@needs_bwrap
def test_an_environment_below_tmp_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox has a /tmp of its own, which must not cover it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        venv.create(name, symlinks=True, with_pip=False)
        monkeypatch.setattr(sys, "prefix", name)
        monkeypatch.setattr(sys, "exec_prefix", name)
        monkeypatch.setattr(sys, "executable", f"{name}/bin/python")
        assert Bubblewrap().check() == ""
