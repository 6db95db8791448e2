"""The workspace: made fresh, confined, protected."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_mlab.core.sandbox_api import Mount
from pytest_mlab.errors import StoreError, SuiteError
from pytest_mlab.store.content import hash_fd
from pytest_mlab.trial.provision import provision
from pytest_mlab.trial.workspace import PathRefused, Workspace
from tests.trial.conftest import Files, make_task, write_files


def make(
    tmp_path: Path,
    env: Files | None = None,
    public: Files | None = None,
    *,
    mounts: bool = False,
    read_only: str = "",
) -> Workspace:
    write_files(tmp_path / "task" / "env", env or {})
    files = write_files(tmp_path / "public", public or {})
    task = make_task(tmp_path / "task", read_only=tuple(read_only.split()))
    return provision(task, tmp_path / "public", files, tmp_path / "work", mounts=mounts)


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


# --- fresh ---


def test_starter_files_and_data_are_copied(tmp_path: Path) -> None:
    workspace = make(
        tmp_path, {"train.py": b"code", "lib/a.py": b"a"}, {"train.csv": b"1", "data/x.csv": b"2"}
    )
    assert tree(workspace.root) == {
        "train.py": b"code",
        "lib/a.py": b"a",
        "train.csv": b"1",
        "data/x.csv": b"2",
    }
    assert workspace.mounts == ()


def test_data_are_mounted_over_placeholders(tmp_path: Path) -> None:
    workspace = make(
        tmp_path,
        {"train.py": b"code", "lib/a.py": b"a"},
        {"train.csv": b"1", "data/x.csv": b"2", "data/deep/y.csv": b"3", "lib/z.csv": b"4"},
        mounts=True,
    )
    public = tmp_path / "public"
    assert workspace.mounts == (
        Mount(public / "data", "data"),
        Mount(public / "lib" / "z.csv", "lib/z.csv"),
        Mount(public / "train.csv", "train.csv"),
    )
    assert workspace.mounted == ("data", "lib/z.csv", "train.csv")
    assert tree(workspace.root) == {
        "train.py": b"code",
        "lib/a.py": b"a",
        "lib/z.csv": b"",
        "train.csv": b"",
    }
    assert os.listdir(workspace.root / "data") == []


def test_executable_bits_and_links_of_starter_files_stay_and_caches_do_not(tmp_path: Path) -> None:
    env = tmp_path / "task" / "env"
    write_files(env, {"run.sh": b"#!/bin/sh", "__pycache__/x.pyc": b"", "plain": b""})
    (env / "run.sh").chmod(0o755)
    (env / "link").symlink_to("plain")
    workspace = make(tmp_path)
    assert sorted(os.listdir(workspace.root)) == ["link", "plain", "run.sh"]
    assert os.access(workspace.root / "run.sh", os.X_OK)
    assert not os.stat(workspace.root / "plain").st_mode & 0o111
    assert os.readlink(workspace.root / "link") == "plain"


@pytest.mark.parametrize("mounts", [True, False])
@pytest.mark.parametrize(("env", "public"), [("x", "x"), ("data", "data/x"), ("x/y", "x")])
def test_a_data_file_with_a_starter_files_name_is_a_fault_of_the_task(
    tmp_path: Path, mounts: bool, env: str, public: str
) -> None:
    with pytest.raises(SuiteError, match="both a starter file"):
        make(tmp_path, {env: b""}, {public: b""}, mounts=mounts)


def test_a_used_workspace_is_refused(tmp_path: Path) -> None:
    write_files(tmp_path / "work", {"old": b""})
    with pytest.raises(StoreError, match="is not empty"):
        make(tmp_path)


# --- confined ---


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    write_files(tmp_path / "work2", {"secret": b"s"})
    return tmp_path / "work2"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("..", "leads out"),
        ("../work2/secret", "leads out"),
        ("a/../../work2/secret", "leads out"),
        ("link/secret", "leads out"),
        ("file-link", "leads out"),
        ("chain", "leads out"),
        ("/etc/passwd", "absolute"),
        ("/workspace2/secret", "absolute"),
        ("/workspace/../work2/secret", "leads out"),
        ("/workspace/link/secret", "leads out"),
        ("/inside/../../etc/passwd", "leads out"),
        ("", "is not a path"),
        ("a\0b", "is not a path"),
        ("x" * 5000, "cannot be a path"),
    ],
)
def test_paths_that_lead_out_are_refused(
    tmp_path: Path, outside: Path, path: str, said: str
) -> None:
    workspace = make(tmp_path)
    (workspace.root / "link").symlink_to(outside)
    (workspace.root / "file-link").symlink_to(outside / "secret")
    (workspace.root / "chain").symlink_to("link/secret")
    workspace.inside = "/inside"
    for use in (
        workspace.locate,
        lambda p: workspace.read(p, 10),
        lambda p: workspace.write(p, b"x"),
    ):
        with pytest.raises(PathRefused, match=said):
            use(path)
    assert (outside / "secret").read_bytes() == b"s"


SEGMENTS = st.sampled_from(
    ("..", ".", "a", "b", "out", "self", "up", "", "work2", "secret", "file")
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(parts=st.lists(SEGMENTS, max_size=7))
def test_no_path_gets_out(tmp_path: Path, parts: list[str]) -> None:
    root = tmp_path / "work"
    if not root.exists():
        write_files(tmp_path / "work2", {"secret": b"s"})
        workspace = make(tmp_path, {"a/b/file": b"x", "file": b"y"})
        (root / "out").symlink_to("../work2")
        (root / "self").symlink_to(".")
        (root / "a" / "up").symlink_to("../../work2/secret")
    else:
        workspace = Workspace(root, mounts=(), public={}, read_only=())
    path = "/".join(parts) if not parts or parts[0] != "self" else "/workspace/" + "/".join(parts)
    try:
        found = workspace.locate(path)
    except PathRefused:
        return
    assert os.path.commonpath([os.path.realpath(found), root]) == str(root)


@pytest.mark.parametrize("base", ["/workspace", "/inside/it", "//workspace", "{root}"])
def test_absolute_paths_of_the_workspace_are_relative_ones(tmp_path: Path, base: str) -> None:
    workspace = make(tmp_path, {"a/b": b"x"})
    workspace.inside = "/inside/it"
    base = base.format(root=workspace.root)
    assert workspace.read(f"{base}/a/b", 9) == b"x"
    assert workspace.resolve(f"{base}//a/../a/b").rel == "a/b"
    workspace.write(f"{base}/new/c", b"y")
    assert (workspace.root / "new" / "c").read_bytes() == b"y"
    for folder in (base, f"{base}/", f"{base}/."):
        assert workspace.listdir(folder) == ["a/", "new/"]


def test_links_inside_are_followed(tmp_path: Path) -> None:
    workspace = make(tmp_path, {"a/b": b"x"})
    (workspace.root / "l").symlink_to("a")
    assert workspace.locate("l/b") == workspace.root / "a" / "b"
    assert workspace.read("l/b", 10) == b"x"


def test_a_link_put_in_place_after_the_check_is_not_followed(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make(tmp_path, {"a/secret": b"x", "f": b"y"})
    resolve = workspace.resolve

    def swap(rel: str, *, write: bool = False) -> object:
        place = resolve(rel, write=write)
        if (workspace.root / "a").is_dir() and not (workspace.root / "a").is_symlink():
            shutil.rmtree(workspace.root / "a")
            (workspace.root / "a").symlink_to(outside)
            (workspace.root / "f").unlink()
            (workspace.root / "f").symlink_to(outside / "secret")
        return place

    monkeypatch.setattr(workspace, "resolve", swap)
    with pytest.raises(PathRefused):
        workspace.read("a/secret", 10)
    monkeypatch.undo()
    (workspace.root / "a").unlink()
    (workspace.root / "f").unlink()
    write_files(workspace.root, {"a/secret": b"x", "f": b"y"})
    monkeypatch.setattr(workspace, "resolve", swap)
    with pytest.raises(PathRefused):
        workspace.write("f", b"evil")
    assert (outside / "secret").read_bytes() == b"s"


def test_mounts_are_read_where_they_come_from(tmp_path: Path) -> None:
    workspace = make(
        tmp_path, {"x": b""}, {"train.csv": b"data", "d/e/f.csv": b"deep"}, mounts=True
    )
    assert workspace.locate("train.csv") == tmp_path / "public" / "train.csv"
    assert workspace.read("train.csv", 10) == b"data"
    assert workspace.read("d/e/../e/f.csv", 10) == b"deep"
    assert workspace.listdir("d/e") == ["f.csv"]
    assert workspace.listdir("d") == ["e/"]
    assert workspace.listdir(".") == ["d/", "train.csv", "x"]
    with pytest.raises(PathRefused, match="leads out"):
        workspace.locate("d/../../public/train.csv")


@pytest.mark.parametrize("mounts", [True, False])
@pytest.mark.parametrize(
    "path", ["train.csv", "./train.csv", "d/f.csv", "link", "notes/a.txt", "keep.py"]
)
def test_read_only_files_are_not_written(tmp_path: Path, mounts: bool, path: str) -> None:
    workspace = make(
        tmp_path,
        {"notes/a.txt": b"a", "keep.py": b"k"},
        {"train.csv": b"1", "d/f.csv": b"2"},
        mounts=mounts,
        read_only="./keep.py notes/*",
    )
    (workspace.root / "link").symlink_to("train.csv")
    with pytest.raises(PathRefused, match="is read-only"):
        workspace.write(path, b"x")
    assert workspace.locate(path)


def test_nothing_new_goes_into_a_mounted_folder(tmp_path: Path) -> None:
    workspace = make(tmp_path, {}, {"d/f.csv": b"2"}, mounts=True)
    with pytest.raises(PathRefused, match="is read-only"):
        workspace.write("d/new", b"x")
    assert os.listdir(tmp_path / "public" / "d") == ["f.csv"]


# --- reading and writing ---


def test_writing_makes_folders_and_replaces_or_adds(tmp_path: Path) -> None:
    workspace = make(tmp_path)
    workspace.write("a/b/c.txt", b"long content")
    workspace.write("a/b/c.txt", b"new")
    workspace.write("a/b/c.txt", b"er", append=True)
    assert workspace.read("a/b/c.txt", 100) == b"newer"
    workspace.remove("a/b/c.txt")
    assert not workspace.exists("a/b/c.txt")
    assert workspace.is_folder("a/b")


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    workspace = make(tmp_path, {"d/f": b""})
    os.mkfifo(workspace.root / "pipe")
    for path, said in (
        ("d", "folder|not a file"),
        (".", "folder|not a file"),
        ("none", "does not exist"),
        ("d/f/x", "through a file"),
    ):
        with pytest.raises(PathRefused, match=said):
            workspace.read(path, 10)
    with pytest.raises(PathRefused, match="not a file"):
        workspace.read("pipe", 10)
    for path in ("d", "pipe", "."):
        with pytest.raises(PathRefused):
            workspace.write(path, b"x")
    with pytest.raises(PathRefused, match="does not exist"):
        workspace.listdir("nowhere")
    with pytest.raises(PathRefused, match="through a file"):
        workspace.listdir("d/f")


def test_a_listing_marks_folders_and_links(tmp_path: Path) -> None:
    workspace = make(tmp_path, {"b.py": b"", "a/x": b""})
    (workspace.root / "l").symlink_to("/nowhere")
    assert workspace.listdir(".") == ["a/", "b.py", "l@"]


def test_a_frozen_workspace_is_read_and_not_written(tmp_path: Path) -> None:
    workspace = make(tmp_path, {"f": b"x"})
    workspace.freeze()
    assert workspace.read("f", 10) == b"x"
    with pytest.raises(PathRefused, match="the trial is over"):
        workspace.write("f", b"y")


# --- tampered ---


def test_read_only_files_that_changed_or_went_are_named(tmp_path: Path) -> None:
    workspace = make(
        tmp_path,
        {"eval.py": b"e", "n/a.txt": b"a", "n/b.txt": b"b", "free.py": b""},
        {"train.csv": b"1"},
        read_only="eval.py n/*",
    )
    assert workspace.tampered() == []
    (workspace.root / "free.py").write_bytes(b"mine")
    (workspace.root / "n" / "new.txt").write_bytes(b"new")
    assert workspace.tampered() == []
    (workspace.root / "eval.py").write_bytes(b"E")
    (workspace.root / "train.csv").unlink()
    (workspace.root / "n" / "a.txt").unlink()
    (workspace.root / "n" / "a.txt").symlink_to("b.txt")
    assert workspace.tampered() == ["eval.py", "n/a.txt", "train.csv"]


def test_the_same_content_again_is_not_tampered_with(tmp_path: Path) -> None:
    workspace = make(tmp_path, {}, {"train.csv": b"1"})
    (workspace.root / "train.csv").unlink()
    (workspace.root / "train.csv").write_bytes(b"1")
    assert workspace.tampered() == []


def test_a_folder_that_became_a_link_is_tampered_with(tmp_path: Path) -> None:
    workspace = make(tmp_path, {}, {"d/f": b"1"})
    shutil.copytree(workspace.root / "d", tmp_path / "elsewhere")
    shutil.rmtree(workspace.root / "d")
    (workspace.root / "d").symlink_to(tmp_path / "elsewhere")
    assert workspace.tampered() == ["d/f"]


def test_large_public_files_are_compared_by_content_only_when_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make(tmp_path, {}, {"big.bin": b"x" * (2 << 20)})
    hashed: list[int] = []

    def spy(fd: int) -> str:
        hashed.append(fd)
        return hash_fd(fd)

    monkeypatch.setattr("pytest_mlab.trial.workspace.hash_fd", spy)
    assert workspace.tampered() == []
    assert hashed == []
    with open(workspace.root / "big.bin", "r+b") as file:
        file.write(b"y")
    os.utime(workspace.root / "big.bin", ns=(1, 1))
    assert workspace.tampered() == ["big.bin"]


def test_small_read_only_files_are_compared_by_content_whatever_their_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_mlab.trial.workspace._key", lambda info: ())
    workspace = make(tmp_path, {"eval.py": b"e"}, {"train.csv": b"1"}, read_only="eval.py")
    (workspace.root / "eval.py").write_bytes(b"E")
    (workspace.root / "train.csv").write_bytes(b"2")
    assert workspace.tampered() == ["eval.py", "train.csv"]


def test_mounted_data_cannot_be_tampered_with(tmp_path: Path) -> None:
    workspace = make(tmp_path, {}, {"d/f": b"1", "g": b"2"}, mounts=True)
    assert workspace.tampered() == []
