"""What of other plugins, of the project and of the command line does not go together with trials:
each is one line that says why."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_mlab.plugin.ini import asked_of
from pytest_mlab.plugin.roles import is_distributed, worker_count
from pytest_mlab.plugin.stash import OPTIONS

# Measured with xdist 3.8: loadscope runs an item that kills its worker again and again (xdist
# #1371), loadgroup may also hang afterwards (xdist #1324, #1328).
_DIST = {
    "each": "it would run every trial once on each worker",
    "loadscope": "it runs the trial of a crashed worker again and may hang",
    "loadfile": "it runs the trial of a crashed worker again and may hang",
    "loadgroup": "it runs the trial of a crashed worker again and may hang",
}
_MORE = "leave it out and ask for more trials with --mlab-repeats"


def refuse_modes(config: pytest.Config) -> None:
    """Raise UsageError for an option that would run trials more than once, or that needs another
    process."""
    mode = config.getoption("dist", "no")
    if mode in _DIST and is_distributed(config):
        raise pytest.UsageError(
            f"--dist={mode} cannot run mlab trials: {_DIST[mode]}; leave --dist out, -n alone"
            " hands out one trial at a time"
        )
    if config.stash[OPTIONS].debug and is_distributed(config):
        raise pytest.UsageError(
            "--mlab-debug runs agents in the process that has the terminal, and the trials of this"
            f" session go to {worker_count(config)} workers; to fix: add -n 0"
        )
    if reruns := config.getoption("reruns", None):
        raise pytest.UsageError(
            f"--reruns={reruns} would run trials again until they pass and count them twice;"
            f" {_MORE}"
        )
    if reruns is None and (reruns := _ini(config, "reruns")):
        raise pytest.UsageError(
            f"reruns={reruns} in the ini file would run trials again until they pass and count them"
            " twice; to fix: add --reruns=0, and ask for more trials with --mlab-repeats"
        )
    if _repeats(config) and (count := config.getoption("count", 1)) > 1:
        raise pytest.UsageError(
            f"--count={count} (pytest-repeat) would report each trial {count} times, and run it"
            f" once; {_MORE}"
        )
    if config.getoption("flake_finder_enable", False):
        raise pytest.UsageError(
            f"--flake-finder would report each trial many times, and run it once; {_MORE}"
        )


def _ini(config: pytest.Config, name: str) -> str:
    """A setting of another plugin, '' where there is none."""
    try:
        return str(config.getini(name) or "")
    except ValueError:
        return ""


def refuse_repeats(metafunc: pytest.Metafunc) -> None:
    """Fail the collection of a test of trials with pytest-repeat's marker."""
    if _repeats(metafunc.config) and metafunc.definition.get_closest_marker("repeat"):
        pytest.fail(
            "the marker repeat (pytest-repeat) would report each trial many times, and run it"
            f" once; {_MORE}",
            pytrace=False,
        )


def _repeats(config: pytest.Config) -> bool:
    plugins = config.pluginmanager
    return plugins.hasplugin("repeat") or plugins.hasplugin("pytest_repeat")


def refuse_loop(config: pytest.Config) -> None:
    """Raise UsageError for xdist's loop in a session with trials: it would run and pay for them
    after each change of a file."""
    if not config.getoption("looponfail", False):
        return
    if asked_of(config).active:
        raise pytest.UsageError(
            "-f (--looponfail) runs tests again whenever a file changes, and each trial costs time"
            " and money; leave it out"
        )


def refuse_bytes(paths: Iterable[Path]) -> None:
    """Raise UsageError for a path that is not UTF-8: plans, traces and reports are JSON."""
    for path in paths:
        raw = os.fsencode(path)
        if raw.decode("utf-8", "replace").encode() != raw:
            raise pytest.UsageError(
                f"the path {raw!r} is not UTF-8, and what a run writes is; rename the folder, or"
                " run from another one"
            )
