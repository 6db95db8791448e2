"""Packages that the code of a task in MLAgentBench's format imports and that are not installed,
found by reading it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

# Packages that are installed under another name than they are imported.
_INSTALLED_AS = {
    "PIL": "pillow",
    "absl": "absl-py",
    "bs4": "beautifulsoup4",
    "clrs": "dm-clrs",
    "cv2": "opencv-python-headless",
    "haiku": "dm-haiku",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "torch_geometric": "torch-geometric",
    "yaml": "PyYAML",
}


def missing_imports(folder: Path, starter_script: str) -> dict[str, str]:
    """What to install, by the name of the package, and the file that imports it: of what eval.py,
    prepare.py and the starter script need as soon as they start. Files of the folder itself are no
    packages."""
    files = ["scripts/eval.py", f"env/{starter_script}"]
    if not (folder / "scripts" / "prepared").exists():
        files.append("scripts/prepare.py")
    found: dict[str, str] = {}
    for name in files:
        for module in _needed(folder / name):
            if not _is_there(module, folder):
                found.setdefault(_INSTALLED_AS.get(module, module), name)
    return found


def _needed(file: Path) -> Iterator[str]:
    """Modules that ``file`` imports in any case: not inside functions, conditions or `try`."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # running the file shows the error
    # Imports elsewhere may be optional, so a package that only they need is not called missing.
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def _is_there(module: str, folder: Path) -> bool:
    if module in sys.stdlib_module_names or find_spec(module) is not None:
        return True
    places = (folder / "env", folder / "scripts")
    return any((place / f"{module}.py").is_file() or (place / module).is_dir() for place in places)
