"""pytest-timeout as the backstop."""

from __future__ import annotations

from pytest_mlab.core.budget import Budget
from pytest_mlab.trial.time_limits import trial_seconds
from tests.support.project import Project

SHOW = """
def pytest_collection_modifyitems(items):
    for item in items:
        print("MARKS", [(m.args, m.kwargs) for m in item.iter_markers("timeout")])
"""


SLEEPER = """
import time


class Sleeper:
    needs_model = False

    def run(self, env):
        time.sleep(600)
"""


def test_each_trial_has_a_marker_that_wins_over_a_general_timeout(project: Project) -> None:
    (project.path / "conftest.py").write_text(SHOW)
    result = project.run("--mlab-agent=reference", "--timeout=0.001", "-s")
    seconds = trial_seconds(Budget(max_seconds=60.0), timed=False)
    result.stdout.fnmatch_lines([f"MARKS ?(({seconds},), *'signal'*"])
    assert result.ret == 0


def test_a_users_own_marker_wins(project: Project) -> None:
    name = project.tests(
        "import pytest, time\n\n\n@pytest.mark.timeout(0.2)\ndef test_it(mlab_trial):\n    pass\n"
    )
    project.agent("sleeper", SLEEPER)
    result = project.run("--mlab-agent=sleeper", name)
    result.stdout.fnmatch_lines(["*Timeout*0.2*"])
    assert result.ret == 1
    assert not (project.trial("guess/sleeper/1") / "result.json").exists()


def test_without_pytest_timeout_there_is_no_marker(project: Project) -> None:
    (project.path / "conftest.py").write_text(SHOW)
    result = project.run("--mlab-agent=reference", "-p", "no:timeout", "-s", "--strict-markers")
    result.stdout.fnmatch_lines(["MARKS ?]*"])
    assert result.ret == 0
