"""Execute Script and Python REPL, over a real local sandbox; odd ends over a fake one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_mlab.core.actions import Action
from pytest_mlab.core.budget import Budget
from pytest_mlab.core.sandbox_api import Execution
from pytest_mlab.core.task import Resources
from pytest_mlab.trial.actions.base import SHOWN
from tests.trial.conftest import MakeTrial


def test_a_script_runs_in_the_workspace(make_trial: MakeTrial) -> None:
    code = (
        b"import os, sys\nprint('out'); sys.stdout.flush()\nprint('err',"
        b" file=sys.stderr)\nopen('made', 'w').close()"
    )
    trial = make_trial(env={"lib/run.py": code})
    seen = trial.do("Execute Script", script_name="lib/run.py")
    assert seen.ok
    assert seen.exit_status == 0
    assert seen.text == "lib/run.py ran to its end. Its output:\nout\nerr\n"
    assert (trial.root / "made").exists()
    assert trial.steps()[0].output_bytes == 8
    assert seen.output_file == ""


def test_a_failed_script_says_its_status(make_trial: MakeTrial) -> None:
    trial = make_trial(
        env={"a.py": b"print('before')\nraise SystemExit(3)", "b.py": b"1/0", "c.py": b""}
    )
    seen = trial.do("Execute Script", script_name="a.py")
    assert (seen.ok, seen.exit_status) == (False, 3)
    assert seen.text == "a.py failed with exit status 3. Its output:\nbefore\n"
    assert "ZeroDivisionError" in trial.do("Execute Script", script_name="b.py").text
    assert (
        trial.do("Execute Script", script_name="c.py").text
        == "c.py ran to its end. It printed nothing.\n"
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [("nowhere.py", "does not exist"), (".", "not a file"), ("../x.py", "leads out")],
)
def test_what_is_no_script_is_not_run(make_trial: MakeTrial, name: str, said: str) -> None:
    seen = make_trial().do("Execute Script", script_name=name)
    assert not seen.ok
    assert said in seen.text


def test_a_name_that_looks_like_an_option_is_a_file(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"-c": b"print('ran')"})
    assert "ran" in trial.do("Execute Script", script_name="-c").text


def test_a_script_is_stopped_when_the_time_is_over(make_trial: MakeTrial) -> None:
    trial = make_trial(
        env={"a.py": b"print('started')\nimport time\ntime.sleep(600)"},
        budget=Budget(max_seconds=600),
    )
    trial.clock.now = 599.8
    seen = trial.do("Execute Script", script_name="a.py")
    assert not seen.ok
    assert seen.exit_status is None
    assert seen.text.startswith(
        "a.py was stopped because the time of the trial is used up: the budget is over."
    )
    assert trial.steps()[0].killed_for == "timeout"


def test_long_output_is_cut_for_the_agent_and_kept_whole(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a.py": b"for k in range(40000): print(k)"})
    trial.do("List Files", dir_path=".")
    seen = trial.do("Execute Script", script_name="a.py")
    assert seen.ok
    assert len(seen.text) < SHOWN + 300
    assert "\n0\n1\n" in seen.text
    assert seen.text.endswith("39998\n39999\n")
    assert seen.output_file == "outputs/step-0002.txt"
    whole = "".join(f"{k}\n" for k in range(40000))
    assert (trial.dir.path / seen.output_file).read_text() == whole
    assert (
        f"characters left out; all {len(whole)} bytes are kept as outputs/step-0002.txt of the"
        " trial; Read Output shows any part: step_number 2, start_character 15001 ...]\n"
    ) in seen.text
    assert trial.steps()[1].output_bytes == len(whole)
    assert trial.steps()[1].output_file == "outputs/step-0002.txt"


BARS = r"""
import sys
for epoch in range(1, 11):
    for i in range(400):
        bar = f"{i / 4:5.1f}%|{'#' * (i // 14):30}| {i}/400 [00:01<00:02, 1234.5it/s]"
        _ = sys.stderr.write(f"\rEpoch {epoch}: {bar}")
    print("\n" + f"epoch {epoch}: \x1b[1maccuracy\x1b[0m {0.5 + epoch / 100:.2f}", flush=True)
"""


@pytest.mark.parametrize("name", ["Execute Script", "Python REPL"])
def test_progress_bars_do_not_hide_what_was_printed(make_trial: MakeTrial, name: str) -> None:
    trial = make_trial(env={"a.py": BARS.encode()})
    seen = trial.do(
        name, **({"script_name": "a.py"} if name == "Execute Script" else {"command": BARS})
    )
    lines = seen.text.split("\n")
    assert [line for line in lines if "accuracy" in line] == [
        f"epoch {n}: accuracy {0.5 + n / 100:.2f}" for n in range(1, 11)
    ]
    assert sum("399/400" in line for line in lines) == 10
    assert len(seen.text) < 2000
    raw = (trial.dir.path / seen.output_file).read_bytes()
    assert raw.count(b"\r") == 4000
    assert trial.steps()[0].output_bytes == len(raw) > 200_000


def test_bytes_that_are_no_text_are_shown_as_such(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a.py": b"import os; os.write(1, b'a\\xff\\x00b')"})
    assert trial.do("Execute Script", script_name="a.py").text.endswith("a\ufffdb")


def test_the_python_process_keeps_its_variables(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"mine.py": b"x = 5"})
    assert (
        trial.do("Python REPL", command="import mine\ny = mine.x * 2").text
        == "(nothing was printed)"
    )
    assert trial.do("Python REPL", command="print(y)").text.strip() == "10"
    failed = trial.do("Python REPL", command="1/0")
    assert not failed.ok
    assert "ZeroDivisionError" in failed.text
    assert trial.do("Python REPL", command="print(y + 1)").text.strip() == "11"


def test_long_output_of_the_python_process_is_kept_too(make_trial: MakeTrial) -> None:
    trial = make_trial()
    seen = trial.do("Python REPL", command="print('x' * 50000)")
    assert seen.output_file == "outputs/step-0001.txt"
    assert (trial.dir.path / seen.output_file).read_text().strip() == "x" * 50000
    assert len(seen.text) < SHOWN + 300


class FakeConnection:
    """Ends every execution as the test says."""

    python = "python3"

    def __init__(self, end: Execution) -> None:
        self.end = end
        self.timeouts: list[float | None] = []

    def locate(self, target: str) -> str:
        return target

    def execute(
        self,
        argv: Any,
        *,
        timeout: float | None = None,
        sink: Callable[[bytes], None] = lambda _: None,
        **_: Any,
    ) -> Execution:
        self.timeouts.append(timeout)
        sink(self.end.output)
        return self.end

    def repl(self, code: str, *, timeout: float | None = None, keep: int = 0) -> Execution:
        return self.execute([], timeout=timeout)

    def close(self) -> None:
        pass


def ended(
    killed_for: Any, *, signal: int | None = None, output: bytes = b"", total: int | None = None
) -> Execution:
    return Execution(None, output, len(output) if total is None else total, 1.0, killed_for, signal)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (
            b"OSError: [Errno 27] File too large",
            "A file cannot be larger than the 300 MiB that the workspace may have.",
        ),
        (b"MemoryError", "Its memory is limited to 100 MiB."),
    ],
)
def test_a_limit_that_a_script_met_by_itself_is_said(
    make_trial: MakeTrial, output: bytes, said: str
) -> None:
    resources = Resources(memory_mb=100, disk_mb=300)
    end = Execution(1, output, len(output), 1.0)
    trial = make_trial(env={"a.py": b""}, connection=FakeConnection(end), resources=resources)
    assert (
        f"a.py failed with exit status 1. {said} Its output:"
        in trial.do("Execute Script", script_name="a.py").text
    )


PIP = b"ERROR: No matching distribution found for x\n"
DNS = b"socket.gaierror: [Errno -3] Temporary failure in name resolution\n"


@pytest.mark.parametrize(
    ("output", "network", "said"), [(PIP, False, True), (DNS, False, True), (PIP, True, False)]
)
def test_a_try_to_reach_the_network_is_answered_in_words(
    make_trial: MakeTrial, output: bytes, network: bool, said: bool
) -> None:
    connection = FakeConnection(Execution(1, output, len(output), 1.0))
    trial = make_trial(env={"a.py": b""}, connection=connection, network=network)
    words = "The sandbox has no network: packages cannot be installed"
    for name, args in (
        ("Execute Script", {"script_name": "a.py"}),
        ("Python REPL", {"command": "1"}),
    ):
        seen = trial.do(name, **args).text
        assert (words in seen.partition("Its output:")[0]) is said
        assert seen.endswith(output.decode())
        connection.end = Execution(0, output, len(output), 1.0)
    assert (words in trial.do("Python REPL", command="1").text) is said


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (ended("memory"), "needed more than 100 MiB of memory"),
        (ended("pids"), "started more than 7 processes"),
        (ended("disk"), "grew beyond 300 MiB"),
        (ended("lost"), "the sandbox has been started again"),
        (ended("signal", signal=11), "ended by the signal 11 (SIGSEGV)"),
        (ended("signal", signal=999), "ended by the signal 999"),
        (ended("timeout", output=b"so far"), "the budget is over. Its output:\nso far"),
    ],
)
def test_every_way_to_end_has_a_sentence(make_trial: MakeTrial, end: Execution, said: str) -> None:
    resources = Resources(memory_mb=100, pids=7, disk_mb=300)
    trial = make_trial(env={"a.py": b""}, connection=FakeConnection(end), resources=resources)
    seen = trial.do("Execute Script", script_name="a.py")
    assert not seen.ok
    assert said in seen.text
    assert trial.steps()[0].killed_for == end.killed_for
    seen = trial.do("Python REPL", command="1")
    assert said.partition(" Its output")[0] in seen.text
    assert "its variables are lost" in seen.text
    assert not seen.ok


@pytest.mark.parametrize(("limit", "timeout"), [(60.0, 60.0), (float("inf"), None)])
def test_the_remaining_time_bounds_an_execution(
    make_trial: MakeTrial, limit: float, timeout: float | None
) -> None:
    connection = FakeConnection(Execution(0, b"", 0, 0.0))
    trial = make_trial(env={"a.py": b""}, connection=connection, budget=Budget(max_seconds=limit))
    trial.do("Execute Script", script_name="a.py")
    trial.do("Python REPL", command="1")
    assert connection.timeouts == [timeout, timeout]


def test_output_that_the_sandbox_cut_is_shown_as_cut(make_trial: MakeTrial) -> None:
    end = Execution(0, b"H" * 60_000 + b"T" * 60_000, 10**9, 1.0)
    seen = make_trial(connection=FakeConnection(end)).do("Python REPL", command="1")
    assert "H\n[... 9" in seen.text
    assert (
        "characters left out; outputs/step-0001.txt of the trial has the first and the last 512 KiB"
        " of it; Read Output"
    ) in seen.text
    assert seen.text.endswith("T")
    assert len(seen.text) < SHOWN + 300


@pytest.mark.parametrize(
    ("limit", "asked", "timeout"), [(60.0, 5.0, 5.0), (60.0, 90.0, 60.0), (float("inf"), 5.0, 5.0)]
)
def test_an_agent_may_bound_a_step(
    make_trial: MakeTrial, limit: float, asked: float, timeout: float
) -> None:
    connection = FakeConnection(ended("timeout", output=b"so far"))
    trial = make_trial(env={"a.py": b""}, connection=connection, budget=Budget(max_seconds=limit))
    seen = trial.env.execute(Action("Execute Script", {"script_name": "a.py"}), timeout=asked)
    assert (
        seen.text
        == f"a.py was stopped after the {asked:.0f} seconds that it may take. Its output:\nso far"
    )
    trial.do("Execute Script", script_name="a.py")
    assert connection.timeouts == [timeout, None if limit == float("inf") else limit]
