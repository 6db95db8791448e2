"""Kinds of data sources: the built-in ones, and those of other packages."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.data import sources
from pytest_mlab.data.prepare import downloads, prepare, refused_rules
from pytest_mlab.data.sources import BUILT_IN, GROUP, kind_of, rules_of, source_hosts
from pytest_mlab.errors import ConfigError, SuiteError
from pytest_mlab.suites.loader import load_task
from tests.support.installed import install
from tests.support.toy_suite import write_toy_suite

SHELF = """\
from pytest_mlab.data.sources.base import SourceKind


class Shelf(SourceKind):
    name = "shelf"
    host = "shelf.example.org"

    def problems(self, source, folder):
        yield from super().problems(source, folder)
        if not source.ref.startswith("board/"):
            yield "ref", "must name a board"

    def rules_word(self, source, task):
        return "the-house"

    def fetch(self, source, task, into, options):
        self.require_consent(source, task, options)
        (into / "book.txt").write_text(source.ref)
"""
SOURCE = """
[[data.full.source]]
kind = "shelf"
ref = "board/3"
size_mb = 1.0
licence = "public domain"
consent = "https://shelf.example.org/rules"
"""


@pytest.fixture
def task_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A task whose variant ``full`` comes from the kind of source of another package."""
    install(tmp_path, monkeypatch, group=GROUP, name="shelf", value="lab_shelf:Shelf", code=SHELF)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLAB_CACHE_DIR", str(tmp_path / "cache"))
    folder = write_toy_suite(tmp_path, suite="lab") / "guess"
    with (folder / "task.toml").open("a") as file:
        file.write(SOURCE)
    with (folder / "data.py").open("a") as file:
        file.write('    if variant == "full":\n')
        file.write('        (public / "book.txt").write_text((raw / "book.txt").read_text())\n')
    return folder


def test_a_kind_of_another_package_is_accepted_asked_for_consent_fetched_and_prepared(
    task_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = load_task(task_folder, "lab")
    assert rules_of(task, "full") == {"the-house": "https://shelf.example.org/rules"}
    assert list(source_hosts(task)) == ["shelf.example.org"]
    assert downloads(task, "full", tmp_path) == ("board/3 (1 MB, licence: public domain)",)
    assert refused_rules(task, "full", tmp_path, ()) is not None
    ready = prepare(task, "full", tmp_path, consent=["the-house"])
    assert (ready.public / "book.txt").read_text() == "board/3"
    words = ["prepare", "guess", "--suite", "lab", "--data", "full"]
    assert cli.main([*words, "--accept-rules", "the-house"]) == 0
    assert cli.main(["tasks", "--suite", "lab"]) == 0
    assert "full" in capsys.readouterr().out


def test_its_own_problems_name_file_line_and_key(task_folder: Path) -> None:
    file = task_folder / "task.toml"
    file.write_text(file.read_text().replace('"board/3"', '"box/3"'))
    line = file.read_text().splitlines().index('ref = "box/3"') + 1
    with pytest.raises(SuiteError) as caught:
        load_task(task_folder, "lab")
    assert f"{file}:{line}: data.full.source[0].ref: must name a board" in str(caught.value)


def test_an_unknown_kind_is_answered_with_all_that_there_are(task_folder: Path) -> None:
    file = task_folder / "task.toml"
    file.write_text(file.read_text().replace('"shelf"', '"shelv"'))
    with pytest.raises(SuiteError) as caught:
        load_task(task_folder, "lab")
    for name in ("shelf", *(kind.name for kind in BUILT_IN)):
        assert name in str(caught.value)


def test_an_entry_point_must_name_a_kind_of_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, group=GROUP, name="dict", value="lab_dict:D", code="D = dict\n")
    with pytest.raises(ConfigError, match="lab_dict:D"):
        kind_of("dict")


def test_every_module_with_a_kind_is_registered() -> None:
    folder = Path(sources.__file__).parent
    classes = {
        node.name
        for path in folder.glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "SourceKind" for base in node.bases)
    }
    assert classes == {type(kind).__name__ for kind in BUILT_IN}
