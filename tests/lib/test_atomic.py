"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_mlab.lib.atomic import write_bytes, write_text


@pytest.mark.parametrize("durable", [False, True])
def test_replaces_the_whole_content(tmp_path: Path, durable: bool) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a longer old content")
    write_bytes(file, b"new", durable=durable)
    assert file.read_bytes() == b"new"
    write_text(file, "ä", durable=durable)
    assert file.read_bytes() == b"\xc3\xa4"
    assert os.listdir(tmp_path) == ["f"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"old")
    with pytest.raises(TypeError):
        write_bytes(file, "no bytes")  # type: ignore[arg-type]
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]
