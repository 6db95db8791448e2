"""Are the packages that a task's code imports there, in the Python of the sandbox?"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from pytest_mlab.core.sandbox_api import Connection, Sandbox
from pytest_mlab.core.task import Task
from pytest_mlab.errors import RequirementMissing, SandboxError
from pytest_mlab.lib import packages

_ASK = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""
_SECONDS = 60.0


def check_packages(task: Task, sandbox: Sandbox, connection: Connection) -> None:
    """Raise RequirementMissing, with the command that installs them, when packages that ``task``
    requires are absent from the Python of ``connection``, opened by ``sandbox``, or of another
    version."""
    wanted = packages.applicable(task.requirements)
    if not wanted:
        return
    names = [one.name for one in wanted]
    found = (
        _own_versions(names) if sandbox.uses_host_python else _versions_inside(names, connection)
    )
    missing = packages.unmet(wanted, found)
    if missing:
        have = ", ".join(f"{one.name} {found.get(one.name, 'is not installed')}" for one in missing)
        where = "" if sandbox.uses_host_python else "in the image: "
        raise RequirementMissing(
            f"the task {task.name} needs packages that the sandbox's Python does not have: {have}",
            fix=where + packages.install_command(missing, connection.python),
        )


def _own_versions(names: Sequence[str]) -> dict[str, str]:
    """The sandbox shows the harness's own installation: no process is needed to ask it. What comes
    from elsewhere (a user's site-packages, PYTHONPATH) is not seen there."""
    places = [Path(prefix) for prefix in (sys.prefix, sys.base_prefix, "/usr")]
    shown = [
        entry for entry in sys.path if any(Path(entry).is_relative_to(place) for place in places)
    ]
    found: dict[str, str] = {}
    for name in names:
        for one in metadata.distributions(name=name, path=shown):
            # The first one on the path is the one that an import finds.
            found.setdefault(name, one.version)
    return found


def _versions_inside(names: Sequence[str], connection: Connection) -> Mapping[str, str]:
    ended = connection.execute([connection.python, "-I", "-c", _ASK, *names], timeout=_SECONDS)
    try:
        found = json.loads(ended.output)
    except ValueError:
        found = None
    # The image may be anybody's, so the answer is checked before it is used.
    if not isinstance(found, dict) or not all(
        isinstance(version, str) for version in found.values()
    ):
        output = ended.output[-200:].decode("utf-8", "replace").strip()
        raise SandboxError(
            f"the sandbox's Python ({connection.python}) does not say which packages it has: "
            f"{output or ended.killed_for or ended.exit_status}"
        )
    return found
