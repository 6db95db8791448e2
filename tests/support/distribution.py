"""An installed package, as ``importlib.metadata`` sees it."""

from __future__ import annotations

from pathlib import Path


def install(site: Path, group: str, points: dict[str, str], modules: dict[str, str]) -> None:
    """A distribution in the folder ``site`` with entry points of ``group`` and with ``modules`` by
    name; ``site`` still has to get on sys.path."""
    info = site / "demo-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]) + "\n")
    for name, source in modules.items():
        (site / f"{name}.py").write_text(source)
