"""Settings of the ini file, in the types of TOML."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_mlab.core.values import PerModel
from pytest_mlab.plugin.stash import OPTIONS
from tests.support.project import WITHOUT, Project

pytestmark = pytest.mark.skipif(
    pytest.version_tuple < (9,), reason="native TOML settings came with pytest 9"
)

VALUES: dict[str, tuple[str, Any]] = {
    # as TOML has it, though not in the type that pytest wants, and what it means
    "model": ('"a/b"', ("a/b",)),
    "agent": ('"baseline reference"', ("baseline", "reference")),
    "repeats": ('"3"', 3),
    "max_steps": ("7", 7),
    "max_time": ("3600", 3600.0),
    "max_tokens": ('"5000"', 5000),
    "max_cost": ('"1.5"', 1.5),
    "run_max_cost": ("20", 20.0),
    "rpm": ("60", (PerModel(60),)),
    "tpm": ('[1000, "m=5"]', (PerModel(1000), PerModel(5, "m"))),
    "exclude_waits": ('"true"', True),
    "network": ("true", True),
    "threshold": ('"0.2"', 0.2),
    "fail_under": ("0.5", 0.5),
    "heartbeat": ("30", 30.0),
    "snapshot_file_mb": ('"9"', 9),
    "help": ('"human"', "human"),
    "docker_image": ('"mine:1"', "mine:1"),
}
WRONG = {
    "repeats": ("true", "text or a number"),
    "max_time": ("[60]", "text or a number"),
    "model": ("true", "text or a number"),
    "agent": ('["baseline", 3.5, false]', "text or a number"),
    "max_steps": ("0.5", "whole number"),
    "network": ("3", "true or false"),
    "fail_under": ("{ a = 1 }", "text or a number"),
    "gate": ("7", "aggregate, none, trial"),
}
FILES = {"pytest.toml": "[pytest]", ".pytest.toml": "[pytest]", "pyproject.toml": "[tool.pytest]"}


@pytest.mark.parametrize("name", FILES)
def test_texts_numbers_and_switches_are_taken_where_they_make_sense(
    project: Project, name: str
) -> None:
    lines = [f"mlab_{field} = {text}" for field, (text, _) in VALUES.items()]
    (project.path / name).write_text("\n".join([FILES[name], *lines]))
    options = project.pytester.parseconfigure(*WITHOUT).stash[OPTIONS]
    assert {field: getattr(options, field) for field in VALUES} == {
        field: value for field, (_, value) in VALUES.items()
    }


@pytest.mark.parametrize("field", WRONG)
def test_other_types_are_usage_errors_that_name_the_setting(project: Project, field: str) -> None:
    text, wanted = WRONG[field]
    (project.path / "pytest.toml").write_text(f"[pytest]\nmlab_{field} = {text}\n")
    result = project.pytester.runpytest_inprocess(*WITHOUT, "--collect-only")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"mlab_{field} in the ini file=" in result.stderr.str()
    assert wanted in result.stderr.str()


def test_an_override_is_never_replaced_by_the_file(project: Project) -> None:
    (project.path / "pytest.toml").write_text("[pytest]\nmlab_repeats = 3\n")
    words = [*WITHOUT, "--collect-only", "-o", "mlab_repeats=three"]
    result = project.pytester.runpytest_inprocess(*words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "three" in result.stderr.str()
