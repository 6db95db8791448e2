"""Without a model, an agent or a run to resume, the plugin is as good as absent."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.project import WITHOUT, Project

HEAVY = (
    "litellm",
    "torch",
    "pandas",
    "docker",
    "pydantic",
    "scipy",
    "numpy",
    "xdist.dsession",
    "platformdirs",
)

PROBE = """
import json, sys
import pytest
class Probe:
    def pytest_sessionfinish(self):
        print("MODULES", json.dumps(sorted(sys.modules)))
plugins = [Probe()]
sys.exit(pytest.main(sys.argv[1:], plugins=plugins))
"""


def test_trials_are_deselected_and_the_rest_runs_whatever_other_options_say(
    project: Project,
) -> None:
    name = project.tests(
        "def test_plain():\n    pass\n\n\ndef test_trial(mlab_trial):\n    raise AssertionError\n"
    )
    others = ("--mlab-repeats=3", "--mlab-suite=no-such-suite")
    result = project.pytester.runpytest_inprocess(*WITHOUT, *others, name)
    result.assert_outcomes(passed=1, deselected=1)
    assert "mlab:" not in result.stdout.str()
    assert not (project.path / "reports").exists()


def test_nothing_heavy_is_imported(project: Project) -> None:
    project.tests("def test_plain():\n    pass\n\n\ndef test_trial(mlab_trial):\n    pass\n")
    # other plugins of this environment are kept out: they are not ours to judge
    args = ["-p", "mlab", "-p", "no:cacheprovider", "-s", "-q", "test_mine.py"]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *args],
        cwd=project.path,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "1 passed, 1 deselected" in done.stdout
    line = next(line for line in done.stdout.splitlines() if "MODULES" in line)
    modules = set(json.loads(line.partition("MODULES ")[2]))
    assert "pytest_mlab.plugin" in modules
    assert not modules & set(HEAVY)
    ours = {name for name in modules if name.startswith("pytest_mlab.")}
    assert not {
        name
        for name in ours
        if name.split(".")[1] in {"store", "suites", "data", "models", "sandboxes", "trial"}
    }


def test_markers_are_registered(project: Project) -> None:
    out = project.pytester.runpytest_inprocess(*WITHOUT, "--markers").stdout.str()
    assert "@pytest.mark.mlab(task, agent, model, repeat)" in out
    assert "@pytest.mark.mlab_gpu" in out
    assert "@pytest.mark.tabular" in out


def test_help_lists_flags_and_settings(project: Project) -> None:
    out = project.pytester.runpytest_inprocess(*WITHOUT, "--help").stdout.str()
    assert "--mlab-model=NAME" in out
    assert "mlab_max_time (string)" in out


def test_a_bad_value_is_a_usage_error_even_so(project: Project) -> None:
    result = project.pytester.runpytest_inprocess(*WITHOUT, "--mlab-max-time=5x")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --mlab-max-time=5x: '5x' is not a duration*"])
