"""The environment variables that a sandbox's programs see: an allow-list, never the harness's
own."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pytest_mlab.core.task import Resources

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
"""torch takes its own from OMP_NUM_THREADS. Without these each of 8 workers would use all cores."""

_MACHINE = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_DEBUG_CPU_TYPE",
)
"""Set on machines whose processor the numeric libraries do not recognise; scripts crash or crawl
without them."""


def inside(
    resources: Resources, *, home: str, path: str = "", host: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables for programs in a sandbox.

    ``home`` is a writable folder inside, for HOME and TMPDIR; ``path`` is PATH, left out when empty
    (a container's image has its own); ``host`` is the harness's environment (default: this
    process's), of which only what describes the machine is taken over."""
    host = os.environ if host is None else host
    env = {
        "HOME": home,
        "TMPDIR": home,
        "USER": "mlab",  # who asks for the name of a user that no passwd file knows gets an error
        "LOGNAME": "mlab",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }
    if path:
        env["PATH"] = path
    env.update(dict.fromkeys(_THREADS, str(resources.cpus)))
    env.update({name: host[name] for name in _MACHINE if name in host})
    if resources.gpus == 0:
        env["CUDA_VISIBLE_DEVICES"] = ""
    elif "CUDA_VISIBLE_DEVICES" in host:
        env["CUDA_VISIBLE_DEVICES"] = host["CUDA_VISIBLE_DEVICES"]
    return env
