"""The program that runs inside every sandbox for the length of a trial.

One file, standard library only, Python 3.9 or later. It is spoken to over its stdin and stdout and
exits, killing all that it started, when its stdin ends.

A frame is two big-endian 32-bit lengths, a JSON header and a binary payload of those lengths.
Requests, one at a time, each with an ``id`` that every reply repeats:

    open      workspace, env, inherit_env, memory_mb, disk_mb, pids, measured,
              unmeasured, own_processes, relay | null               -> hello
    execute   argv, env | null, timeout | null; payload: stdin      -> output*, end
    repl      timeout | null; payload: Python source                -> output*, end
    ping                                                            -> pong
    cancel                                                          -> nothing
    shutdown                                                        -> the stream ends

``cancel`` comes while a command runs, with that command's id, and ends it; it is of no effect when
it comes late.

``end`` carries ``status`` (exit status or null), ``signal`` (number or null) and ``killed_for``
('', timeout, memory, pids, disk, cancelled, signal). ``output`` carries bytes as payload; while the
reader is slow the command's pipe is not read, so memory is bounded on both sides. That the REPL's
variables are lost stands in its output.

``relay`` is the path of a Unix socket inside: whoever connects to the port of 127.0.0.1 that
``hello`` names as ``relay_port`` (0 without a relay) is led to it.

Every command is the leader of a session of its own. The supervisor is a child subreaper, so
whatever a command leaves behind, double-forked or not, becomes its child and is killed when the
command ends. Limits are set once, on the supervisor itself, and inherited (a command costs no more
than its spawn); what no rlimit can bound for root (memory and processes of the whole tree, disk) is
watched, but only once a command has lasted ``WATCH_AFTER``."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Collection, Iterable

TYPE_CHECKING = False  # importing typing would be a fifth of the start
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]
    # Standard input under way: [descriptor or None, what is left as a memoryview].
    Feed = list[Any]

# This and the bounds below stand in sandboxes/frames.py as well: neither side can import the other.
PROTOCOL = 1
LENGTHS = struct.Struct(">II")
STATUS = struct.Struct(">i")
BROKEN = b"\0" * 8
"""In place of a status when the status pipe ended: longer than any status."""
MAX_HEADER = 4 << 20
MAX_PAYLOAD = 64 << 20
CHUNK = 1 << 16
WATCH_AFTER = 0.05
"""Most commands end sooner and cost no watch at all."""
WATCH_EVERY = 0.1
DISK_EVERY = 1.0
SHARE = 20.0
"""A watch that takes t seconds is repeated after no less than SHARE * t: 5 % of a core at most.
A workspace of 100,000 files takes about a second to measure."""
IDLE_WATCH_MS = 1000
KILL_PATIENCE = 10.0
"""Seconds. What does not die within them sits in the kernel, on a hung disk for example."""

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PAGE = resource.getpagesize()
MIB = 1 << 20
LOST = b"[The Python session ended; its variables are lost.]\n"
RESET_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these two; its children must not."""
RELAYED = 16
"""Connections through the relay at a time; further ones wait."""
RELAY_STACK = 1 << 18
"""Bytes. The default of 8 MiB for each of 33 threads would count against RLIMIT_DATA."""


class HangUp(Exception):
    """The harness is gone, or does not speak the protocol."""


# --- the wire ---


class Wire:
    """Frames over two non-blocking pipes. At most one frame waits to be written."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self.write_fd = write_fd
        self._inbox = bytearray()
        self._outbox = b""
        # A write that blocked would stop the watch on a command's limits and timeout.
        for fd in (read_fd, write_fd):
            os.set_blocking(fd, False)

    @property
    def busy(self) -> bool:
        """True while a frame is not wholly written."""
        return bool(self._outbox)

    def receive(self) -> None:
        """Take in what is there. Raises HangUp at the end of the stream and when more than a frame
        piles up."""
        try:
            data = os.read(self.read_fd, CHUNK)
        except BlockingIOError:
            return
        if not data or len(self._inbox) > MAX_HEADER + MAX_PAYLOAD:
            raise HangUp
        self._inbox += data

    def next_request(self) -> tuple[Json, bytes] | None:
        """The next whole request as (header, payload), or None."""
        if len(self._inbox) < LENGTHS.size:
            return None
        header_size, payload_size = LENGTHS.unpack_from(self._inbox)
        if header_size > MAX_HEADER or payload_size > MAX_PAYLOAD:
            raise HangUp
        start, end = LENGTHS.size + header_size, LENGTHS.size + header_size + payload_size
        if len(self._inbox) < end:
            return None
        header = json.loads(bytes(self._inbox[LENGTHS.size : start]))
        payload = bytes(self._inbox[start:end])
        del self._inbox[:end]
        return header, payload

    def queue(self, header: Json, payload: bytes = b"") -> None:
        """Start to write a frame; what the pipe does not take now is kept."""
        text = json.dumps(header).encode()
        self._outbox += LENGTHS.pack(len(text), len(payload)) + text + payload
        self.push()

    def push(self) -> None:
        """Write what the pipe takes. Raises HangUp when the reader is gone."""
        try:
            while self._outbox:
                self._outbox = self._outbox[os.write(self.write_fd, self._outbox) :]
        except BlockingIOError:
            return
        except OSError:
            raise HangUp from None

    def flush(self) -> None:
        """Write everything, watching for the end of stdin meanwhile."""
        poller = select.poll()
        poller.register(self.write_fd, select.POLLOUT)
        poller.register(self.read_fd, select.POLLIN)
        while self._outbox:
            for fd, _ in poller.poll():
                if fd == self.read_fd:
                    self.receive()
            self.push()


# --- processes ---


def read_file(path: str) -> bytes:
    """A small /proc file, or b'' when its process is gone."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    data = b""
    try:
        while True:
            more = os.read(fd, CHUNK)
            data += more
            if len(more) == 0:
                return data
    except OSError:
        return data
    finally:
        os.close(fd)


def children_by_parent() -> dict[int, list[int]]:
    """Children of every process, from all of /proc: for kernels without the ``children`` files."""
    families: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            # The program's name stands in brackets and may itself hold blanks and brackets.
            fields = read_file(f"/proc/{name}/stat").rpartition(b")")[2].split()
            if len(fields) > 1:
                families.setdefault(int(fields[1]), []).append(int(name))
    return families


# Kernels built without CONFIG_PROC_CHILDREN have none.
HAS_CHILDREN_FILES = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def children(pid: int) -> tuple[list[int], int]:
    """(children, threads) of a process; nothing of one that is gone."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return [], 0
    found: list[int] = []
    # A child is listed with the thread that forked it, not with the process.
    for thread in threads:
        found += map(int, read_file(f"/proc/{pid}/task/{thread}/children").split())
    return found, len(threads)


def family(spared: int | None = None) -> dict[int, int]:
    """All descendants, as pid -> number of threads, without the process ``spared`` and its
    descendants."""
    found: dict[int, int] = {}
    table = None if HAS_CHILDREN_FILES else children_by_parent()
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        kids, threads = children(pid)
        if table is not None:
            kids = table.get(pid, [])
        found[pid] = threads
        waiting += [kid for kid in kids if kid not in found and kid != spared]
    del found[os.getpid()]
    return found


def resident(pid: int) -> int:
    """Bytes of a process's own pages, from one short file. Pages that a fork shares count for each
    process: an upper bound, exact enough to skip :func:`proportional`."""
    fields = read_file(f"/proc/{pid}/statm").split()
    return max(0, int(fields[1]) - int(fields[2])) * PAGE if len(fields) > 2 else 0


def proportional(pid: int) -> int:
    """Bytes of memory, pages shared by a fork divided among all sharers: exact, and slow (the
    kernel walks every page table), so asked only when :func:`resident` is over the limit."""
    total = 0
    for line in read_file(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith((b"Pss_Anon:", b"Pss_Shmem:")):
            total += int(line.split()[1]) * 1024
    return total


def disk_used(roots: Iterable[str], skipped: Collection[str]) -> int:
    """Bytes on disk below some folders; symbolic links are not followed, folders in ``skipped`` not
    entered."""
    total = 0
    linked: set[int] = set()
    waiting = list(roots)
    while waiting:
        try:
            entries = os.scandir(waiting.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                if entry.path in skipped:
                    continue
                try:
                    facts = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                # Blocks, not the size: a hole takes no disk. The unit is 512 bytes on every file
                # system. A file with several names counts once.
                if facts.st_ino not in linked:
                    total += facts.st_blocks * 512
                if facts.st_nlink > 1:
                    linked.add(facts.st_ino)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return total


def signal_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes, the gone ones included."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def signal_crowd(leader: int | None, own_processes: bool, number: int) -> None:
    """Send a signal in one system call, which no fork outruns: to the process group of ``leader``,
    or, where all processes that can be seen are the sandbox's, to every one but this."""
    with contextlib.suppress(OSError):
        if own_processes:
            os.kill(-1, number)
        elif leader is not None:
            os.killpg(leader, number)


def threads_on_machine() -> int:
    """All threads of the machine, other sandboxes' included. One read of 10 µs in place of a walk
    over the tree: only when it has grown by more than the limit is the tree counted."""
    fields = read_file("/proc/loadavg").split()
    return int(fields[3].partition(b"/")[2]) if len(fields) > 3 else 0


def out_of_memory_kills() -> int:
    """How often the kernel killed for this container's memory limit; 0 outside containers."""
    # Control groups of version 2, then of version 1.
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        for line in read_file(path).splitlines():
            name, _, value = line.partition(b" ")
            if name == b"oom_kill":
                return int(value)
    return 0


# --- the supervisor ---


class Limits:
    """What the whole tree may use, and when that is looked at next."""

    def __init__(self, request: Json) -> None:
        self.memory: int = request["memory_mb"] * MIB
        self.disk: int = request["disk_mb"] * MIB
        self.pids: int = request["pids"]
        self.measured: list[str] = request["measured"]
        self.unmeasured: frozenset[str] = frozenset(request["unmeasured"])
        self.next_watch = self.next_disk = 0.0
        self.disk_seen = 0
        # Only as the first process of a namespace: anywhere else a signal to all would reach the
        # caller's own.
        self.own_processes: bool = request["own_processes"] and os.getpid() == 1
        self.threads_seen = threads_on_machine()

    def impose(self) -> None:
        """Bound each process; inherited by all commands."""
        for what, bound in (
            (resource.RLIMIT_DATA, self.memory),
            (resource.RLIMIT_FSIZE, self.disk),
            (resource.RLIMIT_CORE, 0),
        ):
            # Without root a hard limit cannot be raised. It is set together with the soft one,
            # which a command could otherwise raise again.
            hard = resource.getrlimit(what)[1]
            if hard != resource.RLIM_INFINITY:
                bound = min(bound, hard)
            resource.setrlimit(what, (bound, bound))

    def start(self, now: float) -> None:
        """A command begins."""
        self.next_watch = now + WATCH_AFTER
        self.next_disk = max(self.next_disk, self.next_watch)

    def exceeded(self, now: float, leader: int) -> str:
        """The name of a limit that the tree is over, or ''; looks only at what is due. ``leader``
        is the command."""
        if now >= self.next_watch:
            over = self._crowded(leader) or self._over(family())
            end = time.monotonic()
            self.next_watch = end + max(WATCH_EVERY, SHARE * (end - now))
            if over:
                return over
        if now >= self.next_disk:
            before = self.disk_seen
            # Over the quota and growing: what deletes files must not be killed for those that it
            # has not reached yet.
            if self.measure_disk() > max(self.disk, before):
                return "disk"
        return ""

    def measure_disk(self) -> int:
        """Bytes that the measured folders take up; when to look again follows from what the look
        cost."""
        start = time.monotonic()
        self.disk_seen = disk_used(self.measured, self.unmeasured)
        end = time.monotonic()
        self.next_disk = end + max(DISK_EVERY, SHARE * (end - start))
        return self.disk_seen

    def _crowded(self, leader: int) -> str:
        """'pids' when the machine filled with the tree's processes. To count those of a fork bomb,
        which takes nearly all processor time and doubles meanwhile, it has to be stopped first; it
        stays so until it is killed."""
        threads = threads_on_machine()
        if threads - self.threads_seen <= self.pids:
            return ""
        signal_crowd(leader, self.own_processes, signal.SIGSTOP)
        if sum(family().values()) > self.pids:
            return "pids"
        self.threads_seen = threads
        signal_crowd(leader, self.own_processes, signal.SIGCONT)
        return ""

    def _over(self, tree: dict[int, int]) -> str:
        if sum(tree.values()) > self.pids:
            return "pids"
        if sum(map(resident, tree)) > self.memory and sum(map(proportional, tree)) > self.memory:
            return "memory"
        return ""


class Repl:
    """The persistent Python process: code goes in over a pipe of its own, a status comes back over
    another."""

    def __init__(self, env: dict[str, str]) -> None:
        code_read, self.code_fd = os.pipe()
        self.done_fd, done_write = os.pipe()
        self.out_fd, out_write = os.pipe()
        self.pid = spawn(
            [sys.executable, "-u", os.path.abspath(__file__), "repl", "3", "4"],
            env,
            # Through high numbers first: a pipe may itself sit on 3 or 4.
            [(code_read, 63), (done_write, 64), (63, 3), (64, 4), (out_write, 1), (out_write, 2)],
            closed=(63, 64),
        )
        for fd in (code_read, done_write, out_write):
            os.close(fd)
        for fd in (self.code_fd, self.done_fd, self.out_fd):
            os.set_blocking(fd, False)

    def close(self) -> None:
        """Forget the pipes; the process is killed by the caller."""
        for fd in (self.code_fd, self.done_fd, self.out_fd):
            os.close(fd)


class Relay:
    """Leads connections to a port of the loopback device to a Unix socket.

    It makes a model reachable where there is no network. It runs in threads of the supervisor, not
    in a child: a child would be killed with every command that ends, counted among the command's
    processes, and open to its signals. Each connection has two threads, one for each direction,
    because a reply may stream while a request is still being sent."""

    def __init__(self, path: str) -> None:
        import socket
        import threading

        self._sockets, self._threads = socket, threading
        threading.stack_size(RELAY_STACK)
        # By way of the folder's descriptor: the kernel takes no path of a socket above 107 bytes,
        # and a sandbox that shows the host's own path may have a longer one.
        folder, name = os.path.split(path)
        self._target = f"/proc/self/fd/{os.open(folder, os.O_PATH | os.O_DIRECTORY)}/{name}"
        self._free = threading.Semaphore(RELAYED)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        self._threads.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self) -> None:
        while True:
            self._free.acquire()
            client = None
            try:
                client = self._listener.accept()[0]
                self._start(self._lead, client)
            except (OSError, RuntimeError):
                # No descriptor or no thread is left. This connection fails, the next may not: a
                # command that used them all up is killed for that.
                self._free.release()
                if client is not None:
                    client.close()
                time.sleep(0.01)

    def _lead(self, client: Any) -> None:
        try:
            with client, self._sockets.socket(self._sockets.AF_UNIX) as server:
                server.connect(self._target)
                back = self._threads.Thread(target=self._pump, args=(server, client), daemon=True)
                back.start()
                self._pump(client, server)
                back.join()
        except (OSError, RuntimeError):
            pass
        finally:
            self._free.release()

    def _pump(self, source: Any, target: Any) -> None:
        """Forward bytes until ``source`` ends its side; the other direction stays open. When either
        side fails, both are shut down, so that neither peer waits for the other."""
        try:
            while True:
                data = source.recv(CHUNK)
                if not data:
                    target.shutdown(self._sockets.SHUT_WR)
                    return
                target.sendall(data)
        except OSError:
            for end in (source, target):
                with contextlib.suppress(OSError):
                    end.shutdown(self._sockets.SHUT_RDWR)


def spawn(
    argv: list[str],
    env: dict[str, str],
    descriptors: Iterable[tuple[int, int]],
    closed: Iterable[int] = (),
) -> int:
    """Start a program in a session of its own; ``descriptors`` are (from, to). Raises OSError,
    ValueError."""
    actions: list[Any] = [(os.POSIX_SPAWN_DUP2, source, target) for source, target in descriptors]
    actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in closed]
    search = os.posix_spawn if "/" in argv[0] else os.posix_spawnp
    return search(
        argv[0],
        argv,
        env,
        file_actions=actions,
        setsid=True,
        setsigmask=(),
        setsigdef=RESET_SIGNALS,
    )


class Supervisor:
    """Serves requests, one at a time, until its stdin ends."""

    limits: Limits

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.is_open = False
        self.relay: Relay | None = None
        self.env: dict[str, str] = {}
        self.workspace = "/"
        self.repl: Repl | None = None
        self.repl_lost = False
        self.statuses: dict[int, int] = {}
        self.oom_kills = 0
        self._child_read, child_write = os.pipe()
        for fd in (self._child_read, child_write):
            os.set_blocking(fd, False)
        # The interpreter writes to the wakeup descriptor only for signals that have a handler, so
        # SIGCHLD gets an empty one. A full pipe wakes poll() as well: no byte needs to fit.
        signal.set_wakeup_fd(child_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    # -- requests --

    def serve(self) -> None:
        """Answer requests until HangUp."""
        poller = select.poll()
        poller.register(self.wire.read_fd, select.POLLIN)
        poller.register(self._child_read, select.POLLIN)
        while True:
            request = self.wire.next_request()
            if request is not None:
                self.answer(*request)
                continue
            # A REPL may work on in threads and children between requests: it is watched then too.
            for fd, _ in poller.poll(None if self.repl is None else IDLE_WATCH_MS):
                if fd == self.wire.read_fd:
                    self.wire.receive()
                else:
                    self.reap()
            if self.repl is not None and self.limits.exceeded(time.monotonic(), self.repl.pid):
                self.end_repl()
                self.repl_lost = True

    def answer(self, request: Json, payload: bytes) -> None:
        """Do one request and send its last reply."""
        self.forget_the_dead()
        kind, number = request["type"], request["id"]
        if kind == "execute":
            reply = self.execute(
                number, request["argv"], request["env"], request["timeout"], payload
            )
        elif kind == "repl":
            reply = self.evaluate(number, payload, request["timeout"])
        elif kind == "ping":
            reply = {"type": "pong"}
        elif kind == "open":
            reply = self.open(request)
        elif kind == "cancel":  # the command that it names has ended meanwhile
            return
        else:
            raise HangUp
        reply["id"] = number
        self.wire.queue(reply)
        self.wire.flush()

    def open(self, request: Json) -> Json:
        """Take the sandbox's facts and impose its limits."""
        self.env, self.workspace = request["env"], request["workspace"]
        if request["inherit_env"]:
            self.env = {**os.environ, **self.env}
        # posix_spawnp searches the PATH of this process, not that of the environment it is given.
        os.environ.clear()
        os.environ.update(self.env)
        self.limits = Limits(request)
        self.is_open = True
        # When the machine runs out of memory, the kernel kills in here before the harness.
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
            score.write("500")
        self.limits.impose()
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # Commands run as the same user: without this they could open the supervisor's descriptors
        # through /proc and write replies of their own.
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        self.oom_kills = out_of_memory_kills()
        os.chdir(self.workspace)
        if request["relay"] is not None:
            self.relay = Relay(request["relay"])
        return {
            "type": "hello",
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "python": sys.version.split()[0],
            "relay_port": self.relay.port if self.relay else 0,
        }

    def execute(
        self,
        number: int,
        argv: list[str],
        env: dict[str, str] | None,
        timeout: float | None,
        stdin: bytes,
    ) -> Json:
        """Run a command to its end."""
        out_read, out_write = os.pipe()
        os.set_blocking(out_read, False)
        feed: Feed = [None, memoryview(stdin)]
        # Without input a command inherits descriptor 0, which main() has led to /dev/null.
        descriptors = [(out_write, 1), (out_write, 2)]
        opened = [out_write]
        if stdin:
            in_read, feed[0] = os.pipe()
            os.set_blocking(feed[0], False)
            descriptors.append((in_read, 0))
            opened.append(in_read)
        try:
            try:
                os.chdir(self.workspace)
                pid = spawn(argv, {**self.env, **(env or {})}, descriptors)
            except (OSError, ValueError) as error:
                return self.refusal(number, argv[0], error)
            finally:
                # A copy left open here would keep the pipe from ending with the command.
                for fd in opened:
                    os.close(fd)
            killed_for = self.attend(
                number, pid, out_read, timeout, lambda: pid in self.statuses, feed
            )
            # Before the pipe is drained: what the command left behind may write to it without end.
            # This also reaps the command, so that its status is known below.
            self.clear(pid, self.repl.pid if self.repl else None)
            if killed_for == "disk":
                self.limits.measure_disk()  # it wrote on until it was dead
            self.drain(number, out_read)
        finally:
            os.close(out_read)
            if feed[0] is not None:
                os.close(feed[0])
        return self.ending(self.statuses[pid], killed_for)

    def refusal(self, number: int, program: str, error: Exception) -> Json:
        """The reply for a command that could not be started, with a shell's exit statuses."""
        reason = getattr(error, "strerror", None) or str(error)
        self.send_output(number, f"cannot execute {program!r}: {reason}\n".encode())
        status = 127 if getattr(error, "errno", None) == errno.ENOENT else 126
        return {"type": "end", "status": status, "signal": None, "killed_for": ""}

    def evaluate(self, number: int, code: bytes, timeout: float | None) -> Json:
        """Run code in the REPL, starting it when there is none."""
        if self.repl_lost:
            self.send_output(number, LOST)
            self.repl_lost = False
        if self.repl is None:
            try:
                os.chdir(self.workspace)
                self.repl = Repl(self.env)
            except OSError as error:
                return self.refusal(number, sys.executable, error)
        repl = self.repl
        verdict = bytearray()

        def finished() -> bool:
            with contextlib.suppress(BlockingIOError):
                verdict.extend(os.read(repl.done_fd, STATUS.size) or BROKEN)
            return len(verdict) >= STATUS.size or repl.pid in self.statuses

        feed: Feed = [repl.code_fd, memoryview(LENGTHS.pack(len(code), 0) + code)]
        killed_for = self.attend(
            number, repl.pid, repl.out_fd, timeout, finished, feed, repl.done_fd
        )
        if not killed_for and len(verdict) == STATUS.size:
            # What the code started ends with it, as with a command; the session goes on.
            self.clear(repl.pid, repl.pid)
            self.drain(number, repl.out_fd)
            return {
                "type": "end",
                "status": STATUS.unpack(verdict)[0] & 0xFF,
                "signal": None,
                "killed_for": "",
            }
        self.clear(repl.pid)
        if killed_for == "disk":
            self.limits.measure_disk()
        self.drain(number, repl.out_fd)
        self.send_output(number, LOST)
        reply = self.ending(self.statuses[repl.pid], killed_for)
        self.end_repl()
        return reply

    def end(self) -> None:
        """Kill everything."""
        if self.is_open:
            self.clear(None)

    def end_repl(self) -> None:
        """Kill the REPL and all that it started."""
        if self.repl is not None:
            self.clear(self.repl.pid)
            self.repl.close()
            self.repl = None

    def forget_the_dead(self) -> None:
        """Before a command starts: process ids of ended ones may be given out again."""
        self.reap()
        if self.repl is not None and self.repl.pid in self.statuses:
            self.end_repl()
            self.repl_lost = True
        self.statuses.clear()

    # -- what a command goes through --

    def attend(
        self,
        number: int,
        leader: int,
        out_fd: int,
        timeout: float | None,
        finished: Callable[[], bool],
        feed: Feed,
        done_fd: int | None = None,
    ) -> str:
        """Forward output and feed stdin until ``finished()``; why it must be killed, or ''."""
        wire, limits = self.wire, self.limits
        now = time.monotonic()
        deadline = float("inf") if timeout is None else now + timeout
        limits.start(now)
        poller = select.poll()
        for fd in (wire.read_fd, self._child_read, out_fd, done_fd):
            if fd is not None:
                poller.register(fd, select.POLLIN)
        if feed[0] is not None:
            poller.register(feed[0], select.POLLOUT)
        cancelled = False
        while not finished():
            due = min(limits.next_watch, limits.next_disk, deadline)
            # Rounded up: poll() counts in milliseconds, and rounded down it would return just
            # before the time and make this loop spin.
            for fd, _ in poller.poll(max(0, int((due - now) * 1000) + 1)):
                if fd == out_fd:
                    self.take_output(number, out_fd, poller)
                elif fd == self._child_read:
                    self.reap()
                elif fd == wire.read_fd:
                    wire.receive()
                    cancelled = self.is_cancelled(number) or cancelled
                elif fd == feed[0]:
                    if not self.feed(feed, close=done_fd is None):
                        poller.unregister(fd)
                elif fd == wire.write_fd:
                    wire.push()
                    if not wire.busy:
                        poller.unregister(fd)
                        poller.register(out_fd, select.POLLIN)
            if cancelled:
                return "cancelled"
            now = time.monotonic()
            # Asked again: the events above may have shown the end, and a command that ends as its
            # time runs out is not killed for that.
            if now < due or finished():
                continue
            if now >= deadline:
                return "timeout"
            if over := limits.exceeded(now, leader):
                return over
        return ""

    def is_cancelled(self, number: int) -> bool:
        """Whether the harness gave up request ``number``; nothing else may come while it is being
        answered."""
        request = self.wire.next_request()
        if request is not None and request[0]["type"] != "cancel":
            raise HangUp
        return request is not None and request[0]["id"] == number

    def take_output(self, number: int, out_fd: int, poller: select.poll) -> None:
        """Forward one piece of output; the command's pipe is left alone while the harness does not
        read."""
        data = os.read(out_fd, CHUNK)
        if data:
            self.queue_output(number, data)
        if self.wire.busy:
            poller.register(self.wire.write_fd, select.POLLOUT)
        if self.wire.busy or not data:
            poller.unregister(out_fd)
        if not data:
            self.reap()  # most commands end with their output

    @staticmethod
    def feed(feed: Feed, *, close: bool) -> bool:
        """Write some of stdin; False when there is nothing more to do."""
        fd, data = feed
        try:
            feed[1] = data[os.write(fd, data[:CHUNK]) :]
        except BlockingIOError:
            return True
        except OSError:  # the command closed its stdin, which it may
            feed[1] = data[:0]
        if feed[1]:
            return True
        if close:
            os.close(fd)
            feed[0] = None
        return False

    def queue_output(self, number: int, data: bytes) -> None:
        """Start to send a piece of output."""
        self.wire.queue({"type": "output", "id": number}, data)

    def send_output(self, number: int, data: bytes) -> None:
        """Send a piece of output and wait until it is taken."""
        self.queue_output(number, data)
        self.wire.flush()

    def drain(self, number: int, out_fd: int) -> None:
        """Forward what is left in a command's pipe; its writers are gone or done."""
        self.wire.flush()
        with contextlib.suppress(BlockingIOError):
            while True:
                data = os.read(out_fd, CHUNK)
                if not data:
                    return
                self.send_output(number, data)

    def ending(self, status: int, killed_for: str) -> Json:
        """The reply for a command that ended with a wait status."""
        code = number = None
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
        elif not killed_for:
            code = os.WEXITSTATUS(status)
        if number is not None and not killed_for:
            killed_for = "signal"
            # The kernel sends it for a write past RLIMIT_FSIZE.
            if number == signal.SIGXFSZ:
                killed_for = "disk"
            elif number == signal.SIGKILL:
                # The kernel's kill for lack of memory is an ordinary SIGKILL; only this count
                # tells.
                before, self.oom_kills = self.oom_kills, out_of_memory_kills()
                killed_for = "memory" if self.oom_kills > before else "signal"
        return {"type": "end", "status": code, "signal": number, "killed_for": killed_for}

    # -- the end of a tree --

    def reap(self) -> bool:
        """Collect ended children and keep their statuses; False when no child is left. All of them:
        orphans that were adopted would otherwise stay as zombies and count against ``pids``."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._child_read, 512)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.statuses[pid] = status

    def clear(self, leader: int | None, spared: int | None = None) -> None:
        """Kill every descendant but ``spared`` and its own, until none is left. ``leader`` is the
        command's process, if there is one.

        The supervisor is a child subreaper, so a descendant whose parent ended is its child:
        "no child left" means that nothing is left, whatever sessions and groups it moved to."""
        own = self.limits.own_processes
        deadline = time.monotonic() + KILL_PATIENCE
        while self.reap():
            tree = family(spared)
            if not tree:
                break
            # Stopped first, until no new process turns up: what is stopped cannot fork. To kill
            # one by one loses the race against a program that forks faster than it is found.
            if own or leader != spared:
                signal_crowd(leader, own, signal.SIGSTOP)
            tree = family(spared)
            stopped: set[int] = set()
            while not stopped.issuperset(tree) and time.monotonic() < deadline:
                signal_all(set(tree) - stopped, signal.SIGSTOP)
                stopped.update(tree)
                tree = family(spared)
            signal_all(stopped.union(tree), signal.SIGKILL)
            select.select([self._child_read], [], [], 0.01)
            if time.monotonic() > deadline:
                # Something cannot be killed. The harness sees a lost supervisor; it would not see
                # a process that goes on.
                raise HangUp
        if spared is not None:
            signal_crowd(spared, own, signal.SIGCONT)


# --- the REPL's own process ---


def read_exactly(fd: int, size: int) -> bytes:
    """``size`` bytes; fewer at the end of the stream."""
    data = b""
    while len(data) < size:
        more = os.read(fd, size - len(data))
        if not more:
            break
        data += more
    return data


def run_interactively(source: str, name: str, scope: Json, flags: int) -> tuple[int, int]:
    """Run code as the interactive interpreter would, every top-level expression echoed; returns
    (status, flags)."""
    import __future__

    import ast
    import io
    import linecache
    import traceback

    # The code is in no file, and tracebacks take their source lines from here. An entry without a
    # modification time survives linecache.checkcache(). Lines end in \n only: str.splitlines() also
    # ends one at a form feed.
    linecache.cache[name] = (len(source), None, io.StringIO(source).readlines(), name)
    future = 0
    for feature in __future__.all_feature_names:
        future |= getattr(__future__, feature).compiler_flag
    try:
        tree = compile(source, name, "exec", flags | ast.PyCF_ONLY_AST, True)
        code = compile(ast.Interactive(tree.body), name, "single", flags, True)
        # A `from __future__ import` holds for all later pieces of code, as it does at a prompt.
        flags |= code.co_flags & future
        exec(code, scope)
    except SystemExit as leaving:
        if leaving.code is None:
            return 0, flags
        if isinstance(leaving.code, int):
            return leaving.code & 0xFF, flags
        sys.stderr.write(f"{leaving.code}\n")
        return 1, flags
    except BaseException as error:  # noqa: BLE001  whatever the code raises is shown, as an interpreter does
        trace = error.__traceback__
        # The first frame is this function's own, as are all of a syntax error in the code itself.
        if trace is not None:
            trace = trace.tb_next
        if isinstance(error, SyntaxError) and error.filename == name:
            trace = None
        traceback.print_exception(type(error), error, trace)
        return 1, flags
    return 0, flags


def repl_main(code_fd: int, done_fd: int) -> None:
    """Serve code until the pipe ends."""
    import types

    # A program that the code starts must not be able to take code or give a status.
    for fd in (code_fd, done_fd):
        os.set_inheritable(fd, False)
    # The code gets a namespace without the names of this file. Pickle looks for the code's classes
    # in the module that is registered as __main__.
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    sys.path[0] = ""
    sys.argv = [""]
    flags = 0
    count = 0
    while True:
        head = read_exactly(code_fd, LENGTHS.size)
        if len(head) < LENGTHS.size:
            return
        source = read_exactly(code_fd, LENGTHS.unpack(head)[0]).decode("utf-8", "replace")
        count += 1
        status, flags = run_interactively(source, f"<python {count}>", module.__dict__, flags)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os.write(done_fd, STATUS.pack(status))


# --- start ---


def guard() -> None:
    """Where no process namespace ends with the supervisor: a parent that outlives it and kills what
    it left.

    Returns in the child, the supervisor; SIGTERM makes the parent kill everything at once.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Blocked before the fork: the end of a child that ends at once stays pending for sigwait().
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGCHLD))
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        return
    # The harness notices the supervisor's end by the end of its pipes, which must not stay open
    # here.
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    while signal.sigwait((signal.SIGTERM, signal.SIGCHLD)) == signal.SIGCHLD:
        ended, _ = os.waitpid(child, os.WNOHANG)
        if ended == child:
            break
    deadline = time.monotonic() + KILL_PATIENCE
    while time.monotonic() < deadline:
        tree = family()
        signal_all(tree, signal.SIGSTOP)
        signal_all({**tree, **family()}, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break
        time.sleep(0.001)
    os._exit(0)


def main(arguments: list[str]) -> None:
    """Entry point: nothing, ``guarded LABEL``, or ``repl CODE_FD DONE_FD``."""
    if arguments[:1] == ["repl"]:
        repl_main(int(arguments[1]), int(arguments[2]))
        return
    if arguments[:1] == ["guarded"]:
        guard()
    # os.dup() returns descriptors that children do not inherit, unlike 0 and 1.
    wire = Wire(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    supervisor = Supervisor(wire)
    try:
        supervisor.serve()
    except HangUp:
        pass
    finally:
        with contextlib.suppress(HangUp):
            supervisor.end()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
