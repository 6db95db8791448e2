from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.lib.digests import (
    digest_of,
    digest_of_files,
    folder_digest,
    hash_of,
    sha256_of,
    walk,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.txt").write_text("one\n")
    (tmp_path / "two.txt").write_text("two\n")
    return tmp_path


def test_digests_stay_what_recorded_runs_and_prepared_data_were_written_with(folder: Path) -> None:
    """The values are those of the version before the functions had one home."""
    assert sha256_of(folder / "two.txt") == (
        "27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a"
    )
    assert hash_of(folder / "two.txt", "md5") == "c193497a1a06b2c72230e6146ff47080"
    assert folder_digest(folder) == (
        "e359e499533e35719c7b91996ec53fd4b86835010abebaf6fdda0ffd4467c402"
    )
    assert digest_of_files(folder, ["two.txt", "a/one.txt"]) == (
        "c8d470b60416f79530c999feaf9afb107cd988111ae2a54ec4b4bdc2185e8663"
    )


def test_the_order_of_names_does_not_matter(folder: Path) -> None:
    names = ["a/one.txt", "two.txt"]
    assert digest_of_files(folder, names) == digest_of_files(folder, names[::-1])
    assert digest_of({"x": "1", "y": "2"}) == digest_of({"y": "2", "x": "1"})


def test_bytes_that_move_from_one_file_to_the_next_change_the_digest(folder: Path) -> None:
    before = digest_of_files(folder, ["a/one.txt", "two.txt"])
    (folder / "a" / "one.txt").write_text("one\nt")
    (folder / "two.txt").write_text("wo\n")
    assert digest_of_files(folder, ["a/one.txt", "two.txt"]) != before


def test_walk_lists_links_and_does_not_follow_them(folder: Path) -> None:
    (folder / "link").symlink_to("a")
    assert sorted(name for name, _ in walk(folder)) == ["a/one.txt", "link", "two.txt"]
