"""Tests mirror modules: tests/store/test_journal.py is about pytest_mlab/store/journal.py."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "pytest_mlab"
# Folders of tests that are not about one package of pytest_mlab, each with its subject.
OTHERS = {
    "agents": "agents/",
    "tasks": "task_suites/",
    "sessions": "what a user meets in a pytest session, by subject",
    "xdist": "sessions with workers",
    "faults": "sessions in which something goes wrong, by fault",
    "compat": "what earlier versions wrote",
    "real_model": "agents with a real, small model",
    "support": "the tests' own helpers",
}


def files() -> list[Path]:
    found = (path.relative_to(TESTS) for path in sorted(TESTS.rglob("test_*.py")))
    return [path for path in found if len(path.parts) > 1 and path.parts[0] not in OTHERS]


@pytest.mark.parametrize("path", files(), ids=str)
def test_a_file_of_tests_is_named_after_a_module(path: Path) -> None:
    """``test_<module>.py`` or ``test_<module>_<subject>.py``; a package's own name stands for its
    ``__init__``."""
    folder = PACKAGE / path.parent
    modules = {module.stem for module in folder.glob("*.py")} | {folder.name}
    words = path.stem.removeprefix("test_").split("_")
    starts = {"_".join(words[:number]) for number in range(1, len(words) + 1)}
    assert modules & starts


def test_folders_mirror_packages() -> None:
    folders = {path.name for path in TESTS.iterdir() if (path / "__init__.py").is_file()}
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert folders <= packages | OTHERS.keys()
