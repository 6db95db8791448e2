"""Which part a process plays in a session: worker, controller of workers, or both in one."""

from __future__ import annotations

import pytest


def is_worker(config: pytest.Config) -> bool:
    """True in a worker process of xdist."""
    return hasattr(config, "workerinput")


def is_distributed(config: pytest.Config) -> bool:
    """True on a controller that hands its items to workers."""
    return not is_worker(config) and config.pluginmanager.hasplugin("dsession")
