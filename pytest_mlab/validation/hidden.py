"""A task's hidden files, and the search for them from inside the sandbox."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pytest_mlab.core.task import Task
from pytest_mlab.data.prepare import Prepared
from pytest_mlab.data.sources import source_hosts
from pytest_mlab.errors import SandboxError
from pytest_mlab.lib.digests import sha256_of, walk
from pytest_mlab.suites.folder import files_of
from pytest_mlab.validation.bench import Bench

SMALLEST = 16
"""Bytes. Smaller files may be equal by chance (an empty file, a lone newline)."""

TIMEOUT = 900.0
_THIEF = Path(__file__).parents[1] / "sandboxes" / "inside" / "thief.py"
_NAME = "thief.py"
_HIDDEN_PARTS = ("evaluator.py", "data.py", "reference/", "baseline/", "trivial/", "raw/")
_NAMES = ("evaluator.py", "answers.csv", "actions.toml", "task.toml")
_SYSTEM = (
    "/usr/",
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/bin/",
    "/sbin/",
    "/nix/store/",
    "/gnu/store/",
    "/workspace/",
)
_OUTSIDE = (("1.1.1.1", 53), ("8.8.8.8", 443))


@dataclass(frozen=True)
class Secret:
    """A file that no agent may see: ``name`` is relative to the task's folder or begins with
    ``answers/``."""

    name: str
    path: Path
    size: int
    sha256: str


def declared_starters(task: Task, variant: str) -> dict[str, str]:
    """sha256 → name of starter files that data are made of by the task's own word (an embedded
    source in env/)."""
    found = {}
    for source in task.variants[variant].sources:
        place = task.folder / source.ref
        if source.kind == "embedded" and source.ref.startswith("env/"):
            for path in (
                [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
            ):
                found[sha256_of(path)] = str(path.relative_to(task.folder))
    return found


def secrets_of(task: Task, prepared: Prepared) -> list[Secret]:
    """All hidden files: answers, evaluator, data.py, solutions, raw data. Not among them are files
    that the task declares as starter files or shared, and raw files that data.py makes public."""
    declared = declared_starters(task, prepared.variant)
    shown = set(prepared.files.values())
    answers = {name: Path(entry.path) for name, entry in walk(prepared.answers)}
    paths = {f"answers/{name}": path for name, path in answers.items() if not is_shared(name, task)}
    paths |= {
        name: task.folder / name for name in files_of(task.folder) if name.startswith(_HIDDEN_PARTS)
    }
    found = []
    for name, path in sorted(paths.items()):
        size = path.stat().st_size
        if size < SMALLEST:
            continue
        digest = sha256_of(path)
        if digest not in declared and not (name.startswith("raw/") and digest in shown):
            found.append(Secret(name, path, size, digest))
    return found


def is_shared(name: str, task: Task) -> bool:
    """True for an answer file that the agent has as well, by the task's own word."""
    return any(fnmatchcase(name, pattern) for pattern in task.shared)


PIECE = " holds piece "
"""In what the thief finds: a file with one of the needles in it."""


def found_by_thief(bench: Bench) -> list[str]:
    """What the thief finds beside needles: in the search of the check `leaks`, or in a new one."""
    found = search(bench) if bench.searched is None else bench.searched
    return [word for word in found if PIECE not in word]


def search(bench: Bench, needles: Sequence[bytes] = ()) -> list[str]:
    """What the thief finds, also kept as ``bench.searched``. In a sandbox without isolation only
    the workspace is searched: every report warns that such a sandbox shows the whole machine.
    Raises SandboxError."""
    workspace = bench.fresh()
    # The thief is put where an agent's own scripts lie, and runs with an agent's rights.
    (workspace.root / _NAME).write_bytes(_THIEF.read_bytes())
    connection = bench.open(workspace)
    try:
        root = "/" if bench.sandbox.isolated else connection.locate(".")
        request = json.dumps(_request(bench, root, needles)).encode()
        # The request comes by stdin: in a file or an argument the thief would find its own needles.
        done = connection.execute([connection.python, _NAME], timeout=TIMEOUT, stdin=request)
    finally:
        connection.close()
    try:
        found = json.loads(done.output.decode("utf-8", "replace").strip().splitlines()[-1])
    except (ValueError, IndexError):
        end = done.output[-300:].decode("utf-8", "replace").strip()
        raise SandboxError(
            f"the thief did not end its search ({done.killed_for or done.exit_status}): {end}"
        ) from None
    bench.searched = [str(item) for item in found]
    return bench.searched


def _request(bench: Bench, root: str, needles: Sequence[bytes]) -> dict[str, Any]:
    task = bench.task
    sizes: dict[str, dict[str, str]] = {}
    for secret in secrets_of(task, bench.prepared):
        sizes.setdefault(str(secret.size), {})[secret.sha256] = secret.name
    python = [f"{prefix.rstrip('/')}/" for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)]
    inside = root == "/"
    return {
        "sizes": sizes,
        "names": [name for name in _NAMES if inside],
        "paths": [str(task.folder), str(bench.prepared.answers.parent), str(bench.settings.cache)],
        "needles": [needle.hex() for needle in needles],
        "hosts": [*_OUTSIDE, *((host, 443) for host in source_hosts(task))] if inside else [],
        "root": root,
        "skip": [*_SYSTEM, *python] if inside else [],
    }
