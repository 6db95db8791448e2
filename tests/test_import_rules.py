"""Who may import whom, as docs/architecture.md says, and that the plugin's import stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pytest_mlab"
STDLIB_ONLY = ("core", "evaluation", "sandboxes/inside")
PYTEST = {"pytest", "_pytest", "xdist"}
IMPORT_PYTEST = {
    "plugin",
    "testing",
    "__init__",
}  # `__init__` imports the plugin's `Trial`, on first use
HEAVY = (
    "litellm",
    "torch",
    "pandas",
    "numpy",
    "docker",
    "matplotlib",
    "ray",
    "pydantic",
    "scipy",
    "sklearn",
    "httpx",
)


@cache
def rules() -> Mapping[str, frozenset[str]]:
    """The table of docs/architecture.md: by part, the parts that it may import beside itself."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## Who may import whom")[2].partition("\n## ")[0]
    found: dict[str, frozenset[str]] = {}
    for left, right in re.findall(r"^\| (`.+?) \| ?(.*?) ?\|$", table, re.M):
        allowed: set[str] = set()
        for whole, name in re.findall(r"(all of )?`([\w/]+)`", right):
            allowed |= found[name] if whole else {name}
        for part in re.findall(r"`([\w/]+)`", left):
            assert part not in found, f"{part} has two rows"
            found[part] = frozenset(allowed)
    return found


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_builtin" not in path.parts)


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def part_of(name: str) -> str:
    """The row of a dotted module: that of its longest folder which has one."""
    words = name.split(".")[1:] or ["__init__"]
    nested = "/".join(words[:2])
    return nested if nested in rules() else words[0]


def imports_of(path: Path, *, top_level: bool = False) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import in ``path``; only those run on import when
    ``top_level``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes: list[ast.AST] = list(tree.body) if top_level else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # An agent may have helper files beside it; the package itself spells imports out.
            assert node.level == 0 or path.parent.name == "agents", (
                f"{path}:{node.lineno}: relative import"
            )
            module = node.module or "" if node.level == 0 else f".{node.module}"
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


@cache
def own_imports() -> Mapping[str, frozenset[tuple[int, str]]]:
    """For every module of the package, the lines and names of the package's modules that it
    imports."""
    names = {dotted(path) for path in modules()}
    found: dict[str, frozenset[tuple[int, str]]] = {}
    for path in modules():
        here: set[tuple[int, str]] = set()
        for line, name in imports_of(path):
            known = name if name in names else name.rpartition(".")[0]
            if known in names:
                here.add((line, known))
        found[dotted(path)] = frozenset(here)
    return found


def test_every_module_has_a_rule() -> None:
    parts = {part_of(dotted(path)) for path in modules()}
    assert parts == rules().keys()


def test_a_module_imports_only_what_its_row_allows() -> None:
    wrong = [
        f"{name}:{line} imports {other}"
        for name, others in own_imports().items()
        for line, other in sorted(others)
        if part_of(other) not in {part_of(name), *rules()[part_of(name)]}
        and other != "pytest_mlab"  # the package's face: its version and public names
    ]
    assert not wrong


def test_the_rows_know_no_circle() -> None:
    order = list(rules())
    backwards = [
        (part, name)
        for i, part in enumerate(order)
        for name in rules()[part]
        if order.index(name) >= i
    ]
    # `__init__` is last: whoever imports a public name gets it from where it stands.
    assert not backwards


def test_no_modules_import_each_other_in_a_circle() -> None:
    edges = {
        name: {
            other
            for _, other in others
            if other != "pytest_mlab" and not name.startswith(f"{other}.")
        }
        for name, others in own_imports().items()
    }
    left = dict(edges)
    while True:
        free = {name for name, others in left.items() if not others & left.keys()}
        if not free:
            break
        left = {name: others for name, others in left.items() if name not in free}
    # What is left imports a circle or is in one; leave out what nobody in it imports.
    while unused := left.keys() - set[str]().union(*left.values()):
        left = {name: others for name, others in left.items() if name not in unused}
    assert sorted(left) == []


def test_only_the_plugin_and_testing_import_pytest() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules()
        for line, name in imports_of(path)
        if name.split(".")[0] in PYTEST and part_of(dotted(path)) not in IMPORT_PYTEST
    ]
    assert not wrong


@pytest.mark.parametrize("part", STDLIB_ONLY)
def test_a_pure_part_needs_the_standard_library_only(part: str) -> None:
    known = set(sys.stdlib_module_names) | {"pytest_mlab"}
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((PACKAGE / part).rglob("*.py"))
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
        if name.startswith("pytest_mlab.")
        and name.count(".") > 1
        and not name.startswith("pytest_mlab.evaluation.")
    ]
    assert not wrong


def test_public_names_exist() -> None:
    import pytest_mlab

    missing = [name for name in pytest_mlab.__all__ if not hasattr(pytest_mlab, name)]
    assert not missing


def test_loading_the_plugin_imports_nothing_heavy() -> None:
    code = "import sys, pytest_mlab.plugin; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not set(HEAVY) & set(loaded)


def test_an_idle_session_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass\n")
    (tmp_path / "conftest.py").write_text(
        "import sys\ndef pytest_unconfigure():\n    print('LOADED', *sorted({m.split('.')[0] for m"
        " in sys.modules}))\n"
    )
    others = ("no:cacheprovider", "no:hypothesispytest", "no:langsmith_plugin")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        *(word for other in others for word in ("-p", other)),
        ".",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = next(line for line in done.stdout.splitlines() if line.startswith("LOADED")).split()
    assert "pytest_mlab" in loaded
    assert not set(HEAVY) & set(loaded)
