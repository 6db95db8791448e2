"""The role of a process in a session (worker, controller of workers, or both in one), and its
terminal."""

from __future__ import annotations

import pytest


def is_worker(config: pytest.Config) -> bool:
    """True in a worker process of xdist."""
    return hasattr(config, "workerinput")


def is_distributed(config: pytest.Config) -> bool:
    """True on a controller that hands its items to workers."""
    # xdist registers this plugin only when it hands items out: not with -n 0 and not when a session
    # only collects.
    return not is_worker(config) and config.pluginmanager.hasplugin("dsession")


def worker_count(config: pytest.Config) -> int:
    """How many tests run at a time, in the session that ``config`` controls."""
    # The option and not the plugin ``dsession``: --mlab-plan starts no workers and still counts
    # those of the run. The default stands in where xdist is not installed.
    if config.getoption("dist", "no") == "no":
        return 1
    from xdist.workermanage import parse_tx_spec_config

    # xdist's own parser, because one --tx may stand for many workers, such as 8*popen.
    return len(parse_tx_spec_config(config))


def width_of(config: pytest.Config) -> int:
    """The columns of the session's terminal, at least 80."""
    if not config.pluginmanager.hasplugin("terminalreporter"):
        return 80
    return max(80, config.get_terminal_writer().fullwidth)
