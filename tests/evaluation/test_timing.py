"""Speed comparisons: the clock is the evaluator's, and nothing that the timed code does gets at it.

Ratios are asserted with a factor of several to spare: slow code counts to five million, fast code
does not."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_mlab.evaluation import (
    InvalidSubmission,
    Round,
    Worker,
    WorkerError,
    compare_speed,
    run_code,
)
from pytest_mlab.evaluation.timing import Comparison

DRIVER = """
import code_to_time
def load(folder):
    return code_to_time
def call(module, settings, arrays):
    return module.work(arrays[0], **settings)
"""
FAST = "def work(x, times=1):\n    return x * times\n"
SLOW = "def work(x, times=1):\n    sum(range(5_000_000))\n    return x * times\n"

Compare = Callable[..., Comparison]


def difference(expected: Any, found: Any) -> str:
    return "" if np.array_equal(expected, found) else f"{found} instead of {expected}"


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str, str], Path]:
    def make(name: str, code: str) -> Path:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "code_to_time.py").write_text(textwrap.dedent(code))
        return tmp_path / name

    (tmp_path / "driver.py").write_text(DRIVER)
    return make


@pytest.fixture
def compare(folder: Callable[[str, str], Path], tmp_path: Path) -> Compare:
    def run(
        submission: str, *, starter: str = FAST, rounds: int = 3, timeout: float = 60.0
    ) -> Comparison:
        rng = np.random.default_rng()
        work = [Round({"times": n}, [rng.standard_normal(4)]) for n in range(rounds + 1)]
        return compare_speed(
            tmp_path / "driver.py",
            starter=folder("starter", starter),
            submission=folder("submission", submission),
            checks=work[:1],
            rounds=work[1:],
            same=difference,
            timeout=timeout,
        )

    return run


def test_median_of_paired_ratios() -> None:
    comparison = Comparison(starter=(1.0, 2.0, 4.0), submission=(0.5, 2.0, 1.0))
    assert comparison.ratios == (0.5, 1.0, 0.25)
    assert comparison.ratio == 0.5


def test_faster_code_has_a_small_ratio(compare: Compare) -> None:
    comparison = compare(FAST, starter=SLOW)
    assert len(comparison.ratios) == 3
    assert comparison.ratio < 0.5


def test_each_comes_first_in_every_other_round(compare: Compare, tmp_path: Path) -> None:
    log = 'with open("../order", "a") as file:\n        file.write("{}")\n    return x'
    compare(
        FAST.replace("return x", log.format("b")),
        starter=FAST.replace("return x", log.format("a")),
        rounds=4,
    )
    assert (tmp_path / "order").read_text() == "abbaabbaab"


def test_both_are_told_to_use_one_thread(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    code = (
        "import os\ndef work(x, times=1):\n    assert os.environ['OMP_NUM_THREADS'] == '1'\n   "
        " return x * times\n"
    )
    assert len(compare(code, starter=code).ratios) == 3


TRICKS = """
import time
clocks = "time perf_counter monotonic process_time perf_counter_ns monotonic_ns"
for name in clocks.split():
    setattr(time, name, lambda: 0)
open("submission.csv", "w").write("0.0001\\n")
print("0.0001", flush=True)
"""


def test_tricks_with_the_clock_do_not_help(compare: Compare) -> None:
    """Its own clock stands still, it writes a time into a file, it prints one."""
    assert compare(TRICKS + SLOW, starter=SLOW).ratio > 0.3


def test_results_kept_by_input_do_not_help(compare: Compare) -> None:
    cache = """
    kept = {}
    def work(x, times=1):
        if x.tobytes() not in kept:
            sum(range(5_000_000))
            kept[x.tobytes()] = x
        return kept[x.tobytes()] * times
    """
    assert compare(cache, starter=SLOW).ratio > 0.3


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "import os; os._exit(3)",
            "the submitted code ended with exit status 3 (with times 0, input of shape (4,))",
        ),
        ("import os; os.kill(os.getpid(), 9)", "the submitted code died of signal 9"),
        (
            "1 / 0",
            "the submitted code raised ZeroDivisionError: division by zero (code_to_time.py:3)",
        ),
        ("raise SystemExit(0)", "the submitted code raised SystemExit: 0"),
        (
            "raise ValueError('a\\nb\\u2013' * 5000)",
            "the submitted code raised ValueError: a b\\u2013a b\\u2013",
        ),
        ("while True: pass", "the submitted code gave no answer within 4 s"),
        ("return None", "raised ValueError: Object arrays cannot be saved"),
        ("import os; os.write(4, b'x' * 99)", "pipe of its answers"),
        ("import os; os.write(4, bytes(8))", "pipe of its answers"),
        ("import os; os.write(4, (1 << 40).to_bytes(8, 'big'))", "pipe of its answers"),
        (
            "import os; os.write(4, bytes(7) + b'\\x05' + b'+junk'); import time; time.sleep(60)",
            "answered with no array: ",
        ),
        (
            "import os; os.write(4, bytes(7) + b'\\x05' + b'+junk' * 9)",
            "wrote more than one answer",
        ),
        ("import os; os.close(4); import time; time.sleep(60)", "closed the pipe of its answers"),
    ],
)
def test_what_code_does_wrong_is_told(
    folder: Callable[[str, str], Path], tmp_path: Path, body: str, reason: str
) -> None:
    """The same for code that is timed and code that is not."""
    code = f"def work(x, times=1):\n    # fails\n    {body}\n    return x * times\n"
    work = [Round({"times": 0}, [np.zeros(4)])]
    timeout = 4.0 if body == "while True: pass" else 60.0
    with pytest.raises(InvalidSubmission) as caught:
        run_code(tmp_path / "driver.py", folder("submission", code), work, timeout=timeout)
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return x + 1", "wrong output with times 0, input of shape (4,): ["),
        ("return x[:2]", "wrong output with times 0"),
        ("return 'text'", "wrong output with times 0"),
        ("1 / 0", "the submitted code raised ZeroDivisionError: division by zero"),
    ],
)
def test_what_timed_code_does_wrong_is_told(compare: Compare, body: str, reason: str) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        compare(f"def work(x, times=1):\n    {body}\n    return x * times\n")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "1 / 0",
            "cannot be loaded: it raised ZeroDivisionError: division by zero (code_to_time.py:1)",
        ),
        ("def work(:", "cannot be loaded: it raised SyntaxError: invalid syntax"),
        ("raise SystemExit", "cannot be loaded: it raised SystemExit"),
        ("import os; os._exit(0)", "cannot be loaded: it ended with exit status 0"),
        (
            "import os; os.write(2, b'last words\\n'); os.abort()",
            "cannot be loaded: it died of signal 6: last words",
        ),
        ("other = 1", "raised AttributeError: module 'code_to_time' has no attribute 'work'"),
    ],
)
def test_code_that_cannot_be_loaded(compare: Compare, code: str, reason: str) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        compare(code)
    assert reason in str(caught.value)


def test_what_is_harmless(compare: Compare, folder: Callable[[str, str], Path]) -> None:
    """Printing, reading stdin, a file called numpy, processes that end with the call."""
    (folder("submission", FAST) / "numpy.py").write_text("raise SystemExit('shadowed')")
    chatty = (
        "import numpy, subprocess, sys\nprint('x' * 100_000, sys.stdin.read())\n"
        + FAST.replace("return", "print('hm'); subprocess.run(['true']); return")
    )
    assert len(compare(chatty).ratios) == 3


def test_a_failing_starter_is_not_the_submissions_fault(compare: Compare) -> None:
    with pytest.raises(WorkerError, match="raised ZeroDivisionError"):
        compare(FAST, starter="def work(x, times=1):\n    return x / (times // 9) + 1 // 0\n")


def state_of(pid: int) -> str:
    """The kernel's letter for a process: R, S, T (stopped), Z; '' when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def reaches(pid: int, states: set[str]) -> bool:
    """True as soon as the process is in one of ``states``; False after a minute."""
    deadline = time.monotonic() + 60
    while state_of(pid) not in states:
        if time.monotonic() > deadline:
            return False
        os.sched_yield()
    return True


def test_a_worker_leaves_no_process_and_no_file(
    folder: Callable[[str, str], Path], tmp_path: Path
) -> None:
    forking = "import os\npid = os.fork()\nif not pid:\n    import signal\n    signal.pause()\n"
    place = folder("code", forking + "def work(x, times=1):\n    return x * 0 + pid\n")
    with Worker(tmp_path / "driver.py", place) as worker:
        output, seconds = worker.call({"times": 3}, [np.zeros(1)], timeout=60)
        child = int(output[0])
        assert state_of(child) not in ("", "Z")
        assert seconds > 0
        with worker.paused():
            assert reaches(worker.pid, {"T"})
            assert reaches(child, {"T"})
        assert worker.call({}, [np.zeros(1)], timeout=60)[0] == output
    assert state_of(worker.pid) == ""
    assert reaches(child, {"", "Z"})
    assert sorted(path.name for path in place.iterdir()) == ["code_to_time.py"]


def test_the_submission_is_stopped_while_the_starter_runs(compare: Compare) -> None:
    starter = """
    import os, time
    def work(x, times=1):
        pid = open("../submission/pid").read()
        deadline = time.monotonic() + 50
        while open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "T":
            assert time.monotonic() < deadline, "the submission runs"
            os.sched_yield()
        return x * times
    """
    submission = 'import os\nwith open("pid", "w") as file:\n    file.write(str(os.getpid()))\n'
    assert len(compare(submission + FAST, starter=starter).ratios) == 3


def test_large_arrays_travel_both_ways(folder: Callable[[str, str], Path], tmp_path: Path) -> None:
    with Worker(tmp_path / "driver.py", folder("code", FAST), max_output_mb=9) as worker:
        big = np.arange(1_000_000.0)
        output, _ = worker.call({"times": 2}, [big], timeout=60)
        assert np.array_equal(output, big * 2)
        with pytest.raises(WorkerError, match="pipe of its answers"):
            worker.call({}, [np.zeros(2_000_000)], timeout=60)


@pytest.mark.parametrize("detach", ["", "os.setsid(); os.fork() and os._exit(0)"])
def test_processes_left_behind_are_found_and_ended(
    compare: Compare, tmp_path: Path, detach: str
) -> None:
    code = f"""
import os, signal
def work(x, times=1):
    if not os.path.exists("pid") and not os.fork():
        {detach or "pass"}
        with open("pid.part", "w") as file:
            file.write(str(os.getpid()))
        os.rename("pid.part", "pid")
        while True:
            signal.pause()
    while not os.path.exists("pid"):
        os.sched_yield()
    return x * times
"""
    with pytest.raises(InvalidSubmission, match="leaves processes running between calls"):
        compare(code)
    pid = int((tmp_path / "submission" / "pid").read_text())
    assert state_of(pid) in ("", "Z")
