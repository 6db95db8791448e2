"""A user's project with a toy suite, and pytest run in it."""

from __future__ import annotations

import contextlib
import gc
import json
import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import pytest_mlab
from tests.support.toy_suite import write_toy_suite

RUN = "run"
"""The run directory, relative to the project, unless a test names another."""

# Loading other plugins costs seconds in each session, and in each of its workers.
WITHOUT = tuple(
    word
    for plugin in ("cacheprovider", "hypothesispytest", "anyio", "langsmith_plugin")
    for word in ("-p", f"no:{plugin}")
)

COMMON = (
    "--mlab-suite=toy",
    "--mlab-sandbox=local",
    "--mlab-repeats=1",
    "--mlab-max-time=60s",
    *WITHOUT,
)


def keep_modules() -> None:
    """Import once what a run imports: an inner pytest in this process forgets the modules that it
    was the first to import, while their packages go on to name them, and some (scipy's) cannot be
    imported twice."""
    # litellm imports this backport, which takes the finder of installed packages from the standard
    # library. Forgotten with the inner pytest's modules, it would leave this process without any
    # installed plugin.
    with contextlib.suppress(ModuleNotFoundError):
        import_module("importlib_metadata")
    import pydantic  # noqa: F401
    import scipy.special
    import scipy.stats  # noqa: F401

    for module in pkgutil.walk_packages(pytest_mlab.__path__, "pytest_mlab."):
        if module.name.rpartition(".")[2] not in ("__main__", "test_any_suite", "testing"):
            import_module(module.name)


_frozen = 0


def freeze_modules() -> None:
    """Take what imported modules hold out of the garbage collector's sight.

    Every inner pytest in this process collects garbage when it ends. Beside litellm and torch,
    which other tests have imported, that took 0.3 s each time, more than the rest of a session."""
    global _frozen
    if len(sys.modules) > _frozen:
        gc.collect()
        gc.freeze()
        _frozen = len(sys.modules)


@dataclass
class Project:
    """``run`` is pytest in this process, ``spawn`` in one of its own; both with the toy suite and
    quick settings."""

    pytester: pytest.Pytester
    name: str = RUN

    @classmethod
    def create(
        cls, pytester: pytest.Pytester, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Project:
        """A new project, with an environment without keys and without the variables of a CI."""
        freeze_modules()
        write_toy_suite(pytester.path)
        monkeypatch.setenv("MLAB_CACHE_DIR", str(cache))
        for name in ("CI", "BUILD_NUMBER", "OPENAI_API_KEY", "PYTEST_ADDOPTS"):
            monkeypatch.delenv(name, raising=False)
        return cls(pytester)

    @property
    def path(self) -> Path:
        """The project's folder."""
        return self.pytester.path

    @property
    def run_dir(self) -> Path:
        """The run directory."""
        return self.path / self.name

    def run(self, *args: str, run_dir: bool = True) -> pytest.RunResult:
        """pytest in this process."""
        return self.pytester.runpytest_inprocess(*self.arguments(*args, run_dir=run_dir))

    def spawn(self, *args: str, run_dir: bool = True) -> pytest.RunResult:
        """pytest in a process of its own."""
        return self.pytester.runpytest_subprocess(*self.arguments(*args, run_dir=run_dir))

    def arguments(self, *args: str, run_dir: bool = True) -> list[str]:
        """The arguments of pytest; a later one wins."""
        return [*COMMON, *([f"--mlab-run-dir={RUN}"] if run_dir else []), *args]

    def tests(self, source: str, name: str = "test_mine.py") -> str:
        """A test file of the project's own; its name."""
        (self.path / name).write_text(source, encoding="utf-8")
        return name

    def agent(self, name: str, source: str) -> None:
        """An agent of the project's own."""
        folder = self.path / "agents"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(source, encoding="utf-8")

    def plan(self) -> list[str]:
        """The names of the planned trials, as on disk."""
        plan = json.loads((self.run_dir / "plan.json").read_text(encoding="utf-8"))
        return [f"{t['task']}-{t['agent']}-{t['repeat']}" for t in plan["trials"]]

    def result(self, trial: str) -> Mapping[str, Any]:
        """result.json of ``task/subject/repeat``."""
        found: dict[str, Any] = json.loads(
            (self.trial(trial) / "result.json").read_text(encoding="utf-8")
        )
        return found

    def trial(self, trial: str) -> Path:
        """The folder of ``task/subject/repeat``."""
        return self.run_dir / "trials" / trial

    def summary(self) -> dict[str, Any]:
        """summary.json."""
        found: dict[str, Any] = json.loads(
            (self.run_dir / "summary.json").read_text(encoding="utf-8")
        )
        return found

    def junit(self) -> dict[str, JunitCase]:
        """The run directory's JUnit file: test cases by ``classname::name``."""
        root = ElementTree.parse(self.run_dir / "junit.xml").getroot()
        cases = [JunitCase.of(case) for case in root.iter("testcase")]
        assert len({case.name for case in cases}) == len(cases), [case.name for case in cases]
        return {case.name: case for case in cases}

    def junit_suite(self) -> dict[str, str]:
        """The properties of the JUnit file's suite."""
        root = ElementTree.parse(self.run_dir / "junit.xml").getroot()
        return {
            p.attrib["name"]: p.attrib["value"]
            for p in root.findall("./testsuite/properties/property")
        }


@dataclass(frozen=True)
class JunitCase:
    """One test case; ``status`` is the tag of its child: failure, error, skipped or '' for
    passed."""

    name: str
    status: str
    text: str
    properties: Mapping[str, str]

    @classmethod
    def of(cls, case: ElementTree.Element) -> JunitCase:
        """Read a test case."""
        properties = {
            p.attrib["name"]: p.attrib["value"] for p in case.findall("./properties/property")
        }
        status = next(
            (child for child in case if child.tag in ("failure", "error", "skipped")), None
        )
        name = f"{case.attrib['classname']}::{case.attrib['name']}"
        if status is None:
            return cls(name, "", "", properties)
        return cls(name, status.tag, status.attrib.get("message", ""), properties)
