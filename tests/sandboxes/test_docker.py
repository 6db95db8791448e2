"""What is particular to the docker sandbox: its settings, its engine, and files that change
hands."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mlab.core.sandbox_api import Mount, SandboxSpec
from pytest_mlab.core.task import Resources
from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes.docker import Docker, container_settings
from pytest_mlab.sandboxes.ownership import hand_over
from pytest_mlab.testing.conformance import run, text
from tests.support.docker_engine import docker_image

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def image() -> Iterator[str]:
    with docker_image() as name:
        yield name


def test_settings_give_no_rights_and_bound_everything(tmp_path: Path) -> None:
    resources = Resources(cpus=2, memory_mb=1000, pids=50, disk_mb=100)
    settings = container_settings(SandboxSpec(tmp_path, "run-1", resources=resources), (12, 34))
    assert settings["network_mode"] == "none"
    assert settings["user"] == "12:34"
    assert settings["cap_drop"] == ["ALL"]
    assert settings["security_opt"] == ["no-new-privileges"]
    assert settings["read_only"] is True
    assert settings["auto_remove"] is True
    assert settings["labels"] == {"pytest-mlab": "run-1"}
    assert settings["mem_limit"] == settings["memswap_limit"] == 1064 << 20
    assert settings["cpu_quota"] / settings["cpu_period"] == 2
    assert settings["pids_limit"] == 82
    assert "size=100m" in settings["tmpfs"]["/tmp"]
    assert "environment" not in settings
    assert "device_requests" not in settings


def test_settings_share_network_and_gpus_only_when_asked(tmp_path: Path) -> None:
    spec = SandboxSpec(tmp_path, "run-1", network=True, resources=Resources(gpus=2))
    settings = container_settings(spec, (12, 34))
    assert settings["network_mode"] == "bridge"
    assert settings["device_requests"][0]["Count"] == 2


def test_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert "DOCKER_HOST" in Docker().check()
    with pytest.raises(SandboxError, match="DOCKER_HOST"):
        Docker().open(SandboxSpec(tmp_path, "t"))
    with pytest.raises(SandboxError, match="leftover"):
        Docker().sweep("t")


def test_no_image(image: str) -> None:
    assert "docker pull no-such-image:1" in Docker(image="no-such-image:1").check()
    assert "docker build -t mlab-tasks:latest" in Docker().check()


def test_an_image_without_python(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = container_settings

    def without_python(spec: SandboxSpec, user: tuple[int, int]) -> dict[str, object]:
        return {**settings(spec, user), "entrypoint": ["no-such-python"]}

    monkeypatch.setattr("pytest_mlab.sandboxes.docker.container_settings", without_python)
    with pytest.raises(SandboxError, match="does not start"):
        Docker(image=image).open(SandboxSpec(tmp_path, "t"))


def test_sweep_removes_by_label(image: str, tmp_path: Path) -> None:
    sandbox = Docker(image=image)
    prefix = f"test-sweep-{os.getpid()}"
    connections = [
        sandbox.open(SandboxSpec(tmp_path, f"{prefix}-{name}")) for name in ("a1", "a2", "b1")
    ]
    try:
        assert sandbox.sweep(f"{prefix}-a") == 2
        assert sandbox.sweep(f"{prefix}-a") == 0
        assert connections[2].execute(["true"]).exit_status == 0
        assert connections[0].execute(["true"]).killed_for == "lost"
    finally:
        for connection in connections:
            connection.close()
    assert sandbox.sweep(prefix) == 0


@as_root
def test_mounts_that_only_root_may_read_are_copied(image: str, tmp_path: Path) -> None:
    secret = tmp_path / "data"
    (secret / "deep").mkdir(parents=True, mode=0o700)
    (secret / "deep" / "file").write_text("read me")
    (secret / "deep" / "link").symlink_to("/etc/shadow")
    os.mkfifo(secret / "deep" / "fifo")
    (secret / "deep" / "file").chmod(0o600)
    (tmp_path / "single").write_text("me too")
    (tmp_path / "single").chmod(0o600)
    (tmp_path / "workspace").mkdir()
    mounts = (Mount(secret, "/data"), Mount(tmp_path / "single", "single"))
    copies = set(Path(tempfile.gettempdir()).glob("mlab-mount-*"))
    connection = Docker(image=image).open(SandboxSpec(tmp_path / "workspace", "t", mounts=mounts))
    try:
        done = run(
            connection, "import os; print(open('/data/deep/file').read(), open('single').read())"
        )
        assert text(done) == "read me me too"
        done = run(
            connection,
            "import os; print(sorted(os.listdir('/data/deep')), os.readlink('/data/deep/link'))",
        )
        assert text(done) == "['file', 'link'] /etc/shadow"
    finally:
        connection.close()
    assert (secret / "deep" / "file").stat().st_mode & 0o777 == 0o600
    assert set(Path(tempfile.gettempdir()).glob("mlab-mount-*")) <= copies
    assert list((tmp_path / "workspace").iterdir()) == []


def test_a_mount_that_is_not_there(image: str, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="no-such-data"):
        Docker(image=image).open(
            SandboxSpec(tmp_path, "t", mounts=(Mount(tmp_path / "no-such-data", "/data"),))
        )


@as_root
def test_files_are_handed_over_without_following_links(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    (workspace / "a").mkdir(parents=True)
    outside.mkdir()
    (outside / "file").touch()
    (workspace / "a" / "mine").touch()
    (workspace / "a" / "file").symlink_to(outside / "file")
    (workspace / "folder").symlink_to(outside)
    hand_over(workspace, 1000, 1000)
    given = [workspace, *workspace.rglob("*")]
    assert len(given) == 5
    assert {path.lstat().st_uid for path in given} == {1000}
    assert {path.lstat().st_uid for path in (outside, outside / "file")} == {0}
