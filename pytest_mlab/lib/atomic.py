"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_bytes(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Replace ``path`` by ``data`` in one step: a reader sees the old file or the new one.

    ``durable`` waits until data and name are on the disk, so that they survive a power cut. Raises
    OSError.
    """
    fd, name = tempfile.mkstemp(prefix=".part-", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """:func:`write_bytes` of UTF-8 text."""
    write_bytes(path, text.encode("utf-8"), durable=durable)


def sync_folder(folder: Path) -> None:
    """Wait until the names in ``folder`` are on the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
