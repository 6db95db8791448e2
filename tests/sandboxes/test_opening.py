from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.core.sandbox_api import Mount, SandboxSpec
from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes.opening import make_mount_points, remove_mount_points, target_inside


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
