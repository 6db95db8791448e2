"""The wheel: what is in it, and the suite collected from it."""

from __future__ import annotations

import ast
import os
import site
import subprocess
import sys
import zipfile
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tasks.conftest import TASKS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(out),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return next(out.glob("*.whl"))


def test_the_wheel_carries_suites_agents_and_licences(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "pytest_mlab/py.typed",
        "pytest_mlab/_builtin/task_suites/test_mlagentbench.py",
        "pytest_mlab/_builtin/task_suites/mlagentbench/house-price/task.toml",
        "pytest_mlab/_builtin/task_suites/mlagentbench/house-price/raw/ames.csv.gz",
        "pytest_mlab/_builtin/agents/research.py",
        "pytest_mlab/_builtin/agents/research_prompt.md",
        "pytest_mlab/_builtin/task_suites/mlagentbench/house-price/NOTICE",
    ):
        assert wanted in names
    assert any(name.endswith("licenses/NOTICE") for name in names)
    assert not [
        name for name in names if "__pycache__" in name or name.startswith(("tests/", "reports/"))
    ]


def test_an_editable_installation_copies_no_task(tmp_path: Path) -> None:
    """What it copied would lie in site-packages, which sandboxes show to agents."""
    code = (
        "import sys; from hatchling.build import build_editable; print(build_editable(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert not [name for name in names if "_builtin" in name]


def test_the_suite_is_collected_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    """In an environment that sees the packages installed here, but not this checkout: modules of a
    folder on PYTHONPATH are found, `.pth` files, which lead to a checkout, are not read."""
    env = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(env)], check=True)
    python = env / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, str(wheel)], check=True)
    project = tmp_path / "project"
    project.mkdir()
    (own,) = env.glob("lib/python*/site-packages")
    names = ["--mlab-agent=reference", "--mlab-repeats=2", "--collect-only", "-q"]
    done = subprocess.run(
        [python, "-m", "pytest", *names],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(own), *site.getsitepackages()])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    planned = [line.partition("[")[2] for line in done.stdout.splitlines() if "::" in line]
    assert planned == [f"{name}-reference-{k}]" for k in (1, 2) for name in TASKS]
    assert (
        str(own)
        in subprocess.run(
            [python, "-c", "import pytest_mlab; print(pytest_mlab.__file__)"],
            cwd=project,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    listed = subprocess.run(
        [env / "bin" / "mlab", "--help"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(site.getsitepackages())},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "prepare" in listed.stdout


def test_every_package_that_is_imported_is_declared() -> None:
    """What a fresh installation, without this one's test tools, would miss."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    lines = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    installed_as = metadata.packages_distributions()
    missing = {}
    for path in sorted((ROOT / "pytest_mlab").rglob("*.py")):
        for module in imported(path):
            names = {canonicalize_name(name) for name in installed_as.get(module, [module])}
            if module not in sys.stdlib_module_names and not names & (declared | OWN):
                missing[module] = path.relative_to(ROOT)
    assert not missing


OWN = {"pytest-mlab", "pydantic-core"}  # the latter is a part of pydantic


def imported(path: Path) -> set[str]:
    """The top-level modules that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found
