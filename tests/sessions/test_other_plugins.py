"""The plugin beside, and without, pytest's own plugins and others."""

from __future__ import annotations

import pytest

from tests.support.project import Project


@pytest.mark.parametrize(
    "absent",
    [("xdist", "cacheprovider", "junitxml", "timeout", "terminalprogress"), ("terminal",)],
    ids=len,
)
def test_without(project: Project, absent: tuple[str, ...]) -> None:
    words = [word for name in absent for word in ("-p", f"no:{name}")]
    result = project.spawn("--mlab-agent=reference", *words)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert project.result("guess/reference/1")["outcome"] == "success"
    assert project.summary()["subjects"][0]["success"]["rate"] == 1.0


def test_reruns_are_refused(project: Project) -> None:
    (project.path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--reruns', type=int)\n"
    )
    result = project.run("--mlab-agent=reference", "--reruns=2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--reruns=2 would run trials again until they pass*--mlab-repeats*"]
    )


def test_a_reporter_that_replaces_the_terminals(project: Project) -> None:
    (project.path / "conftest.py").write_text(
        "import pytest\n"
        "from _pytest.terminal import TerminalReporter\n\n\n"
        "class Mine(TerminalReporter):\n    pass\n\n\n"
        "@pytest.hookimpl(trylast=True)\n"
        "def pytest_configure(config):\n"
        "    config.pluginmanager.unregister(config.pluginmanager.get_plugin('terminalreporter'))\n"
        "    config.pluginmanager.register(Mine(config), 'terminalreporter')\n"
    )
    result = project.run("--mlab-agent=reference")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["gate trial: passed"])


def test_the_heartbeat_is_seen_while_a_test_captures_output(project: Project) -> None:
    project.agent(
        "slow",
        "import time\n\n\nclass Slow:\n    needs_model = False\n\n    def run(self, env):\n       "
        " time.sleep(1)\n",
    )
    result = project.spawn("--mlab-agent=slow", "--mlab-heartbeat=0.2s")
    result.stdout.fnmatch_lines(
        ["mlab *: 0/1 done, 1 running", "  guess-slow-1: step 0/50, started *"]
    )
