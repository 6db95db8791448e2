"""Archives from elsewhere: what is unpacked and what is refused."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from pytest_mlab.data.sources.archives import UnsafeArchive, is_archive, unpack

REFUSED = ["/etc/evil", "../evil", "a/../../evil", "a\\..\\evil"]


def make_tar(file: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(file, "w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return file


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.size = 3 if kind == tarfile.REGTYPE else 0
    return info


def test_folders_and_files_of_a_tar_are_unpacked(tmp_path: Path) -> None:
    archive = make_tar(
        tmp_path / "a.tgz",
        member("./top", tarfile.DIRTYPE),
        member("./top/in/file"),
        member("empty"),
    )
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "top" / "in" / "file").read_bytes() == b"xxx"
    assert (tmp_path / "out" / "empty").exists()


def test_folders_and_files_of_a_zip_are_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("top/", "")
        archive.writestr("top/train.csv", "Id\n1\n")
    unpack(tmp_path / "a.zip", tmp_path / "out")
    assert (tmp_path / "out" / "top" / "train.csv").read_text() == "Id\n1\n"


@pytest.mark.parametrize("name", REFUSED)
def test_paths_that_leave_the_target_are_refused_before_anything_is_written(
    tmp_path: Path, name: str
) -> None:
    tar = make_tar(tmp_path / "a.tar.gz", member("good"), member(name))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("good", "x")
        archive.writestr(name, "x")
    for file in (tar, tmp_path / "a.zip"):
        with pytest.raises(UnsafeArchive, match=f"{file.name}: member .* would be written outside"):
            unpack(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_links_and_devices_of_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    archive = make_tar(tmp_path / "a.tar.gz", member("good"), member("bad", kind, "/etc/passwd"))
    with pytest.raises(UnsafeArchive, match="member 'bad' is a link or a device"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_links_of_a_zip_are_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("bad")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(UnsafeArchive, match="member 'bad' is a link or a device"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar", "a.zip"])
def test_damaged_archives_say_so(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"no archive at all")
    with pytest.raises(UnsafeArchive, match=f"{name} is damaged"):
        unpack(tmp_path / name, tmp_path / "out")


def test_a_truncated_archive_says_so(tmp_path: Path) -> None:
    info = tarfile.TarInfo("big")
    info.size = 100_000
    archive = make_tar(tmp_path / "a.tar.gz", info)
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(UnsafeArchive, match=r"a\.tar\.gz is damaged"):
        unpack(archive, tmp_path / "out")


def test_which_names_are_archives() -> None:
    assert [
        name
        for name in ("a.TAR.GZ", "a.tgz", "a.zip", "a.tar", "a.csv.gz", "zip")
        if is_archive(name)
    ] == ["a.TAR.GZ", "a.tgz", "a.zip", "a.tar"]
