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
    # In the same folder: os.replace works within one file system only.
    fd, name = tempfile.mkstemp(prefix=".part-", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        # mkstemp makes files that only their owner may read.
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    if durable:
        # The new name is a change of the folder, which fsync of the file does not write.
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
