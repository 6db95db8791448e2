"""The wheel: built, installed into an empty environment, and the suite collected from there."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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


def test_the_suite_is_collected_from_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    env = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", str(env)], check=True)
    python = env / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    project = tmp_path / "project"
    project.mkdir()
    done = subprocess.run(
        [
            python,
            "-m",
            "pytest",
            "--mlab-agent=reference",
            "--mlab-repeats=2",
            "--collect-only",
            "-q",
        ],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for task in ("cifar10", "house-price", "spaceship-titanic", "vectorization"):
        for repeat in (1, 2):
            assert f"test_beats_baseline[{task}-reference-{repeat}]" in done.stdout
    listed = subprocess.run(
        [env / "bin" / "mlab", "--help"], capture_output=True, text=True, check=True
    )
    assert "prepare" in listed.stdout
