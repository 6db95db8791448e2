"""A sandbox that measures the memory of its programs: a small program runs every command and reads
its peak."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pytest_mlab.core.sandbox_api import Connection, Execution, Sandbox, SandboxSpec

_ASK = """
import os, resource, signal, subprocess, sys
status = subprocess.call(sys.argv[2:])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
os.write(1, f"{sys.argv[1]}{peak}".encode())
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""
_DIGITS = 20
"""That a peak has at most."""


class MeteredSandbox:
    """``sandbox``, with ``peak_mb``: the resident set of the largest process since it was last set
    to 0, in MiB."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.name = sandbox.name
        self.isolated = sandbox.isolated
        self.mounts = sandbox.mounts
        self.uses_host_python = sandbox.uses_host_python
        self.preload = sandbox.preload
        self.peak_mb = 0.0

    def check(self) -> str:
        """As the sandbox."""
        return self._sandbox.check()

    def open(self, spec: SandboxSpec) -> Connection:
        """As the sandbox."""
        return _Metered(self._sandbox.open(spec), self)

    def sweep(self, label_prefix: str) -> int:
        """As the sandbox."""
        return self._sandbox.sweep(label_prefix)


class _AllButMark:
    """Passes on to ``sink`` what a program prints, and keeps back what may be the mark and the peak
    behind it."""

    def __init__(self, sink: Callable[[bytes], None], mark: bytes) -> None:
        self._sink = sink
        self._mark = mark
        self._kept = b""

    def __call__(self, data: bytes) -> None:
        kept = self._kept + data
        cut = max(0, len(kept) - len(self._mark) - _DIGITS)
        self._kept = kept[cut:]
        if cut:
            self._sink(kept[:cut])

    def end(self) -> None:
        """Pass on the rest without mark and peak."""
        output, found, peak = self._kept.rpartition(self._mark)
        if rest := output if found and peak.isdigit() else self._kept:
            self._sink(rest)


class _Metered:
    def __init__(self, connection: Connection, owner: MeteredSandbox) -> None:
        self._connection = connection
        self._owner = owner
        self.python = connection.python
        self.relay_port = connection.relay_port

    def locate(self, target: str) -> str:
        return self._connection.locate(target)

    def execute(
        self,
        argv: Sequence[str],
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        keep: int = 1 << 20,
        sink: Callable[[bytes], None] | None = None,
    ) -> Execution:
        # The peak comes behind the program's own output. The mark is random, so that the output
        # does not hold it by chance.
        mark = f"{secrets.token_hex(8)}:"
        # -I -S: files in the workspace must not take the place of modules, and startup stays short.
        command = [self.python, "-I", "-S", "-c", _ASK, mark, *argv]
        program = None if sink is None else _AllButMark(sink, mark.encode())
        try:
            ended = self._connection.execute(
                command, timeout=timeout, env=env, stdin=stdin, keep=keep, sink=program
            )
        finally:
            if program is not None:
                program.end()
        output, found, peak = ended.output.rpartition(mark.encode())
        if (
            not found or not peak.isdigit()
        ):  # it was killed, or something that it left behind wrote on
            return ended
        # Linux gives ru_maxrss in KiB.
        self._owner.peak_mb = max(self._owner.peak_mb, int(peak) / 1024)
        return replace(
            ended, output=output, output_bytes=ended.output_bytes - len(mark) - len(peak)
        )

    def repl(self, code: str, *, timeout: float | None = None, keep: int = 1 << 20) -> Execution:
        return self._connection.repl(code, timeout=timeout, keep=keep)

    def cancel(self) -> None:
        self._connection.cancel()

    def close(self) -> None:
        self._connection.close()
