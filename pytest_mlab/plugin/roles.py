"""The role of a process in a session: worker, controller of workers, or both in one."""

from __future__ import annotations

import pytest


def is_worker(config: pytest.Config) -> bool:
    """True in a worker process of xdist."""
    return hasattr(config, "workerinput")


def is_distributed(config: pytest.Config) -> bool:
    """True on a controller that hands its items to workers."""
    return not is_worker(config) and config.pluginmanager.hasplugin("dsession")


def worker_count(config: pytest.Config) -> int:
    """How many tests run at a time, in the session that ``config`` controls."""
    if config.getoption("dist", "no") == "no":
        return 1
    from xdist.workermanage import parse_tx_spec_config

    return len(parse_tx_spec_config(config))
