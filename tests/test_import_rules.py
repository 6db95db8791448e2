"""Who may import whom (docs/architecture.md), and that the plugin's import stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pytest_mlab"

# What each part below the plugin layer may import of pytest_mlab, beside itself.
SHARED = {"errors", "locate", "core"}
ALLOWED = {
    "core": {"errors"},
    "suites": SHARED,
    "data": SHARED,
    "store": SHARED,
    "runtime": SHARED | {"store"},
    "adapters": SHARED,
    "reporting": SHARED | {"store"},
    "evaluation": set[str](),
    "sandboxed": set[str](),
}
# May use everything below, but no pytest: they also serve the command line.
WIRING = {"compose", "validation", "planning", "commands", "cli", "__main__", "locate", "errors", "options"}
STDLIB_ONLY = ("core", "evaluation", "sandboxed")
HEAVY = ("litellm", "torch", "pandas", "numpy", "docker", "matplotlib", "ray", "pydantic", "scipy", "sklearn", "httpx")


def imports_of(path: Path, *, top_level: bool = False) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import in ``path``; only those run on import when ``top_level``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes: list[ast.AST] = list(tree.body) if top_level else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # An agent may have helper files beside it; the package itself spells imports out.
            assert node.level == 0 or path.parent.name == "agents", f"{path}:{node.lineno}: relative import"
            module = node.module or "" if node.level == 0 else f".{node.module}"
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def modules_of(part: str) -> list[Path]:
    folder = PACKAGE / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_a_part_imports_only_what_it_may(part: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules_of(part)
        for line, name in imports_of(path)
        if name.startswith("pytest_mlab.") and name.split(".")[1] not in ALLOWED[part] | {part}
    ]
    assert not wrong


@pytest.mark.parametrize("part", sorted(ALLOWED.keys() | WIRING))
def test_nothing_below_the_plugin_layer_imports_pytest(part: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules_of(part)
        for line, name in imports_of(path)
        if name.split(".")[0] in {"pytest", "_pytest", "xdist"}
    ]
    assert not wrong


@pytest.mark.parametrize("part", STDLIB_ONLY)
def test_a_pure_part_needs_the_standard_library_only(part: str) -> None:
    known = set(sys.stdlib_module_names) | {"pytest_mlab"}
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules_of(part)
        for line, name in imports_of(path, top_level=True)
        if name.split(".")[0] not in known
    ]
    assert not wrong


@pytest.mark.parametrize("folder", ["agents", "task_suites"])
def test_content_uses_public_names_only(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, name in imports_of(path)
        if name.startswith("pytest_mlab.") and name.count(".") > 1 and not name.startswith("pytest_mlab.evaluation.")
    ]
    assert not wrong


def test_public_names_exist() -> None:
    import pytest_mlab

    missing = [name for name in pytest_mlab.__all__ if not hasattr(pytest_mlab, name)]
    assert not missing


def test_loading_the_plugin_imports_nothing_heavy() -> None:
    code = "import sys, pytest_mlab.plugin; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(HEAVY) & set(loaded)


def test_an_idle_session_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass\n")
    (tmp_path / "conftest.py").write_text(
        "import sys\ndef pytest_unconfigure():\n    print('LOADED', *sorted({m.split('.')[0] for m in sys.modules}))\n"
    )
    others = ("no:cacheprovider", "no:hypothesispytest", "no:langsmith_plugin")
    command = [sys.executable, "-m", "pytest", "-q", "-s", *(word for other in others for word in ("-p", other)), "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = next(line for line in done.stdout.splitlines() if line.startswith("LOADED")).split()
    assert "pytest_mlab" in loaded
    assert not set(HEAVY) & set(loaded)
