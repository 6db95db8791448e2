from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.lib import processes
from pytest_mlab.trial.process.watch import Ending, ServerLost, Watch

TARGETS = "tests.support.trial_targets"
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def shared() -> Iterator[Watch]:
    """A watch for tests that leave its server alive."""
    with Watch(environ={"PATH": os.environ["PATH"]}) as watch:
        yield watch


@pytest.fixture
def watch() -> Iterator[Watch]:
    with Watch(environ={"PATH": os.environ["PATH"]}) as watch:
        yield watch


def run(watch: Watch, tmp_path: Path, function: str, **payload: Any) -> Ending:
    seconds = payload.pop("seconds", 60.0)
    on_start = payload.pop("on_start", None)
    return watch.run(
        f"{TARGETS}:{function}",
        {"note": str(tmp_path / "pids"), **payload},
        log=tmp_path / "agent.log",
        seconds=seconds,
        on_start=on_start,
    )


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if processes.start_time(pid)]


def noted(tmp_path: Path, count: int = 1) -> list[int]:
    """The process ids that a target wrote, once there are ``count``."""
    path = tmp_path / "pids"
    until = time.monotonic() + 30
    while time.monotonic() < until:
        pids = [int(word) for word in path.read_text().split()] if path.exists() else []
        if len(pids) >= count:
            return pids
        time.sleep(0.002)
    raise AssertionError(f"{path} never held {count} process ids")


def gone(pids: list[int]) -> bool:
    """True once none of ``pids`` is alive (waits for what was killed elsewhere)."""
    until = time.monotonic() + 30
    while alive(pids) and time.monotonic() < until:
        time.sleep(0.002)
    return not alive(pids)


# --- how processes end ---


@pytest.mark.parametrize(
    ("function", "payload", "how", "status"),
    [
        ("prints", {}, "exited", 0),
        ("raises", {}, "exited", 70),
        ("exits", {"status": 3}, "exited", 3),
        ("system_exit", {"status": 4}, "exited", 4),
        ("aborts", {}, "signalled", signal.SIGSEGV),
    ],
)
def test_ending(
    shared: Watch, tmp_path: Path, function: str, payload: dict[str, Any], how: str, status: int
) -> None:
    ending = run(shared, tmp_path, function, **payload)
    assert (ending.how, ending.status) == (how, status)
    assert ending.clean is (function == "prints")


def test_endings_in_words() -> None:
    assert str(Ending("exited", 3)) == "exited with status 3"
    assert str(Ending("signalled", 9)) == "died of SIGKILL"
    assert str(Ending("signalled", 99)) == "died of signal 99"
    assert str(Ending("deadline")) == "was killed at its deadline"
    assert str(Ending("server_lost")) == "was lost with its fork server"


def test_output_and_traceback_are_kept(shared: Watch, tmp_path: Path) -> None:
    run(shared, tmp_path, "prints")
    run(shared, tmp_path, "raises")
    text = (tmp_path / "agent.log").read_text()
    assert text.startswith("to stdout")
    assert "to stderr" in text
    assert "RuntimeError: broken on purpose" in text


def test_crash_leaves_a_python_traceback(shared: Watch, tmp_path: Path) -> None:
    run(shared, tmp_path, "aborts")
    assert "in aborts" in (tmp_path / "agent.log").read_text()


def test_log_that_cannot_be_opened(shared: Watch, tmp_path: Path) -> None:
    ending = shared.run(f"{TARGETS}:prints", {}, log=tmp_path / "missing" / "agent.log", seconds=60)
    assert (ending.how, ending.status) == ("exited", 70)


def test_one_server_many_processes(shared: Watch, tmp_path: Path) -> None:
    pids: list[int] = []
    for _ in range(3):
        run(shared, tmp_path, "prints", on_start=pids.append)
        server = shared.server_pid
    assert len(set(pids)) == 3
    assert shared.server_pid == server
    assert server not in pids


# --- what the process is given ---


def test_process_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "this one")
    out = tmp_path / "facts.json"
    with Watch(environ={"PATH": "/bin", "MLAB_X": "1"}, preload=["fractions"]) as watch:
        ending = run(
            watch, tmp_path, "facts", out=str(out), module="fractions", nested={"a": [1, None]}
        )
        server = watch.server_pid
    facts = json.loads(out.read_text())
    assert ending.clean
    assert facts["pid"] == facts["session"] == facts["group"] != os.getpid()
    assert facts["parent"] == server
    assert set(facts["environ"]) - {"LC_CTYPE"} == {"PATH", "MLAB_X", processes.MARK}
    assert facts["stdin"] == ""
    assert facts["int"]
    assert facts["chld"]
    assert facts["preloaded"]
    assert facts["sockets"] == []
    assert facts["payload"]["nested"] == {"a": [1, None]}


def test_server_has_one_thread(shared: Watch, tmp_path: Path) -> None:
    run(shared, tmp_path, "prints")
    assert shared.threads == ()


def test_threads_of_a_preload_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "busy_module.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, name='helper',"
        " daemon=True).start()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with Watch(environ={}, preload=["busy_module"]) as watch:
        assert run(watch, tmp_path, "prints").clean
        assert watch.threads == ("helper",)
    assert "DeprecationWarning" not in (tmp_path / "agent.log").read_text()


def test_missing_preload_is_reported_and_harmless(tmp_path: Path) -> None:
    with Watch(environ={}, preload=["no_such_module"]) as watch:
        assert run(watch, tmp_path, "prints").clean
        assert watch.failed == {
            "no_such_module": "ModuleNotFoundError: No module named 'no_such_module'"
        }


def test_preload_that_raises_is_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_module.py").write_text("raise ValueError('at import')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with (
        Watch(environ={}, preload=["broken_module"]) as watch,
        pytest.raises(ServerLost, match="ValueError: at import"),
    ):
        run(watch, tmp_path, "prints")


# --- nothing survives ---


@pytest.mark.parametrize("function", ["hangs", "catches_all"])
def test_deadline_kills(watch: Watch, tmp_path: Path, function: str) -> None:
    ending = run(watch, tmp_path, function, seconds=0.3)
    assert ending.how == "deadline"
    assert gone(noted(tmp_path))
    assert run(watch, tmp_path, "prints").clean


def test_deadline_is_by_the_injected_clock(tmp_path: Path) -> None:
    times = iter([100.0, 100.0, 3_699.99])  # begin, a look, what is left
    with Watch(environ={}, clock=lambda: next(times, 10_000.0)) as watch:
        ending = run(watch, tmp_path, "catches_all", seconds=3600.0)
    assert ending.how == "deadline"
    assert ending.seconds == 9_900.0


def test_daemon_left_behind_is_killed(shared: Watch, tmp_path: Path) -> None:
    ending = run(shared, tmp_path, "daemonizes")
    assert ending.clean
    assert ending.leftovers == 1
    assert alive(noted(tmp_path)) == []


def test_daemon_of_a_process_past_its_deadline(shared: Watch, tmp_path: Path) -> None:
    ending = run(shared, tmp_path, "daemonizes", hang=True, seconds=0.5)
    assert ending.how == "deadline"
    assert alive(noted(tmp_path, 2)) == []


def test_fork_bomb(shared: Watch, tmp_path: Path) -> None:
    ending = run(shared, tmp_path, "bombs")
    assert ending.clean
    assert ending.leftovers >= 45
    pids = noted(tmp_path, 50)
    assert alive(pids) == []
    assert run(shared, tmp_path, "prints").clean


def test_interrupt_kills_and_passes(watch: Watch, tmp_path: Path) -> None:
    def interrupt(_: int) -> None:
        noted(tmp_path, 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(watch, tmp_path, "daemonizes", hang=True, on_start=interrupt)
    assert alive(noted(tmp_path, 2)) == []
    assert watch.server_pid is None
    assert run(watch, tmp_path, "prints").clean


def test_killed_server_takes_all_with_it_and_is_replaced(watch: Watch, tmp_path: Path) -> None:
    def shoot(_: int) -> None:
        noted(tmp_path, 2)
        assert watch.server_pid is not None
        os.kill(watch.server_pid, signal.SIGKILL)

    ending = run(watch, tmp_path, "daemonizes", hang=True, on_start=shoot)
    assert ending.how == "server_lost"
    assert alive(noted(tmp_path, 2)) == []
    assert run(watch, tmp_path, "prints").clean


def test_server_killed_between_two_processes(watch: Watch, tmp_path: Path) -> None:
    run(watch, tmp_path, "prints")
    assert watch.server_pid is not None
    os.kill(watch.server_pid, signal.SIGKILL)
    endings = [run(watch, tmp_path, "prints") for _ in range(2)]
    assert endings[-1].clean


def test_stopped_server_is_given_up(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def freeze(_: int) -> None:
        noted(tmp_path, 2)
        for name in ("_ANSWER_SECONDS", "_EXIT_SECONDS"):
            monkeypatch.setattr(f"pytest_mlab.trial.process.watch.{name}", 0.2)
        assert watch.server_pid is not None
        os.kill(watch.server_pid, signal.SIGSTOP)

    ending = run(watch, tmp_path, "daemonizes", hang=True, on_start=freeze, seconds=0.1)
    assert ending.how == "server_lost"
    assert alive(noted(tmp_path, 2)) == []


def test_close_kills_and_may_be_repeated(watch: Watch, tmp_path: Path) -> None:
    run(watch, tmp_path, "prints")
    server = watch.server_pid
    assert server is not None
    watch.close()
    assert alive([server]) == []
    watch.close()
    assert run(watch, tmp_path, "prints").clean


WORKER = """
    import os, pathlib, signal, sys
    from pytest_mlab.trial.process.watch import Watch

    watch = Watch(environ={"PATH": os.environ["PATH"]})
    def tell(pid):
        print(watch.server_pid, pid, flush=True)
    watch.run("tests.support.trial_targets:daemonizes", {"note": sys.argv[1], "hang": True},
              log=pathlib.Path(sys.argv[2]), on_start=tell)
"""


def start_worker(tmp_path: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """A worker in the middle of a trial, and the process ids of its server, the trial and the
    trial's daemon."""
    worker = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(WORKER),
            str(tmp_path / "pids"),
            str(tmp_path / "log"),
        ],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert worker.stdout is not None
    assert select.select([worker.stdout], [], [], 30)[0]
    server, trial = (int(word) for word in worker.stdout.readline().split())
    return worker, sorted({server, trial, *noted(tmp_path, 2)})


def test_killed_worker_leaves_nothing(tmp_path: Path) -> None:
    worker, pids = start_worker(tmp_path)
    with worker:
        assert len(pids) == 3
        worker.kill()
        worker.wait()
        assert gone(pids)


def test_worker_killed_together_with_its_server_leaves_orphans_to_the_next(
    watch: Watch, tmp_path: Path
) -> None:
    worker, pids = start_worker(tmp_path)
    with worker:
        children = processes.descendants(worker.pid)
        assert set(pids) <= set(children)
        server = children[0]
        os.kill(server, signal.SIGSTOP)  # so that it cannot tidy up in between
        worker.kill()
        worker.wait()
        os.kill(server, signal.SIGKILL)
        daemon = [pid for pid in pids if pid in processes.orphans()]
        assert daemon
        run(watch, tmp_path, "prints")
        assert gone(pids)
