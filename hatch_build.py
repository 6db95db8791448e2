"""Puts the built-in suites and agents, which stand at the top of the repository, into the wheel.

A hook rather than `force-include`: that would also copy them, answers included, into the
site-packages of an editable installation, which sandboxes show to agents; and it would take
compiled files along.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS = ("task_suites", "agents")


class BuiltinHook(BuildHookInterface):
    """Adds every file of ``FOLDERS`` to a standard wheel, below ``pytest_mlab/_builtin``."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects files."""
        if version == "editable":
            return
        root = Path(self.root)
        for folder in FOLDERS:
            for path in sorted((root / folder).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    build_data["force_include"][os.fspath(path)] = (
                        f"pytest_mlab/_builtin/{path.relative_to(root)}"
                    )
