"""The conformance suite of sandboxes: what every backend must do, whoever wrote it.

    class TestMySandbox(SandboxConformance):
        @pytest.fixture(scope="class")
        @classmethod
        def sandbox(cls):
            return MySandbox()

Tests about isolation are skipped for backends whose ``isolated`` is False. That a process is gone
is seen by a file lock of the workspace which the process and all its children hold: the kernel
frees it with the last of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import socketserver
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.sandbox_api import Connection, Execution, Mount, Sandbox, SandboxSpec
from pytest_mlab.core.task import Resources
from pytest_mlab.errors import SandboxError

PATIENCE = 60.0
"""Seconds after which something that should have happened is taken to never happen."""

HOLD = (
    "import fcntl, os, signal, sys, time; held = open('held', 'w'); fcntl.flock(held,"
    " fcntl.LOCK_SH)\n"
)
"""Code that makes its process, and all that it forks, hold the lock of :func:`is_free`."""

Opener = Callable[..., Connection]


def run(connection: Connection, code: str, *, timeout: float | None = PATIENCE) -> Execution:
    """Run Python code as a script."""
    return connection.execute([connection.python, "-c", code], timeout=timeout)


def text(execution: Execution) -> str:
    """The output, stripped."""
    return execution.output.decode().strip()


def answer(connection: Connection, code: str) -> str:
    """The output of Python code that runs as a script, stripped."""
    return text(run(connection, code))


def void(_: object) -> None:
    """Nothing, whatever it is given."""


def is_free(workspace: Path) -> bool:
    """Whether no process holds the workspace's lock any more. Raises FileNotFoundError when none
    ever did."""
    with open(workspace / "held", "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true in time, for ends that another process brings about."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def resident_mb() -> float:
    """This process's memory, in MiB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def new_spec(
    workspace: Path,
    *,
    mounts: Sequence[Mount] = (),
    env: Mapping[str, str] | None = None,
    relay: Path | None = None,
    **limits: int,
) -> SandboxSpec:
    """A sandbox's spec with a label of its own; ``limits`` are fields of Resources."""
    resources = Resources(**{"memory_mb": 1024, "disk_mb": 512, **limits})
    label = f"conformance-{uuid.uuid4().hex}"
    return SandboxSpec(workspace, label, tuple(mounts), resources, env=env or {}, relay=relay)


@contextlib.contextmanager
def echo(path: Path) -> Iterator[None]:
    """A server on a Unix socket that gives back what it gets, in capitals, and then ends the
    connection."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while data := self.request.recv(1 << 16):
                self.wfile.write(data.upper())

    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        server.daemon_threads = True
        path.chmod(0o666)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


ASK = """
import socket, threading
def say(server, data):
    try: server.sendall(data); server.shutdown(socket.SHUT_WR)
    except OSError: pass
def ask(port, data):
    with socket.create_connection(('127.0.0.1', port), timeout=60) as server:
        threading.Thread(target=say, args=(server, data)).start()
        return b''.join(iter(lambda: server.recv(1 << 16), b''))
"""
"""What a program inside says to the relay."""


class SandboxConformance:
    """Subclass it and add a class-scoped fixture ``sandbox`` that returns the backend under
    test."""

    output_mb = 200

    @pytest.fixture(scope="class")
    @classmethod
    def workspace(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """The workspace of ``connection``."""
        return tmp_path_factory.mktemp("workspace")

    @pytest.fixture(scope="class")
    @classmethod
    def connection(cls, sandbox: Sandbox, workspace: Path) -> Iterator[Connection]:
        """An open sandbox that the tests of a class share."""
        connection = sandbox.open(new_spec(workspace))
        yield connection
        connection.close()

    @pytest.fixture
    def opened(self, sandbox: Sandbox, tmp_path: Path) -> Iterator[Opener]:
        """Opens sandboxes of a test's own on ``tmp_path / 'workspace'``, with the keywords of
        :func:`new_spec`."""
        connections: list[Connection] = []
        workspace = tmp_path / "workspace"
        workspace.mkdir()

        def opened(**settings: Any) -> Connection:
            connections.append(sandbox.open(new_spec(workspace, **settings)))
            return connections[-1]

        yield opened
        for connection in connections:
            connection.close()

    @pytest.fixture
    def folder(self) -> Iterator[Path]:
        """A folder for sockets, whose paths have to be short, also where TMPDIR is long."""
        with tempfile.TemporaryDirectory(prefix="mlab-", dir="/tmp") as name:
            yield Path(name)

    # --- what a command gets and gives ---

    def test_check_passes(self, sandbox: Sandbox) -> None:
        assert sandbox.check() == ""

    def test_output_and_exit_status(self, connection: Connection) -> None:
        done = run(
            connection, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"
        )
        assert (done.exit_status, done.killed_for, done.signal) == (7, "", None)
        assert done.output == b"out\nerr\n"
        assert done.output_bytes == 8

    def test_works_in_the_workspace(self, connection: Connection, workspace: Path) -> None:
        (workspace / "in.txt").write_text("from the harness")
        done = run(connection, "open('out.txt', 'w').write(open('in.txt').read() + ', seen')")
        assert done.exit_status == 0, text(done)
        assert (workspace / "out.txt").read_text() == "from the harness, seen"

    def test_overwrites_what_the_harness_wrote(
        self, connection: Connection, workspace: Path
    ) -> None:
        (workspace / "script.py").write_text("old")
        (workspace / "script.py").chmod(0o600)
        done = run(connection, "open('script.py', 'a').write(', new')")
        assert done.exit_status == 0, text(done)
        assert (workspace / "script.py").read_text() == "old, new"

    def test_locate_names_the_workspace(self, connection: Connection) -> None:
        done = run(connection, "import os; print(os.getcwd())")
        assert text(done) == connection.locate(".")
        assert connection.locate("a/b") == f"{connection.locate('.')}/a/b"

    def test_standard_input(self, connection: Connection) -> None:
        done = connection.execute(
            [connection.python, "-c", "print(len(input()), input())"], stdin=b"a" * 300_000 + b"\nb"
        )
        assert text(done) == "300000 b"

    def test_standard_input_is_empty_by_default(self, connection: Connection) -> None:
        assert answer(connection, "import sys; print(repr(sys.stdin.read()))") == "''"

    def test_standard_input_that_nobody_reads(self, connection: Connection) -> None:
        assert connection.execute(["true"], stdin=b"x" * 300_000, timeout=PATIENCE).exit_status == 0

    def test_utf8_and_binary_output(self, connection: Connection) -> None:
        everything = bytes(range(256)) + "naïve Ω 😀".encode()
        done = run(connection, f"import sys; sys.stdout.buffer.write({everything!r})")
        assert done.output == everything

    def test_utf8_arguments(self, connection: Connection) -> None:
        done = connection.execute(
            [connection.python, "-c", "import sys; print(sys.argv[1])", "Ω 😀"]
        )
        assert text(done) == "Ω 😀"

    def test_variables_of_one_command(self, connection: Connection) -> None:
        code = "import os; print(os.environ.get('ONLY_HERE'), 'HOME' in os.environ)"
        done = connection.execute([connection.python, "-c", code], env={"ONLY_HERE": "yes"})
        assert text(done) == "yes True"
        assert answer(connection, code) == "None True"

    def test_unknown_program(self, connection: Connection) -> None:
        done = connection.execute(["no-such-program"])
        assert (done.exit_status, done.killed_for) == (127, "")
        assert "no-such-program" in text(done)

    def test_death_by_a_signal(self, connection: Connection) -> None:
        done = run(connection, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
        assert (done.exit_status, done.killed_for, done.signal) == (None, "signal", signal.SIGSEGV)

    def test_sink_gets_output_as_it_comes(self, connection: Connection, workspace: Path) -> None:
        def go_on(data: bytes) -> None:
            pieces.append(data)
            (workspace / "go").touch()

        pieces: list[bytes] = []
        code = (
            "import os, time\nprint('waiting')\nwhile not os.path.exists('go'):"
            " time.sleep(0.001)\nprint('went')"
        )
        done = connection.execute([connection.python, "-c", code], timeout=PATIENCE, sink=go_on)
        assert done.exit_status == 0
        assert b"".join(pieces) == done.output == b"waiting\nwent\n"

    def test_much_output_in_bounded_memory(self, connection: Connection) -> None:
        size, keep = self.output_mb << 20, 1000
        code = (
            f"import sys\nsys.stdout.buffer.write(b'first')\nfor _ in range({self.output_mb}):\n"
            "    sys.stdout.buffer.write(bytes(1 << 20))\nsys.stdout.buffer.write(b'last')"
        )
        before, most, seen = resident_mb(), 0.0, 0

        def sink(data: bytes) -> None:
            nonlocal most, seen
            seen += len(data)
            if seen % (8 << 20) < len(data):
                most = max(most, resident_mb())

        done = connection.execute(
            [connection.python, "-c", code], timeout=4 * PATIENCE, keep=keep, sink=sink
        )
        assert done.exit_status == 0
        assert done.output_bytes == seen == size + 9
        assert done.output == b"first" + bytes(keep - 9) + b"last"
        assert most - before < 48

    def test_a_sink_that_raises_leaves_a_usable_sandbox(self, opened: Opener) -> None:
        def sink(data: bytes) -> None:
            raise ValueError("the disk is full")

        connection = opened()
        with pytest.raises(ValueError, match="the disk is full"):
            connection.execute(
                [connection.python, "-c", "while True: print('x' * 1000)"],
                timeout=PATIENCE,
                sink=sink,
            )
        assert answer(connection, "print('on')") == "on"

    # --- ends ---

    def test_timeout_keeps_partial_output(self, connection: Connection, workspace: Path) -> None:
        """Also of a command that has closed its output but still runs."""
        code = HOLD + "print('begun', flush=True); os.close(1); os.close(2); time.sleep(600)"
        done = run(connection, code, timeout=1.0)
        assert (done.exit_status, done.killed_for, done.signal) == (None, "timeout", None)
        assert done.output == b"begun\n"
        assert is_free(workspace)

    def test_timeout_kills_a_tree_that_forks_and_ignores_sigterm(
        self, connection: Connection, workspace: Path
    ) -> None:
        code = (
            HOLD + "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP,"
            " signal.SIG_IGN)\nfor _ in range(4): os.fork()\nprint('x', end='',"
            " flush=True)\ntime.sleep(600)"
        )
        done = run(connection, code, timeout=1.5)
        assert done.killed_for == "timeout"
        assert len(done.output) > 1
        assert is_free(workspace)

    def test_timeout_kills_a_tree_that_never_stops_forking(
        self, opened: Opener, tmp_path: Path
    ) -> None:
        connection = opened(pids=4000)
        code = (
            HOLD + "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n    if os.fork():"
            " os._exit(0)"
        )
        done = run(connection, code + "\n", timeout=0.3)
        # Each generation ends at once, the first too: the command is over long before its
        # descendants are.
        assert done.exit_status == 0
        assert is_free(tmp_path / "workspace")

    def test_what_detached_is_gone_with_its_command(
        self, connection: Connection, workspace: Path
    ) -> None:
        code = (
            HOLD + "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    if os.fork() == 0:\n"
            "        time.sleep(600)\n"
            "    os._exit(0)\n"
            "os.wait(); print('left')"
        )
        done = run(connection, code)
        assert (done.exit_status, done.output) == (0, b"left\n")
        assert is_free(workspace)

    def test_nothing_outlives_close(self, opened: Opener, tmp_path: Path) -> None:
        connection = opened()
        assert connection.repl(HOLD + "if os.fork() == 0: time.sleep(600)").exit_status == 0
        assert not is_free(tmp_path / "workspace")
        connection.close()
        assert is_free(tmp_path / "workspace")
        connection.close()
        with pytest.raises(SandboxError, match="closed"):
            connection.execute(["true"])

    def test_nothing_outlives_a_killed_harness(self, sandbox: Sandbox, tmp_path: Path) -> None:
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # of forks where a test runner has threads
            harness = os.fork()
        if harness == 0:
            try:
                os.close(read)
                connection = sandbox.open(new_spec(tmp_path))
                connection.repl(HOLD + "if os.fork() == 0: time.sleep(600)")
                code = HOLD + "os.fork(); print('held', flush=True); time.sleep(600)"
                connection.execute(
                    [connection.python, "-c", code], sink=lambda data: void(os.write(write, data))
                )
            finally:
                os._exit(1)
        os.close(write)
        ready, _, _ = select.select([read], [], [], PATIENCE)
        began = os.read(read, 4) if ready else b""
        os.close(read)
        os.kill(harness, signal.SIGKILL)
        os.waitpid(harness, 0)
        assert began == b"held"
        assert eventually(lambda: is_free(tmp_path))

    def test_supervisor_killed_from_inside(self, opened: Opener, tmp_path: Path) -> None:
        connection = opened()
        connection.repl("x = 1")
        code = HOLD + "os.kill(os.getppid(), signal.SIGKILL); time.sleep(1); print('it lives')"
        done = run(connection, code)
        # Where the supervisor is the first process of a namespace, the kernel protects it.
        assert done.killed_for == "lost" or done.output == b"it lives\n"
        assert is_free(tmp_path / "workspace")
        assert answer(connection, "print('on')") == "on"

    def test_supervisor_stopped_from_inside(
        self, opened: Opener, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pytest_mlab.sandboxes.connection.GRACE", 0.5)
        monkeypatch.setattr("pytest_mlab.sandboxes.channel.PATIENCE", 0.5)
        connection = opened()
        done = run(
            connection,
            "import os, signal; os.kill(os.getppid(), signal.SIGSTOP); print('stopped')",
            timeout=0.5,
        )
        assert done.killed_for == "lost" or done.output == b"stopped\n"
        assert answer(connection, "print('on')") == "on"

    def test_cancelled_from_another_thread(self, opened: Opener, tmp_path: Path) -> None:
        connection = opened()
        connection.cancel()  # nothing runs: nothing happens
        done = connection.execute(
            [connection.python, "-c", f"{HOLD}os.write(1, b'begun'); time.sleep(600)"],
            timeout=PATIENCE,
            sink=lambda data: threading.Thread(target=connection.cancel).start(),
        )
        assert (done.exit_status, done.killed_for, done.output) == (None, "cancelled", b"begun")
        assert is_free(tmp_path / "workspace")
        connection.cancel()
        assert answer(connection, "print('on')") == "on"

    # --- the relay ---

    def test_no_relay_unless_asked_for(self, connection: Connection) -> None:
        assert connection.relay_port == 0

    def test_a_relay_leads_to_its_socket_and_nowhere_else(
        self, sandbox: Sandbox, opened: Opener, folder: Path
    ) -> None:
        with echo(folder / "relay"), socket.create_server(("127.0.0.1", 0)) as other:
            connection = opened(relay=folder / "relay")
            assert 0 < connection.relay_port < 65536
            assert (
                answer(connection, f"{ASK}print(ask({connection.relay_port}, b'hello'))")
                == "b'HELLO'"
            )
            if not sandbox.isolated:
                return
            code = (
                f"{ASK}\nprint([name for _, name in socket.if_nameindex() if name != 'lo'])\n"
                f"for address in (('127.0.0.1', {other.getsockname()[1]}), ('192.0.2.1', 80)):\n"
                "    try: socket.create_connection(address, timeout=2); print('connected')\n"
                "    except OSError: print('refused')"
            )
            assert answer(connection, code).split("\n") == ["[]", "refused", "refused"]

    def test_much_and_many_at_a_time_through_the_relay(self, opened: Opener, folder: Path) -> None:
        code = (
            "sizes = [3 << 20] + [7] * 40\n"
            "right = []\n"
            "def one(size): right.append(ask(port, b'x' * size) == b'X' * size)\n"
            "threads = [threading.Thread(target=one, args=(size,)) for size in sizes]\n"
            "for thread in threads: thread.start()\n"
            "for thread in threads: thread.join()\nprint(len(right), all(right))"
        )
        with echo(folder / "relay"):
            connection = opened(relay=folder / "relay")
            done = run(connection, f"{ASK}port = {connection.relay_port}\n{code}")
            assert text(done) == "41 True"

    def test_a_relay_whose_socket_nobody_answers(self, opened: Opener, folder: Path) -> None:
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.bind(str(folder / "relay"))
            (folder / "relay").chmod(0o666)
            connection = opened(relay=folder / "relay")
            code = (
                f"{ASK}\ntry: print(ask({connection.relay_port}, b'x'))\nexcept OSError: print(b'')"
            )
            assert answer(connection, code) == "b''"
        assert answer(connection, "print('on')") == "on"

    def test_the_relay_survives_the_commands_that_used_it_and_the_supervisor(
        self, opened: Opener, folder: Path
    ) -> None:
        with echo(folder / "relay"):
            connection = opened(relay=folder / "relay")
            hang = (
                "server = socket.create_connection(('127.0.0.1', {port})); server.send(b'x');"
                " server.recv(1); {then}"
            )
            for then in (
                "import time; time.sleep(600)",
                "import os, signal; os.kill(os.getppid(), signal.SIGKILL)",
            ):
                run(
                    connection,
                    ASK + hang.format(port=connection.relay_port, then=then),
                    timeout=0.7,
                )
                assert (
                    answer(connection, f"{ASK}print(ask({connection.relay_port}, b'on'))")
                    == "b'ON'"
                )

    # --- limits ---

    def test_memory_of_one_process(self, opened: Opener) -> None:
        connection = opened(memory_mb=200)
        done = run(connection, "print('small'); blob = b'x' * (400 << 20); print('la' 'rge')")
        assert done.output.startswith(b"small\n")
        assert b"large" not in done.output
        assert done.killed_for == "memory" or b"MemoryError" in done.output
        assert answer(connection, "print('on')") == "on"

    def test_memory_of_a_tree(self, opened: Opener, tmp_path: Path) -> None:
        connection = opened(memory_mb=200)
        code = (
            HOLD + "for _ in range(7):\n    if os.fork() == 0:\n        break\nblob = b'x' * (60 <<"
            " 20)\ntime.sleep(600)"
        )
        done = run(connection, code)
        assert (done.exit_status, done.killed_for) == (None, "memory")
        assert is_free(tmp_path / "workspace")

    def test_memory_shared_by_forks_counts_once(self, opened: Opener) -> None:
        connection = opened(memory_mb=200)
        code = (
            "import os, time\nblob = b'x' * (80 << 20)\n"
            "kids = [os.fork() for _ in range(1)] + [os.fork() for _ in range(1)]\n"
            "time.sleep(0.5)\n"
            "if 0 in kids: os._exit(0)\n"
            "print('fine')"
        )
        assert answer(connection, code) == "fine"

    def test_processes(self, opened: Opener, tmp_path: Path) -> None:
        connection = opened(pids=100)
        code = (
            HOLD + "for _ in range(500):\n    if os.fork() == 0:\n        time.sleep(600)\n"
            "print('all of them')\ntime.sleep(600)"
        )
        done = run(connection, code)
        assert done.killed_for == "pids" or (
            done.exit_status == 1 and b"BlockingIOError" in done.output
        )
        assert is_free(tmp_path / "workspace")
        assert answer(connection, "print('on')") == "on"

    def test_a_fork_bomb(self, opened: Opener, tmp_path: Path) -> None:
        connection = opened(pids=100)
        connection.repl("x = 'still here'")
        done = run(connection, HOLD + "while True: os.fork()", timeout=10.0)
        assert done.killed_for == "pids" or (
            done.exit_status == 1 and b"BlockingIOError" in done.output
        )
        assert is_free(tmp_path / "workspace")
        assert text(connection.repl("x")) == "'still here'"

    def test_many_processes_within_the_limit(self, opened: Opener, tmp_path: Path) -> None:
        connection = opened(pids=600)
        code = (
            HOLD
            + "for _ in range(500):\n    if os.fork() == 0:\n        time.sleep(600)\nprint('all of"
            " them')"
        )
        done = run(connection, code)
        assert (done.exit_status, done.output) == (0, b"all of them\n")
        assert is_free(tmp_path / "workspace")

    def test_disk(self, opened: Opener) -> None:
        connection = opened(disk_mb=16)
        code = (
            "import itertools, time\nfor i in range(8): open(f'{i}', 'wb').write(b'x' * (4 <<"
            " 20))\nprint('written')\ntime.sleep(600)"
        )
        done = run(connection, code)
        assert (done.exit_status, done.killed_for) == (None, "disk")
        # Still over the quota: whoever tidies up is left alone, whoever goes on writing is not.
        assert (
            answer(connection, "import os, time; time.sleep(1.5); os.remove('0'); print('tidied')")
            == "tidied"
        )
        done = run(
            connection, "import time; open('8', 'wb').write(b'x' * (8 << 20)); time.sleep(600)"
        )
        assert done.killed_for == "disk"

    def test_one_file_larger_than_the_disk(self, opened: Opener, tmp_path: Path) -> None:
        connection = opened(disk_mb=16)
        done = run(connection, "open('big', 'wb').write(b'x' * (64 << 20))")
        assert done.killed_for == "disk" or (
            done.exit_status == 1 and b"File too large" in done.output
        )
        assert (tmp_path / "workspace" / "big").stat().st_size <= 16 << 20

    # --- the REPL ---

    def test_repl_keeps_its_state(self, connection: Connection) -> None:
        first = connection.repl("import math\ndef double(x):\n    return 2 * x\nvalue = 21")
        assert (first.exit_status, first.output) == (0, b"")
        second = connection.repl("double(value)\nprint('Ω')\nNone\n'text'")
        assert second.output.decode() == "42\nΩ\n'text'\n"

    def test_repl_shows_tracebacks(self, connection: Connection) -> None:
        done = connection.repl("kept = 5\nundefined_name + 1")
        assert done.exit_status == 1
        assert "NameError" in text(done)
        assert "undefined_name + 1" in text(done)
        assert "supervisor" not in text(done)
        assert connection.repl("def f(:").exit_status == 1
        assert text(connection.repl("kept")) == "5"

    def test_repl_times_out_and_says_what_is_lost(self, opened: Opener) -> None:
        connection = opened()
        connection.repl("x = 1")
        done = connection.repl("print('begun')\nimport time\ntime.sleep(600)", timeout=1.0)
        assert (done.exit_status, done.killed_for) == (None, "timeout")
        assert done.output.startswith(b"begun\n")
        assert b"variables are lost" in done.output
        assert "NameError" in text(connection.repl("x"))

    def test_repl_that_is_left(self, opened: Opener) -> None:
        connection = opened()
        done = connection.repl("x = 1\nimport sys\nsys.exit(3)")
        assert done.exit_status == 3
        assert text(connection.repl("x")) == "1"
        done = connection.repl("import os\nos._exit(4)")
        assert done.exit_status == 4
        assert b"variables are lost" in done.output
        assert text(connection.repl("2 + 3")) == "5"

    def test_repl_survives_commands_and_their_ends(self, opened: Opener) -> None:
        connection = opened()
        connection.repl("x = 'still here'")
        run(connection, "import time; time.sleep(600)", timeout=0.3)
        assert text(connection.repl("x")) == "'still here'"

    def test_repl_prints_much(self, connection: Connection) -> None:
        done = connection.repl(
            "import sys\nn = sys.stdout.write('y' * (8 << 20))", keep=100, timeout=PATIENCE
        )
        assert (done.exit_status, done.output_bytes, done.output) == (0, 8 << 20, b"y" * 100)

    def test_repl_is_not_the_harness(self, connection: Connection) -> None:
        done = connection.repl(
            "import os, sys\nos.getpid()\n'pytest' in sys.modules\nsys.stdin.read()"
        )
        pid, pytest_loaded, stdin = text(done).splitlines()
        assert (int(pid) == os.getpid(), pytest_loaded, stdin) == (False, "False", "''")

    # --- the view of the world ---

    def test_variables_are_an_allow_list(
        self, opened: Opener, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-no-one-may-see-this")
        monkeypatch.setenv("PYTHONPATH", "/elsewhere")
        connection = opened(env={"FROM_THE_SPEC": "seen"}, cpus=3)
        done = run(connection, "import os\nfor name in os.environ: print(name, os.environ[name])")
        names = {line.split()[0] for line in text(done).splitlines()}
        assert "sk-no-one" not in text(done)
        assert not [
            name
            for name in names
            if name.startswith("PYTEST") or name in ("PYTHONPATH", "OPENAI_API_KEY")
        ]
        assert "FROM_THE_SPEC seen" in text(done)
        assert "OMP_NUM_THREADS 3" in text(done)
        assert {"PATH", "HOME", "LANG", "PYTHONUNBUFFERED"} <= names

    def test_no_secret_of_any_process(
        self, sandbox: Sandbox, opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _need_isolation(sandbox)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-no-one-may-see-this")
        connection = opened()
        code = (
            "import glob\nfor path in glob.glob('/proc/[0-9]*/environ') +"
            " glob.glob('/proc/[0-9]*/cmdline'):\n    try: print(path, open(path, 'rb').read())\n  "
            "  except OSError: pass"
        )
        done = run(connection, code)
        assert "environ" in text(done)
        assert "sk-no-one" not in text(done)
        assert str(tmp_path) not in text(done)

    def test_home_and_temporary_files(self, connection: Connection) -> None:
        code = (
            "import os, tempfile; open(os.path.expanduser('~/x'), 'w').close();"
            " tempfile.TemporaryFile().close()"
        )
        assert run(connection, code).exit_status == 0

    def test_no_network(self, sandbox: Sandbox, connection: Connection) -> None:
        _need_isolation(sandbox)
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = server.getsockname()
            code = (
                "import socket\nprint([name for _, name in socket.if_nameindex() if name !="
                f" 'lo'])\nfor host in ('{address[0]}', '192.0.2.1'):\n    try:"
                f" socket.create_connection((host, {address[1]}), timeout=2); print('connected')\n "
                "   except OSError as error: print('refused')"
            )
            assert answer(connection, code).split("\n") == ["[]", "refused", "refused"]

    def test_no_sight_of_the_host(
        self, sandbox: Sandbox, connection: Connection, tmp_path: Path
    ) -> None:
        _need_isolation(sandbox)
        (tmp_path / "answers.csv").write_text("the labels")
        paths = [
            str(tmp_path / "answers.csv"),
            os.path.expanduser("~/.ssh"),
            "/etc/shadow",
            os.getcwd(),
            "/root/.bashrc",
        ]
        done = run(
            connection,
            f"import os\nfor path in {paths!r}:\n    try: print(path, open(path, 'rb').read(1) if"
            " os.path.isfile(path) else os.listdir(path))\n    except OSError: pass",
        )
        assert text(done) == ""

    def test_no_sight_of_the_harness(self, sandbox: Sandbox, connection: Connection) -> None:
        _need_isolation(sandbox)
        assert "ModuleNotFoundError" in answer(connection, "import pytest_mlab.core")
        assert "ModuleNotFoundError" in text(connection.repl("import pytest_mlab.core"))
        pids = answer(connection, "import glob; print(len(glob.glob('/proc/[0-9]*')))")
        assert int(pids) < 10

    def test_no_rights(self, sandbox: Sandbox, connection: Connection) -> None:
        _need_isolation(sandbox)
        code = "import os; print(os.getuid() != 0); print(open('/proc/self/status').read())"
        seen = answer(connection, code).splitlines()
        assert seen[0] == "True"
        assert {"CapEff:\t0000000000000000", "NoNewPrivs:\t1"} <= set(seen)
        done = run(
            connection,
            "for path in ('/x', '/usr/x', '/etc/x', '/mlab/x'):\n"
            "    try: open(path, 'w'); print(path)\n"
            "    except OSError: pass",
        )
        assert text(done) == ""

    def test_mounts_are_read_only(self, sandbox: Sandbox, opened: Opener, tmp_path: Path) -> None:
        data = tmp_path / "public"
        data.mkdir()
        (data / "train.csv").write_text("1,2,3")
        targets = ["/data"] + (["data/mounted"] if sandbox.mounts else [])
        connection = opened(mounts=[Mount(data, target) for target in targets])
        for target in targets:
            place = connection.locate(f"{target}/train.csv")
            assert answer(connection, f"print(open({place!r}).read())") == "1,2,3"
            assert (
                place == target + "/train.csv" or not target.startswith("/") or not sandbox.isolated
            )
            if not sandbox.isolated:
                continue
            for attempt in (
                f"open({place!r}, 'w')",
                f"os.remove({place!r})",
                f"os.chmod({place!r}, 0o777)",
                f"os.rename({connection.locate(target)!r}, {connection.locate('other')!r})",
            ):
                assert "Error" in answer(connection, f"import os; {attempt}")
        connection.close()
        assert (data / "train.csv").read_text() == "1,2,3"
        assert list((tmp_path / "workspace").rglob("*.csv")) == []

    def test_mounts_of_files_and_folders_side_by_side(self, opened: Opener, tmp_path: Path) -> None:
        for name in ("lib/package", "answers"):
            (tmp_path / name).mkdir(parents=True)
            (tmp_path / name / "x.txt").write_text(name)
        (tmp_path / "main.py").write_text(
            "import sys; print([open(name).read() for name in sys.argv[1:]])"
        )
        mounts = {
            "main.py": "/mlab/task/main.py",
            "lib/package": "/mlab/lib/package",
            "answers": "/mlab/answers",
        }
        connection = opened(
            mounts=[Mount(tmp_path / source, target) for source, target in mounts.items()]
        )
        names = [
            connection.locate(f"/mlab/{name}")
            for name in ("task/main.py", "lib/package/x.txt", "answers/x.txt")
        ]
        done = connection.execute([connection.python, "-I", *names])
        assert text(done) == "['lib/package', 'answers']"

    def test_files_belong_to_the_caller_afterwards(self, opened: Opener, tmp_path: Path) -> None:
        connection = opened()
        run(
            connection,
            "import os; os.makedirs('a/b'); open('a/b/c', 'w').close(); os.symlink('/etc/passwd',"
            " 'link')",
        )
        connection.close()
        made = [tmp_path / "workspace", *(tmp_path / "workspace").rglob("*")]
        assert len(made) == 5
        assert {path.lstat().st_uid for path in made} == {os.geteuid()}
        assert {path.lstat().st_gid for path in made} == {os.getegid()}

    def test_sandboxes_do_not_see_one_another(self, sandbox: Sandbox, tmp_path: Path) -> None:
        connections = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            connections.append(sandbox.open(new_spec(tmp_path / name)))
        try:
            for connection in connections:
                assert text(connection.repl("'x' in globals()")) == "False"
                connection.repl("x = 1")
                assert run(connection, "open('mine', 'x').close()").exit_status == 0
        finally:
            for connection in connections:
                connection.close()

    def test_requests_of_two_threads_take_turns(self, connection: Connection) -> None:
        answers: dict[int, list[str]] = {}

        def ask(number: int) -> None:
            answers[number] = [
                text(connection.execute(["echo", f"{number}-{i}"])) for i in range(20)
            ]

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == {number: [f"{number}-{i}" for i in range(20)] for number in range(3)}

    def test_sweep_of_nothing(self, sandbox: Sandbox, connection: Connection) -> None:
        assert sandbox.sweep(f"no-such-label-{uuid.uuid4().hex}") == 0
        assert connection.execute(["true"]).exit_status == 0


def _need_isolation(sandbox: Sandbox) -> None:
    if not sandbox.isolated:
        pytest.skip(f"the sandbox {sandbox.name} does not isolate")
