"""The process that runs a submission's code: started by :mod:`pytest_mlab.evaluation.timing` with
``python -I -B``.

    code_process.py DRIVER FOLDER

It answers frames on stdin with frames on stdout (8 bytes of length, then the content). A request is
a JSON header with its length, then arrays as npy; an answer is ``+`` and one npy array, or ``-``
and a line of text. The first, empty request is answered once the code is loaded. Standard library
and NumPy only."""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import os
import resource
import sys
import traceback
from pathlib import Path
from typing import Any, BinaryIO

MAX_WRITTEN = 256_000_000
"""Bytes that the code may write into one file, what it prints included."""


def main(driver_file: str, folder: str) -> int:
    """Serve requests until stdin ends."""
    source, sink = _take_pipes()
    if _read_frame(source) is None:
        return 0
    _limit_files()
    _know_library()
    # Last, so that a file such as numpy.py in the folder shadows nothing.
    sys.path.append(folder)
    try:
        driver = _load(driver_file)
        loaded = driver.load(Path(folder))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - code under test raises what it likes
        _write_frame(sink, b"-" + _complaint(error, folder))
        return 1
    _write_frame(sink, b"+")
    while (request := _read_frame(source)) is not None:
        try:
            reply = b"+" + _answer(driver, loaded, request)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
            reply = b"-" + _complaint(error, folder)
        _write_frame(sink, reply)
    return 0


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Stdin and stdout for the protocol alone: what the code prints goes to stderr, what it reads
    is empty."""
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def _limit_files() -> None:
    """At most MAX_WRITTEN bytes a file, or what the sandbox allows where that is less."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    limit = MAX_WRITTEN if hard == resource.RLIM_INFINITY else min(MAX_WRITTEN, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def _know_library() -> None:
    """Make ``pytest_mlab.evaluation`` importable for the driver, from beside this file, and nothing
    else with it."""
    library = str(Path(__file__).resolve().parents[2])
    sys.path.insert(0, library)
    try:
        importlib.import_module("pytest_mlab.evaluation")
    finally:
        sys.path.remove(library)


def _load(file: str) -> Any:
    spec = importlib.util.spec_from_file_location("driver", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["driver"] = module
    spec.loader.exec_module(module)
    return module


def _answer(driver: Any, loaded: Any, request: bytes) -> bytes:
    import numpy as np

    stream = io.BytesIO(request)
    header = json.loads(stream.read(int.from_bytes(stream.read(8), "big")))
    arrays = [np.load(stream, allow_pickle=False) for _ in range(header["arrays"])]
    reply = io.BytesIO()
    np.save(reply, np.asarray(driver.call(loaded, header["settings"], arrays)), allow_pickle=False)
    return reply.getvalue()


def _read_frame(source: BinaryIO) -> bytes | None:
    head = source.read(8)
    return source.read(int.from_bytes(head, "big")) if len(head) == 8 else None


def _write_frame(sink: BinaryIO, content: bytes) -> None:
    sink.write(len(content).to_bytes(8, "big"))
    sink.write(content)
    sink.flush()


def _complaint(error: BaseException, folder: str) -> bytes:
    """What was raised and the last line of the folder's own code that led to it."""
    what = " ".join(traceback.format_exception_only(type(error), error)[-1].split())
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(folder)]
    where = f" ({os.path.relpath(own[-1].filename, folder)}:{own[-1].lineno})" if own else ""
    return f"raised {what}{where}".encode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
