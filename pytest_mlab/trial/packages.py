"""Which packages the Python of the sandbox has, and whether those that a task's code imports are
among them."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from pytest_mlab.core.sandbox_api import Connection, Sandbox
from pytest_mlab.core.task import Task
from pytest_mlab.errors import RequirementMissing, SandboxError
from pytest_mlab.lib import packages

MAIN = (
    *("numpy", "scipy", "pandas", "polars", "scikit-learn", "statsmodels", "matplotlib", "pillow"),
    *("torch", "torchvision", "torchaudio", "lightning", "timm", "torch-geometric", "ogb", "dgl"),
    *("tensorflow", "keras", "jax", "flax", "optax", "xgboost", "lightgbm", "catboost", "optuna"),
    *("transformers", "datasets", "tokenizers", "accelerate", "sentence-transformers", "nltk"),
    *("spacy", "opencv-python", "opencv-python-headless", "seaborn", "tqdm"),
)
"""Packages that agents are told about where they are installed."""

_ASK = """
import importlib.metadata, json, sys
found = {"python": "%d.%d.%d" % sys.version_info[:3]}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""
_SECONDS = 60.0


def check_packages(
    task: Task, sandbox: Sandbox, connection: Connection, *, also: Sequence[str] = ()
) -> Mapping[str, str]:
    """The versions of the packages that ``task`` requires, and of those in ``also`` that are there,
    in the Python of ``connection``, opened by ``sandbox``; of ``python`` too.

    Raise RequirementMissing, with the command that installs them, when required ones are absent or
    of another version."""
    wanted = packages.applicable(task.requirements)
    names = [one.name for one in wanted]
    every = list(dict.fromkeys([*names, *also]))
    if not every:
        return {}
    if sandbox.uses_host_python:
        found = {"python": platform.python_version(), **_listed(every), **_own_versions(names)}
    else:
        found = dict(_versions_inside(every, connection))
    missing = packages.unmet(wanted, found)
    if missing:
        have = ", ".join(f"{one.name} {found.get(one.name, 'is not installed')}" for one in missing)
        where = "" if sandbox.uses_host_python else "in the image: "
        raise RequirementMissing(
            f"the task {task.name} needs packages that the sandbox's Python does not have: {have}",
            fix=where + packages.install_command(missing, connection.python),
        )
    return {name: found[name] for name in ("python", *every) if name in found}


def _own_versions(names: Sequence[str]) -> dict[str, str]:
    """The sandbox shows the harness's own installation: no process is needed to ask it. What comes
    from elsewhere (a user's site-packages, PYTHONPATH) is not seen there."""
    shown = _shown_path()
    found: dict[str, str] = {}
    for name in names:
        for one in metadata.distributions(name=name, path=shown):
            # The first one on the path is the one that an import finds.
            found.setdefault(name, one.version)
    return found


def _listed(names: Sequence[str]) -> dict[str, str]:
    """The same by the names of the folders alone: in a hundredth of the time."""
    by_form = {_form(name): name for name in names}
    found: dict[str, str] = {}
    for folder in _shown_path():
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        for entry in entries:
            name, _, version = entry.removesuffix(".dist-info").partition("-")
            if entry.endswith(".dist-info") and (asked := by_form.get(_form(name))):
                found.setdefault(asked, version)
    return found


def _form(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _shown_path() -> list[str]:
    places = [Path(prefix) for prefix in (sys.prefix, sys.base_prefix, "/usr")]
    return [
        entry for entry in sys.path if any(Path(entry).is_relative_to(place) for place in places)
    ]


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
