"""What all backends prepare: the programs' environment, the supervisor's first request, and mount
points in the workspace."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_mlab.core.sandbox_api import Mount, SandboxSpec
from pytest_mlab.core.task import Resources
from pytest_mlab.errors import SandboxError

SUPERVISOR = Path(__file__).resolve().parent / "inside" / "supervisor.py"
SUPERVISOR_INSIDE = "/mlab/supervisor.py"
SUPERVISOR_FLAGS = ("-I", "-S", "-X", "utf8")
"""Of the interpreter: neither the environment nor site-packages reach the supervisor, and without
site it starts in half the time."""
WORKSPACE = "/workspace"
"""Where isolated sandboxes show the workspace."""
RELAY_INSIDE = "/mlab/relay.sock"
"""Where they show the socket that the relay leads to."""


_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMEXPR_MAX_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "LOKY_MAX_CPU_COUNT",
    "TF_NUM_INTRAOP_THREADS",
)
"""How many threads numeric libraries start; torch reads OMP_NUM_THREADS. Without these each of 8
workers would use all cores."""

_MACHINE = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_DEBUG_CPU_TYPE",
)
"""Set on machines whose processor the numeric libraries do not recognise; scripts crash or crawl
without them."""


OFFLINE = {
    "PIP_NO_INDEX": "1",
    # pip shows the places in which it looks, and so says why it finds nothing.
    "PIP_FIND_LINKS": "/this-sandbox-has-no-network",
    "PIP_RETRIES": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_OFFLINE": "1",
    "CONDA_OFFLINE": "true",
}
"""Without network, installers fail at once. By themselves they would ask for a name server again
and again."""


def environment(
    resources: Resources,
    *,
    home: str,
    path: str = "",
    network: bool = True,
    host: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The variables that programs in a sandbox see: an allow-list, never the harness's own.

    ``home`` is a writable folder inside, for HOME and TMPDIR; ``path`` is PATH, left out when empty
    (a container's image has its own); ``network`` says whether programs can reach one; ``host`` is
    the harness's environment (default: this process's), of which only what describes the machine is
    taken over."""
    host = os.environ if host is None else host
    env = {
        "HOME": home,
        "TMPDIR": home,
        "USER": "mlab",  # getpass.getuser() raises where no passwd file knows the user's id
        "LOGNAME": "mlab",
        "LANG": "C.UTF-8",
        # What a program printed before it was killed is seen; in a buffer it would be lost.
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }
    if path:
        env["PATH"] = path
    if not network:
        env.update(OFFLINE)
    env.update(dict.fromkeys(_THREADS, str(resources.cpus)))
    env.update({name: host[name] for name in _MACHINE if name in host})
    # An empty value hides all devices; without the variable every one is visible.
    if resources.gpus == 0:
        env["CUDA_VISIBLE_DEVICES"] = ""
    elif "CUDA_VISIBLE_DEVICES" in host:
        env["CUDA_VISIBLE_DEVICES"] = host["CUDA_VISIBLE_DEVICES"]
    return env


def opening_request(
    spec: SandboxSpec,
    workspace: str,
    env: Mapping[str, str],
    *,
    measured: Sequence[str],
    unmeasured: Sequence[str] = (),
    inherit_env: bool = False,
    own_processes: bool = True,
    relay: str | None = RELAY_INSIDE,
) -> dict[str, Any]:
    """The supervisor's first request. Paths are as seen inside.

    ``measured`` are the folders whose disk use counts, without those in ``unmeasured``;
    ``inherit_env`` adds the variables that the supervisor was started with; ``own_processes`` says
    that all it can see are the sandbox's; ``relay`` is where the spec's relay, if it has one, is
    seen."""
    return {
        "workspace": workspace,
        "env": {**env, **spec.env},
        "inherit_env": inherit_env,
        "memory_mb": spec.resources.memory_mb,
        "disk_mb": spec.resources.disk_mb,
        "pids": spec.resources.pids,
        "measured": list(measured),
        "unmeasured": list(unmeasured),
        "own_processes": own_processes,
        "relay": relay if spec.relay is not None else None,
    }


def system_path() -> str:
    """PATH where the harness's Python is the sandbox's: that one first, then the system's
    programs."""
    return os.pathsep.join(
        dict.fromkeys([os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin"])
    )


def target_inside(mount: Mount) -> str:
    """A mount's target as an absolute path inside an isolated sandbox."""
    return str(PurePosixPath(WORKSPACE) / mount.target)


def tmp_mb(spec: SandboxSpec) -> int:
    """Size of /tmp, in MiB: it lives in memory, so a quarter of that, within the disk quota."""
    return min(spec.resources.disk_mb, max(64, spec.resources.memory_mb // 4))


def make_mount_points(spec: SandboxSpec) -> list[Path]:
    """Create the targets of mounts below the workspace, as the caller; what was created, outermost
    first.

    Raises SandboxError where the workspace's own symbolic links would lead out of it.
    """
    root = spec.workspace.resolve()
    created: list[Path] = []
    for mount in spec.mounts:
        inside = PurePosixPath(target_inside(mount))
        if not inside.is_relative_to(WORKSPACE):
            continue
        place = root / inside.relative_to(WORKSPACE)
        if not place.resolve().is_relative_to(root):
            raise SandboxError(
                f"the mount target {mount.target} leads out of the workspace, to {place.resolve()}"
            )
        missing = [path for path in reversed((place, *place.parents)) if not path.exists()]
        for path in missing:
            if path == place and not mount.source.is_dir():
                path.touch()
            else:
                path.mkdir()
        created += missing
    return created


def remove_mount_points(created: Sequence[Path]) -> None:
    """Undo :func:`make_mount_points` where nothing was put in since."""
    for path in reversed(created):
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            elif path.stat().st_size == 0:
                path.unlink()
