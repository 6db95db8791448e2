"""The plugin beside, and without, pytest's own plugins and others."""

from __future__ import annotations

import os

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
        "    parser.addini('reruns', '')\n"
    )
    (project.path / "pytest.ini").write_text("[pytest]\nreruns = 3\n")
    for words, said in ((["--reruns=2"], "--reruns=2"), ([], "reruns=3 in the ini file")):
        result = project.run("--mlab-agent=reference", *words)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(
            [f"*{said} would run trials again until they pass*--mlab-repeats*"]
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


def test_forbidden_sockets_do_not_keep_trials_from_running(project: Project) -> None:
    """Neither by pytest-socket's option nor by a fixture of the project's own."""
    (project.path / "conftest.py").write_text(
        "import socket\n\nimport pytest\n\n\n"
        "@pytest.fixture(autouse=True)\n"
        "def no_network(socket_disabled):\n"
        "    with pytest.raises(RuntimeError):\n"
        "        socket.socket()\n"
    )
    words = ("--disable-socket", "-W", "ignore:A test tried to use socket")
    result = project.spawn("--mlab-agent=reference", *words)
    assert result.ret == 0, result.stdout.str()


@pytest.mark.parametrize(
    ("option", "said"),
    [("--count=2", "--count=2 (pytest-repeat) *--mlab-repeats"), ("-f", "-f (--looponfail) *")],
)
def test_options_that_would_run_trials_again_are_refused(
    project: Project, option: str, said: str
) -> None:
    result = project.run("--mlab-agent=reference", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])
    assert not project.run_dir.exists()


def test_a_marker_that_would_run_trials_again_is_refused(project: Project) -> None:
    name = project.tests(
        "import pytest\n\n\n@pytest.mark.repeat(2)\ndef test_it(mlab_trial):\n    pass\n"
    )
    result = project.run("--mlab-agent=reference", name)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*the marker repeat (pytest-repeat) would *"])


def test_a_path_that_is_not_utf8_is_refused(project: Project) -> None:
    odd = os.fsdecode(b"caf\xe9")
    result = project.spawn("--mlab-agent=reference", f"--mlab-run-dir={odd}", run_dir=False)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: the path b'caf*xe9' is not UTF-8*"])
