from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.core.sandbox_api import Mount, SandboxSpec
from pytest_mlab.core.task import Resources
from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes.opening import (
    OFFLINE,
    environment,
    make_mount_points,
    remove_mount_points,
    target_inside,
)


def spec(tmp_path: Path, *targets: str, source: Path | None = None) -> SandboxSpec:
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    return SandboxSpec(
        workspace, "t", tuple(Mount(source or tmp_path, target) for target in targets)
    )


def test_targets() -> None:
    assert target_inside(Mount(Path("/x"), "/data")) == "/data"
    assert target_inside(Mount(Path("/x"), "data/in")) == "/workspace/data/in"


def test_mount_points_are_made_and_taken_away_again(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "kept").mkdir(parents=True)
    file = tmp_path / "file.csv"
    file.touch()
    made = make_mount_points(spec(tmp_path, "/data", "kept/deep/er", "/workspace/other"))
    made += make_mount_points(spec(tmp_path, "one.csv", source=file))
    workspace = tmp_path / "workspace"
    assert (workspace / "kept/deep/er").is_dir()
    assert (workspace / "other").is_dir()
    assert (workspace / "one.csv").is_file()
    remove_mount_points(made)
    assert list(workspace.rglob("*")) == [workspace / "kept"]


def test_mount_points_that_were_used_stay(tmp_path: Path) -> None:
    made = make_mount_points(spec(tmp_path, "data"))
    (tmp_path / "workspace/data/mine.txt").touch()
    remove_mount_points(made)
    assert (tmp_path / "workspace/data/mine.txt").exists()


def test_a_link_does_not_lead_a_mount_point_out_of_the_workspace(tmp_path: Path) -> None:
    wanted = spec(tmp_path, "a/data")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "workspace/a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SandboxError, match="leads out of the workspace"):
        make_mount_points(wanted)
    assert list((tmp_path / "elsewhere").iterdir()) == []


# --- the environment ---


def test_nothing_of_the_harness_but_what_describes_the_machine() -> None:
    host = {
        "OPENAI_API_KEY": "sk-1",
        "PYTEST_CURRENT_TEST": "x",
        "PYTHONPATH": "/p",
        "PATH": "/host/bin",
        "HOME": "/home/me",
        "HTTPS_PROXY": "http://user:secret@proxy",
        "OPENBLAS_CORETYPE": "Haswell",
    }
    env = environment(Resources(), home="/tmp", path="/usr/bin", host=host)
    assert (env["HOME"], env["TMPDIR"], env["PATH"]) == ("/tmp", "/tmp", "/usr/bin")
    assert env["OPENBLAS_CORETYPE"] == "Haswell"
    assert set(env) & set(host) == {"PATH", "HOME", "OPENBLAS_CORETYPE"}


def test_installers_are_offline_only_without_network() -> None:
    assert environment(Resources(), home="/h", network=False).items() >= OFFLINE.items()
    assert not environment(Resources(), home="/h").keys() & OFFLINE.keys()


def test_threads_follow_the_tasks_cpus() -> None:
    env = environment(Resources(cpus=3), home="/tmp", host={})
    assert {env[f"{name}_NUM_THREADS"] for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")} == {"3"}


def test_gpus_are_seen_only_when_the_task_has_some() -> None:
    host = {"CUDA_VISIBLE_DEVICES": "1,2"}
    assert environment(Resources(), home="/tmp", host=host)["CUDA_VISIBLE_DEVICES"] == ""
    assert environment(Resources(gpus=1), home="/tmp", host=host)["CUDA_VISIBLE_DEVICES"] == "1,2"
    assert "CUDA_VISIBLE_DEVICES" not in environment(Resources(gpus=1), home="/tmp", host={})


def test_a_containers_image_keeps_its_own_path() -> None:
    assert "PATH" not in environment(Resources(), home="/tmp", host={"PATH": "/host/bin"})
