"""pytest's own JUnit file of a session with trials: its place, and its properties of the suite.

Under xdist ``record_testsuite_property`` is lost (pytest #7767), so values go to pytest's writer
itself, on the controller, before it writes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.plugin.roles import is_worker

NAME = "junit.xml"


def want_junit(config: pytest.Config) -> None:
    """Have pytest write JUnit in every run. :meth:`JUnitFile.place` names the file later."""
    if (
        not is_worker(config)
        and not config.option.collectonly
        and getattr(config.option, "xmlpath", "") is None
    ):
        # pytest makes its writer now, before the run directory has a name, and opens the file only
        # at the end: the null device holds the place. xmlpath does not exist with -p no:junitxml,
        # and is None when no file was asked for.
        config.option.xmlpath = os.devnull


class JUnitFile:
    """Does nothing where pytest's JUnit plugin is switched off."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._own = False

    @property
    def _writer(self) -> Any:
        """pytest's JUnit writer, None when there is none."""
        # By its method, because the key of the writer in pytest's stash is in a private module.
        plugins = self._config.pluginmanager.get_plugins()
        return next((p for p in plugins if hasattr(p, "add_global_property")), None)

    def place(self, folder: Path) -> None:
        """Put the file into ``folder``, the run directory, unless the user named another place."""
        writer = self._writer
        if writer is not None and getattr(writer, "logfile", "") == os.devnull:
            writer.logfile = str(folder / NAME)
            self._own = True

    def add_suite_properties(self, properties: Iterable[tuple[str, str]]) -> None:
        """Properties of the whole test suite."""
        if (writer := self._writer) is None:
            return
        for name, value in properties:
            writer.add_global_property(name, value)

    def copy(self, folder: Path) -> None:
        """Copy a file that the user wanted in another place into ``folder``, the run directory."""
        writer = self._writer
        if writer is None or self._own:
            return
        file = Path(getattr(writer, "logfile", ""))
        if file.is_file():
            shutil.copyfile(file, folder / NAME)
