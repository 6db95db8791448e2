"""A third party's backend goes through a whole session, and the package decides nothing by a
backend's name."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_mlab
from pytest_mlab import sandboxes
from pytest_mlab.cli import main
from pytest_mlab.errors import ConfigError
from tests.support.project import Project
from tests.support.toy_suite import BETTER_TRAIN, write_toy_task

PACKAGE = Path(pytest_mlab.__file__).parent

SHED = """\
import sys
from pathlib import Path

from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes.local import Local


class Shed:
    name = "shed"
    isolated = False
    mounts = False
    uses_host_python = False
    preload = ("shed_engine",)

    def __init__(self, *, image="", hidden=()):
        self.image = image
        self.local = Local(hidden=hidden)

    def check(self):
        return "" if self.image else "no image"

    def open(self, spec):
        if "shed_engine" not in sys.modules:
            raise SandboxError("the fork server has not imported shed_engine")
        connection = self.local.open(spec)
        connection.python = f"{self.image}/bin/python"
        return connection

    def sweep(self, label_prefix):
        return self.local.sweep(label_prefix)
"""


def installed(site: Path, name: str, **files: str) -> None:
    """A distribution as pip leaves it, with its metadata files ``files``."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    for file, text in files.items():
        (info / f"{file}.txt").write_text(text)


def image(folder: Path) -> Path:
    """A Python that has a package which the host lacks."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    installed(site, "only_inside")
    (site / "only_inside.py").write_text("")
    return folder


def test_a_backend_with_packages_that_the_host_lacks(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_toy_task(
        project.path / "task_suites" / "toy" / "guess",
        requirements=("only-inside>=1",),
        better_train="import only_inside\n" + BETTER_TRAIN,
    )
    site = tmp_path / "site"
    installed(site, "shed", entry_points="[pytest_mlab.sandboxes]\nshed = shed:Shed\n")
    (site / "shed.py").write_text(SHED)
    (site / "shed_engine.py").write_text("")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(site)
        result = project.run(
            "--mlab-sandbox=shed",
            f"--mlab-docker-image={image(tmp_path / 'image')}",
            "--mlab-agent=reference",
        )
        assert result.ret == 0
    result.stdout.fnmatch_lines(["*sandbox shed (NO ISOLATION)*"])
    trial = project.result("guess/reference/1")
    assert (trial["outcome"], trial["sandbox"]) == ("success", "shed")
    assert "shed" not in sandboxes.names()
    # A stored run is reported where its backend is not installed.
    assert main(["report", str(project.run_dir)]) == 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (('name = "shed"', 'name = "barn"'), "barn"),
        (("    uses_host_python = False\n", ""), "uses_host_python"),
    ],
)
def test_a_backend_that_does_not_fit_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], named: str
) -> None:
    module = f"shed_{named}"
    entry = f"[pytest_mlab.sandboxes]\nshed = {module}:Shed\n"
    installed(tmp_path, "shed", entry_points=entry)
    (tmp_path / f"{module}.py").write_text(SHED.replace(*change))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=named):
        sandboxes.make("shed")


# --- names ---

NAMED = {
    "core/plan.py": "the default of a setting",
    "lib/identity.py": "a package whose version is recorded",
    "store/serial.py": "older plans do not say whether it was isolated",
}
"""Modules outside sandboxes/ that may hold a backend's name, and why."""


def names_in(path: Path) -> Iterator[str]:
    """The string constants of a module that are a backend's name, whole."""
    backends = {"bubblewrap", "docker", "local"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and node.value in backends:
            yield node.value


def test_no_other_module_decides_by_a_backends_name() -> None:
    modules = [path for path in PACKAGE.rglob("*.py") if "_builtin" not in path.parts]
    naming = {
        str(path.relative_to(PACKAGE))
        for path in modules
        if path.relative_to(PACKAGE).parts[0] != "sandboxes" and any(names_in(path))
    }
    assert naming == set(NAMED)
