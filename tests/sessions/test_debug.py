"""What an agent prints, and ``--mlab-debug``: an agent in pytest's own process."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from tests.support.project import WITHOUT, Project

AGENT = """\
import asyncio
import logging
import os

from pytest_mlab import Action


class Curious:
    needs_model = False

    async def run(self, env):
        print("printed", flush=True)
        logging.warning("logged")
        number = 41
        breakpoint()
        print("the number is", number, "in the process", os.getpid())
        await asyncio.to_thread(env.execute, Action("Final Answer", {"final_answer": "done"}))
"""


def test_a_breakpoint_ends_with_the_command_that_debugs_it(project: Project) -> None:
    project.agent("curious", AGENT)
    said = project.run("--mlab-agent=curious", "-s").stdout.str()
    # with -s the output is seen at once, and it is kept
    assert "printed\n" in said.partition("FAILURES")[0]
    assert f"log   {project.name}/trials/guess/curious/1/agent.log" in said
    log = (project.trial("guess/curious/1") / "agent.log").read_text()
    assert "printed\n" in log
    assert "logged\n" in log
    reason = project.result("guess/curious/1")["reason"]
    assert re.search(r"\(curious\.py:1[56]\)", reason)  # 3.13 stops at the line, others behind it

    words = shlex.split(reason.partition("to debug it: pytest ")[2])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--mlab-sandbox=local", *WITHOUT, "--cov=agents"],
        cwd=project.path,
        input="p number + 1\nnumber = 5\nc\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "(Pdb) 42" in done.stdout
    assert re.search(r"the number is 5 in the process \d+\n", done.stdout)
    assert "no_submission" in done.stdout
    # a debugger that goes on takes the place of coverage's tracer before 3.12
    assert re.search(r"agents/curious\.py +\d+ +\d+ +[1-9]\d+%", done.stdout)


def test_debugging_needs_the_process_with_the_terminal(project: Project) -> None:
    result = project.run("--mlab-agent=baseline", "--mlab-debug", "-n", "2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --mlab-debug runs agents in * to fix: add -n 0"])
    assert not project.run_dir.exists()
