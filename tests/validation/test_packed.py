"""What is inside packed files is looked at; what cannot be is counted, never passed over in
silence."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import zipfile
from collections import Counter
from typing import Any

import pytest

from pytest_mlab.validation import packed
from pytest_mlab.validation.packed import unpacked


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        item = tarfile.TarInfo(name)
        item.size = len(content)
        archive.addfile(item, io.BytesIO(content))
    return out.getvalue()


def names_only(value: object) -> str:
    """For test ids: archives hold the time."""
    return value if isinstance(value, str) else ""


def inside(name: str, data: bytes) -> tuple[dict[str, bytes], dict[str, int]]:
    """What is in a file, itself excepted, and what was not looked into."""
    closed: Counter[str] = Counter()
    found = dict(unpacked(name, data, closed))
    assert found.pop(name) == data
    return found, dict(closed)


@pytest.mark.parametrize(
    ("name", "data", "found"),
    [
        ("a.csv.gz", gzip.compress(b"text"), {"a.csv": b"text"}),
        ("a.csv.bz2", bz2.compress(b"text"), {"a.csv": b"text"}),
        ("a.csv.xz", lzma.compress(b"text"), {"a.csv": b"text"}),
        ("a.zip", zipped(x=b"1", y=b"2"), {"a.zip:x": b"1", "a.zip:y": b"2"}),
        ("a.tar", tarred("x.csv", b"1"), {"a.tar:x.csv": b"1"}),
        ("a.txt", b"text", {}),
        ("a.csv", b"BMI,age\n22,40\n", {}),
        ("b.csv", b"BZh,x\n1,2\n", {}),
        ("a.bin", b"", {}),
    ],
    ids=names_only,
)
def test_archives_are_opened(name: str, data: bytes, found: dict[str, bytes]) -> None:
    assert inside(name, data) == (found, {})


def test_archives_in_archives_are_opened() -> None:
    found, closed = inside("a.tar.gz", gzip.compress(tarred("b.zip", zipped(c=b"deep"))))
    assert (found["a.tar:b.zip:c"], closed) == (b"deep", {})
    data = b"deep"
    for _ in range(packed.DEEPEST + 1):
        data = zipped(a=data)
    found, closed = inside("a.zip", data)
    assert b"deep" not in found.values()
    assert closed == {"archive in too many others": 1}


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("torn.gz", gzip.compress(b"text" * 99)[:-4], "gz file that cannot be read"),
        ("torn.zip", zipped(x=b"1")[:20], "zip file that cannot be read"),
        ("torn.xz", lzma.compress(b"text" * 99)[:40], "xz file that cannot be read"),
        ("torn.png", b"\x89PNG\r\n\x1a\n", "png file that cannot be read"),
        ("torn.parquet", b"PAR1 and PAR1", "parquet file that cannot be read"),
        ("a.jpg", b"\xff\xd8\xff\xe0 and so on", "jpeg image (pixels: lossy)"),
        ("a.webp", b"RIFF\0\0\0\0WEBPVP8 ", "webp image (pixels)"),
        ("a.zst", b"\x28\xb5\x2f\xfd and so on", "zstd file"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c and so on", "7z archive"),
        ("a.h5", b"\x89HDF\r\n\x1a\n and so on", "hdf5 file (packed parts)"),
    ],
    ids=names_only,
)
def test_what_is_not_looked_into_is_counted(name: str, data: bytes, kind: str) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("PIL")
    assert inside(name, data) == ({}, {kind: 1})


def test_a_locked_file_is_counted() -> None:
    content = bytearray(zipped(x=b"1"))
    for place in (content.index(b"PK\x03\x04") + 6, content.index(b"PK\x01\x02") + 8):
        content[place] |= 1  # the flag of encryption
    assert inside("a.zip", bytes(content)) == ({}, {"locked file in an archive": 1})


def test_large_files_are_looked_at_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "LARGEST", 1 << 20)
    big = bytes(2 << 20)
    found, closed = inside("a.gz", gzip.compress(big))
    assert len(found["a"]) == 1 << 20
    assert closed == {"part of a file beyond 1 MiB": 1}
    assert inside("a.zip", zipped(x=big)) == ({}, {"file of more than 1 MiB in an archive": 1})


def picture(mode: str, pixels: bytes, kind: str = "PNG", **words: str) -> bytes:
    image = pytest.importorskip("PIL.Image")
    extra: Any = {}
    if words:
        from PIL.PngImagePlugin import PngInfo

        info = PngInfo()
        for key, value in words.items():
            info.add_text(key, value, zip=True)
        extra["pnginfo"] = info
    out = io.BytesIO()
    image.frombytes(mode, (4, len(pixels) // 4 // len(mode)), pixels).save(out, kind, **extra)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "GIF"])
def test_pixels_of_images_without_loss(kind: str) -> None:
    pixels = bytes(range(0, 240, 10))
    found, closed = inside("a.image", picture("L", pixels, kind))
    assert pixels in found.values()
    assert closed == {}


def test_channels_and_packed_words_of_an_image() -> None:
    found, closed = inside("a.png", picture("RGB", bytes(range(24)), answers="yes,no,yes"))
    assert found["a.png:pixels"] == bytes(range(24))
    assert found["a.png:1"] == bytes(range(1, 24, 3))
    assert found["a.png:text"] == b"yes,no,yes"
    assert closed == {}


def test_pixels_that_begin_like_an_archive_are_pixels() -> None:
    pixels = b"\x1f\x8b\x08" + bytes(21)
    found, closed = inside("a.png", picture("L", pixels))
    assert (found["a.png:pixels"], closed) == (pixels, {})


def test_huge_images_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    data = picture("L", bytes(48))
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 40)
    assert inside("a.png", data) == ({}, {"image of too many pixels": 1})


def parquet(**columns: Any) -> bytes:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def test_parquet_is_a_table_and_columns() -> None:
    found, closed = inside("a.parquet", parquet(id=[1, 2], label=["yes", None]))
    assert found == {
        "a.parquet:table.csv": b"id,label\n1,yes\n2,\n",
        "a.parquet:id": b"1\n2",
        "a.parquet:label": b"yes\nNone",
    }
    assert closed == {}


def test_files_in_parquet_are_opened() -> None:
    image = {"bytes": gzip.compress(b"text"), "path": "x.gz"}
    found, closed = inside("a.parquet", parquet(id=[1], image=[image]))
    assert b"text" in found.values()
    assert found["a.parquet:image.path"] == b"x.gz"
    assert closed == {}


@pytest.mark.parametrize(("package", "module"), [("pyarrow", "pyarrow"), ("pillow", "PIL")])
def test_a_missing_package_is_told(
    monkeypatch: pytest.MonkeyPatch, package: str, module: str
) -> None:
    data = parquet(id=[1]) if package == "pyarrow" else picture("L", bytes(8))
    monkeypatch.setitem(sys.modules, module, None)
    found, closed = inside("a", data)
    assert found == {}
    assert [kind.partition("(")[2] for kind in closed] == [f"{package} is not installed)"]
