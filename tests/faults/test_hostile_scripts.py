"""Scripts that flood, bloat, sleep and multiply: an observation that says so, and a trial that goes
on."""

from __future__ import annotations

import pytest

from tests.faults.session import Said, Session, marked
from tests.support.toy_suite import REFERENCE

MARKER = "mlab-marked-27182818"

AGENT = """\
import resource

from pytest_mlab import Action

SCRIPT = {script!r}


class Agent:
    needs_model = False

    def run(self, env):
        env.execute(Action("Write File", {{"file_name": "hostile.py", "content": SCRIPT}}))
        env.execute(Action("Execute Script", {{"script_name": "hostile.py"}}))
        env.note("memory", {{"peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}})
        {clean}
        for action in env.script("reference"):
            env.execute(action)
"""

CLEAN = (
    'env.execute(Action("Python REPL", {"command": "import glob, os; [os.unlink(f) for f in'
    " glob.glob('big*')]\"}))"
)

PRINT = """\
import os
block = {line} * 10**4
for _ in range({times} // 10**4):
    rest = block
    while rest:
        rest = rest[os.write(1, rest) :]
"""

FORKS = f"""\
import os, sys, time
for _ in range(500):
    try:
        child = os.fork()
    except OSError as error:
        print("no more:", error)
        break
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", {MARKER!r}])
time.sleep(600)
"""

SLEEP = f"""\
import subprocess, sys, time
print("before", flush=True)
words = [sys.executable, "-c", "import time; time.sleep(600)", {MARKER!r}]
subprocess.Popen(words, start_new_session=True)
time.sleep(600)
"""

PEAK = """

def pytest_sessionfinish():
    import os
    from pathlib import Path

    # Not ru_maxrss, which a process takes over from the one that started it.
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    Path(f"peak-{os.getpid()}").write_text(peak)
"""

SCRIPTS = {
    "gigabyte": PRINT.format(line=b"x" * 99 + b"\n", times=10**7),
    "noline": PRINT.format(line=b"x" * 100, times=10**6),
    "binary": "import os, sys\nsys.stdout.buffer.write(bytes(range(256)) * 99)\n",
    "escapes": "print('\\x1b[2J\\x1b]0;title\\x07\\x00 after')\n",
    "forking": FORKS,
    "filling": "for i in range(999):\n    open(f'big{i}', 'wb').write(b'x' * 10**7)\n",
    "onefile": (
        "with open('big', 'wb') as file:\n    while True:\n        file.write(b'x' * 10**6)\n"
    ),
    "hungry": "keep = []\nwhile True:\n    keep.append(bytearray(10**7))\n",
    "killer": "import os, signal\nos.kill(-1, signal.SIGKILL)\n",
}

SEEN = {
    "gigabyte": [
        "hostile.py ran to its end.",
        "characters left out",
        "of 1000000000 bytes are kept as outputs/step-0002.txt",
    ],
    "noline": ["hostile.py ran to its end.", "characters left out", "of 100000000 bytes are kept"],
    "binary": ["hostile.py ran to its end.", "\ufffd"],
    "escapes": ["hostile.py ran to its end.", "after"],
    "forking": ["hostile.py was stopped because it started more than 64 processes and threads."],
    "filling": ["hostile.py was stopped because the workspace grew beyond 64 MiB; delete files."],
    "onefile": ["hostile.py", "64 MiB"],
    "hungry": [
        "hostile.py failed with exit status 1. Its memory is limited to 512 MiB.",
        "MemoryError",
    ],
    "killer": ["hostile.py failed with exit status 1.", "ProcessLookupError"],
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    found = Session(tmp_path_factory.mktemp("project"))
    (found.path / "conftest.py").write_text(PEAK)
    for name, script in SCRIPTS.items():
        found.agent(name, AGENT.format(script=script, clean=CLEAN))
    found.agent("sleeping", AGENT.format(script=SLEEP, clean="pass"))
    toml = found.path / "task_suites" / "toy" / "guess" / "task.toml"
    toml.write_text(toml.read_text().replace("memory_mb = 1024", "memory_mb = 512"))
    return found


@pytest.fixture(scope="module")
def said(session: Session) -> Said:
    return session.pytest("-n", "2", *(f"--mlab-agent={name}" for name in SCRIPTS))


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_trial_goes_on(session: Session, said: Said, script: str) -> None:
    assert said.ret == 0, said.out
    result = session.result(f"guess/{script}/1")
    assert (result["outcome"], result["score"]) == ("success", REFERENCE), result["reason"]
    seen = session.observations(f"guess/{script}/1")[1]
    for words in SEEN[script]:
        assert words in seen
    assert len(seen) < 35_000


def test_nothing_stays(session: Session, said: Said) -> None:
    assert said.ret == 0
    assert marked(MARKER) == []
    assert not list((session.path / "cache" / "workspaces").iterdir())


def test_memory_is_bounded(session: Session, said: Said) -> None:
    assert said.ret == 0
    from pytest_mlab.store.events import Note
    from pytest_mlab.store.journal import read_events

    peaks = {}
    for script in SCRIPTS:
        events = read_events(session.trial(f"guess/{script}/1") / "trace.jsonl")
        peaks[script] = next(
            e.data["peak_kib"] for e in events if isinstance(e, Note) and e.kind == "memory"
        )
    assert max(peaks.values()) < peaks["escapes"] + 64 * 1024, peaks
    workers = [int(path.read_text()) for path in session.path.glob("peak-*")]
    assert len(workers) == 3
    assert max(workers) < 250 * 1024, workers


@pytest.mark.parametrize("script", ["gigabyte", "binary", "escapes"])
def test_shown(session: Session, said: Said, script: str) -> None:
    assert said.ret == 0
    shown = session.mlab("show", session.name, f"guess-{script}-1")
    assert shown.ret == 0, shown.err
    assert len(shown.out) < 20_000
    assert [c for c in shown.out if not (c.isprintable() or c == "\n")] == []


def test_sleeping_past_the_budget(session: Session) -> None:
    here = Session.__new__(Session)
    here.root, here.name, here.patience = session.root, "late", session.patience
    said = here.pytest("--mlab-agent=sleeping", "--mlab-max-time=2s")
    assert said.ret == pytest.ExitCode.TESTS_FAILED
    result = here.result("guess/sleeping/1")
    assert (result["outcome"], result["ended_by"]) == ("no_submission", "seconds")
    seen = here.observations("guess/sleeping/1")[1]
    assert "stopped because the time of the trial is used up" in seen
    assert "before" in seen
    assert "used 2 of 50 steps, 2s of 2s" in said.out
    assert marked(MARKER) == []
