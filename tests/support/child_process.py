"""A child process that is known to run its own program."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def running(environ: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """``cat``, started with ``environ``; killed at the end."""
    with subprocess.Popen(
        ["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, bufsize=0
    ) as process:
        # Popen returns while the kernel still sets up the program: until then /proc shows neither
        # its arguments nor its environment.
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"x")
        process.stdout.read(1)
        try:
            yield process
        finally:
            process.kill()
