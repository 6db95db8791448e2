"""What is inside a file that packs others or encodes values: archives, parquet, images without
loss.

Nothing that is read is executed. What cannot be looked into is counted by kind, so that a scan can
say so."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import tarfile
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

LARGEST = 256 << 20
"""Bytes of a file, and of what it unpacks to, that are looked at."""

DEEPEST = 4
"""Archives in archives."""

_IMAGES = (b"\x89PNG", b"GIF8", b"II*\0", b"MM\0*")
_CLOSED = {
    b"\xff\xd8\xff": "jpeg image (pixels: lossy)",
    b"\x28\xb5\x2f\xfd": "zstd file",
    b"\x04\x22\x4d\x18": "lz4 file",
    b"7z\xbc\xaf\x27\x1c": "7z archive",
    b"Rar!\x1a\x07": "rar archive",
    b"\x89HDF\r\n\x1a\n": "hdf5 file (packed parts)",
    b"ARROW1": "arrow file (packed parts)",
}
_DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
)

Parts = Iterator[tuple[str, bytes]]


def unpacked(name: str, data: bytes, closed: Counter[str] | None = None, depth: int = 0) -> Parts:
    """The file itself, and all that is in it, by name; ``closed`` counts by kind what was not
    looked into."""
    closed = Counter() if closed is None else closed
    yield name, data
    kind = next((word for magic, word in _CLOSED.items() if data.startswith(magic)), "")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "webp image (pixels)"
    if kind:
        closed[kind] += 1
        return
    open_it = _opener(data)
    if open_it is None:
        return
    if depth >= DEEPEST:
        closed["archive in too many others"] += 1
        return
    try:
        for inner, content in open_it(name, data, closed):
            # Pixels may begin like anything.
            yield from (
                ((inner, content),)
                if open_it is _image
                else unpacked(inner, content, closed, depth + 1)
            )
    except _DAMAGED:
        closed[f"{name.rpartition('.')[2] or name} file that cannot be read"] += 1


def _opener(data: bytes) -> Any:
    """The function for a file's kind, by its first bytes: enough of them that no text begins so."""
    if data[:3] == b"\x1f\x8b\x08":
        return _gzip
    if data[:3] == b"BZh" and data[4:10] == b"1AY&SY":
        return _bzip2
    if data[:6] == b"\xfd7zXZ\0":
        return _xz
    if data[:4] == b"PK\x03\x04":
        return _zip
    if data[257:262] == b"ustar":
        return _tar
    if data[:4] == b"PAR1" == data[-4:]:
        return _parquet
    bitmap = data[:2] == b"BM" and int.from_bytes(data[2:6], "little") == len(data)
    return _image if bitmap or data.startswith(_IMAGES) else None


def _gzip(name: str, data: bytes, closed: Counter[str]) -> Parts:
    with gzip.open(io.BytesIO(data)) as file:
        # One byte more than is looked at shows that there is more. A small file may unpack to any
        # size.
        yield name.removesuffix(".gz"), _whole(file.read(LARGEST + 1), closed)


def _bzip2(name: str, data: bytes, closed: Counter[str]) -> Parts:
    with bz2.open(io.BytesIO(data)) as file:
        yield name.removesuffix(".bz2"), _whole(file.read(LARGEST + 1), closed)


def _xz(name: str, data: bytes, closed: Counter[str]) -> Parts:
    with lzma.open(io.BytesIO(data)) as file:
        yield name.removesuffix(".xz"), _whole(file.read(LARGEST + 1), closed)


def _whole(content: bytes, closed: Counter[str]) -> bytes:
    if len(content) > LARGEST:
        closed[f"part of a file beyond {LARGEST >> 20} MiB"] += 1
    return content[:LARGEST]


def _zip(name: str, data: bytes, closed: Counter[str]) -> Parts:
    """Also npz, and torch's files."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for item in archive.infolist():
            # Before the read, which would unpack all of it into memory.
            if item.file_size > LARGEST:
                closed[f"file of more than {LARGEST >> 20} MiB in an archive"] += 1
                continue
            try:
                content = archive.read(item)
            except (NotImplementedError, RuntimeError):  # a method that Python lacks; a password
                closed["locked file in an archive"] += 1
                continue
            yield f"{name}:{item.filename}", content


def _tar(name: str, data: bytes, closed: Counter[str]) -> Parts:
    # `r:` means not compressed: the compressed kinds are opened layer by layer, with limits.
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for item in archive:
            file = archive.extractfile(item) if item.isreg() else None
            if file is not None:
                yield f"{name}:{item.name}", _whole(file.read(LARGEST + 1), closed)


def _parquet(name: str, data: bytes, closed: Counter[str]) -> Parts:
    """The table as csv; its columns one after the other, to be searched; files that are values of
    it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        closed["parquet file (pyarrow is not installed)"] += 1
        return
    try:
        table = pq.read_table(io.BytesIO(data))
        while any(pa.types.is_struct(field.type) for field in table.schema):
            table = table.flatten()
        columns = {
            str(field.name): table.column(n).to_pylist() for n, field in enumerate(table.schema)
        }
    except (pa.ArrowException, NotImplementedError) as error:
        raise ValueError(str(error)) from None
    plain = {
        key: values
        for key, values in columns.items()
        if not any(isinstance(v, bytes) for v in values)
    }
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [list(plain), *zip(*plain.values(), strict=True)]
    )
    yield f"{name}:table.csv", out.getvalue().encode()
    for key, values in plain.items():
        yield f"{name}:{key}", "\n".join(map(str, values)).encode()
    for key in columns.keys() - plain.keys():
        yield from ((f"{name}:{key}[{n}]", value) for n, value in enumerate(columns[key]) if value)


def _image(name: str, data: bytes, closed: Counter[str]) -> Parts:
    """The pixels (places in the palette where there is one), also channel by channel, and what is
    written beside."""
    try:
        from PIL import Image
    except ImportError:
        closed["image (pillow is not installed)"] += 1
        return
    try:
        with (
            warnings.catch_warnings(),
            # Untrusted bytes reach these decoders of Pillow and no other.
            Image.open(io.BytesIO(data), formats=["PNG", "GIF", "BMP", "TIFF"]) as image,
        ):
            # Pillow only warns between its pixel limit and twice that, and raises beyond.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image.load()
            words = {**image.info, **getattr(image, "text", {})}.values()
            yield (
                f"{name}:text",
                "\n".join(word for word in words if isinstance(word, str)).encode(),
            )
            yield f"{name}:pixels", image.tobytes()
            shown = image.convert("RGB") if image.mode == "P" else image
            if len(shown.getbands()) > 1:
                yield from ((f"{name}:{n}", band.tobytes()) for n, band in enumerate(shown.split()))
            if (frames := getattr(image, "n_frames", 1)) > 1:
                closed["further frame of an image"] += frames - 1
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        closed["image of too many pixels"] += 1
    except (
        SyntaxError,
        IndexError,
        TypeError,
        KeyError,
    ) as error:  # what Pillow raises for damaged ones
        raise ValueError(str(error)) from None
