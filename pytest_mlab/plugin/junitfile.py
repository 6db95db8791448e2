"""pytest's own JUnit file of a session with trials: that there is one, where it goes, and what it
says of the suite.

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
    """Have pytest write JUnit even when it was not asked to; :meth:`JUnitFile.place` says where,
    once it is known."""
    if (
        not is_worker(config)
        and not config.option.collectonly
        and getattr(config.option, "xmlpath", "") is None
    ):
        config.option.xmlpath = os.devnull


class JUnitFile:
    """Does nothing where pytest's JUnit plugin is switched off."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._own = False

    @property
    def _writer(self) -> Any:
        """pytest's JUnit writer, None when there is none."""
        return next(
            (
                p
                for p in self._config.pluginmanager.get_plugins()
                if hasattr(p, "add_global_property")
            ),
            None,
        )

    def place(self, folder: Path) -> None:
        """A file that nobody asked for elsewhere goes into ``folder``, the run directory."""
        writer = self._writer
        if writer is not None and getattr(writer, "logfile", "") == os.devnull:
            writer.logfile = str(folder / NAME)
            self._own = True

    def add_suite_properties(self, properties: Iterable[tuple[str, str]]) -> None:
        """Properties of the whole test suite."""
        writer = self._writer
        for name, value in properties if writer is not None else ():
            writer.add_global_property(name, value)

    def copy(self, folder: Path) -> None:
        """A file that was asked for elsewhere is copied into ``folder``, the run directory."""
        writer = self._writer
        file = (
            Path(getattr(writer, "logfile", "")) if writer is not None and not self._own else None
        )
        if file is not None and file.is_file():
            shutil.copyfile(file, folder / NAME)
