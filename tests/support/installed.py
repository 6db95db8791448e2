"""Packages that are installed for one test, with entry points."""

from __future__ import annotations

from pathlib import Path

import pytest


def install(
    site: Path, monkeypatch: pytest.MonkeyPatch, *, group: str, name: str, value: str, code: str
) -> None:
    """Install a package into the folder ``site``: ``code`` as the module that ``value``
    (``<module>:<object>``) names, offered as ``name`` of the entry-point ``group``."""
    module = value.partition(":")[0]
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")
    (site / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(str(site))
