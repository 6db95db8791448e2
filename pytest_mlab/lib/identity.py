"""Versions, commit and machine, for ``run.json``; the packages themselves are not imported."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from collections.abc import Collection
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "pytest-mlab",
    "pytest",
    "pytest-xdist",
    "pytest-timeout",
    "pydantic",
    "scipy",
    "numpy",
    "pandas",
    "scikit-learn",
    "torch",
    "litellm",
    "docker",
)
_GIT_SECONDS = 5.0


def collect(rootdir: Path, packages: Collection[str] = PACKAGES) -> dict[str, Any]:
    """``{"versions": …, "git": …, "machine": …}`` as plain values."""
    return {"versions": versions(packages), "git": git(rootdir), "machine": machine()}


def versions(packages: Collection[str] = PACKAGES) -> dict[str, str]:
    """Installed versions by distribution name, and Python's own; absent packages are left out."""
    found = {"python": platform.python_version()}
    for name in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def git(folder: Path) -> dict[str, Any]:
    """``{"commit": …, "dirty": …}`` of the work tree around ``folder``; empty without one, and
    without git."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return {}
    status = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit.strip(), "dirty": None if status is None else bool(status.strip())}


def _git(folder: Path, *args: str) -> str | None:
    # GIT_DIR and its like would name another repository, as they do inside git's hooks.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment["GIT_OPTIONAL_LOCKS"] = "0"  # `git status` writes the index otherwise
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *args],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_SECONDS,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def machine() -> dict[str, Any]:
    """Processor, usable cores, memory in MiB, operating system, Python; ``fingerprint`` is the same
    as one line."""
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    cpu = _cpu_model()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {
        "cpu": cpu,
        "cores": cores,
        "memory_mb": memory,
        "os": f"{platform.system()} {platform.release()}",
        "arch": platform.machine(),
        "python": python,
        "fingerprint": (
            f"{cpu}, {cores} cores, {memory / 1024:.0f} GiB, {platform.machine()}, {python}"
        ),
    }


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
