"""Backend ``bubblewrap``: namespaces of the supervisor's own, without a daemon and without root.

Inside, the caller's user has the id 1000 and no capability, the network is a lone loopback device,
and the file system is an empty one in which only these are seen: the system's programs and
libraries, the harness's Python installation (where it is on the host, without pytest_mlab itself),
the mounts, and the workspace, which alone is writable beside small in-memory folders."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from glob import glob
from pathlib import Path

import pytest_mlab
from pytest_mlab.core.sandbox_api import SandboxSpec
from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes.channel import ProcessChannel
from pytest_mlab.sandboxes.connection import SupervisedConnection
from pytest_mlab.sandboxes.opening import (
    RELAY_INSIDE,
    SUPERVISOR,
    SUPERVISOR_FLAGS,
    SUPERVISOR_INSIDE,
    WORKSPACE,
    environment,
    make_mount_points,
    opening_request,
    remove_mount_points,
    system_path,
    target_inside,
    tmp_mb,
)

_NOT_INSTALLED = "the program bwrap is not installed: apt-get install bubblewrap"
_PREFIX_PARTS = ("bin", "lib", "lib64", "libexec", "include", "share", "ssl", "pyvenv.cfg")
"""Of a Python prefix only these are shown: a virtual environment may share its folder with a whole
project."""
_ETC = (
    "alternatives",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "pki/tls/certs",
    "ssl/certs",
)
_NET_ETC = ("resolv.conf", "hosts", "services", "protocols", "ca-certificates")
# The machine's own files would show its users inside, and may lack the user 1000.
_WRITTEN = {
    "/etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nmlab:x:1000:1000:mlab:/tmp:/bin/sh\n",
    "/etc/group": b"root:x:0:\nmlab:x:1000:\n",
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
}


class Bubblewrap:
    """Starts supervisors under ``bwrap``. ``hidden`` are host paths that must not be seen even
    where they lie below something that is shown."""

    name = "bubblewrap"
    isolated = True
    mounts = True
    uses_host_python = True
    preload: tuple[str, ...] = ()

    def __init__(self, *, hidden: Sequence[Path] = ()) -> None:
        self._hidden = (*own_packages(sys.path), *(path.resolve() for path in hidden))

    def check(self) -> str:
        """'' when a sandbox can be opened here, else why not."""
        if shutil.which("bwrap") is None:
            return _NOT_INSTALLED
        with tempfile.TemporaryDirectory(prefix="mlab-check-") as folder:
            try:
                connection = self.open(SandboxSpec(Path(folder), f"check-{os.getpid()}"))
            except SandboxError as error:
                return (
                    f"{error}. Unprivileged user namespaces may be switched off: sysctl -w"
                    " kernel.apparmor_restrict_unprivileged_userns=0 or"
                    " kernel.unprivileged_userns_clone=1"
                )
            connection.close()
        return ""

    def open(self, spec: SandboxSpec) -> SupervisedConnection:
        """Start a sandbox. The thread that calls this must live as long as the sandbox: the kernel
        ends it with that thread. Raises SandboxError."""
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise SandboxError(_NOT_INSTALLED)
        env = environment(spec.resources, home="/tmp", path=system_path(), network=spec.network)
        created: list[Path] = []
        opening = opening_request(
            spec,
            WORKSPACE,
            env,
            measured=(WORKSPACE,),
            unmeasured=[target_inside(mount) for mount in spec.mounts],
        )

        def launch() -> ProcessChannel:
            created.extend(make_mount_points(spec))
            return _start(bwrap, view(spec, self._hidden), _WRITTEN)

        return SupervisedConnection(
            launch,
            opening,
            python=sys.executable,
            places={
                mount.target: mount.target for mount in spec.mounts if mount.target.startswith("/")
            },
            release=lambda: remove_mount_points(created),
        )

    def sweep(self, label_prefix: str) -> int:
        """0: the kernel ends a sandbox together with the process that opened it."""
        del label_prefix
        return 0


def own_packages(search_path: Iterable[str]) -> list[Path]:
    """Every copy of this package that the harness's Python could find: a wheel's carries tasks and
    answers, and one may be left beside an editable installation."""
    name = pytest_mlab.__name__
    copies = [Path(pytest_mlab.__file__).parent, *(Path(entry) / name for entry in search_path)]
    return sorted({path.resolve() for path in copies if path.is_dir()})


def _start(bwrap: str, arguments: Sequence[str], written: Mapping[str, bytes]) -> ProcessChannel:
    """Start bwrap. Its arguments travel over a descriptor, because its command line can be read
    inside and would show the host's paths. Its environment can be read too, so it is empty."""
    held: list[int] = []
    try:
        extra: list[str] = []
        for target, content in written.items():
            held.append(_memory_file(content))
            extra += ["--ro-bind-data", str(held[-1]), target]
        # Last of all: bwrap creates the mount points in these two while they are writable.
        remount = ["--remount-ro", "/dev", "--remount-ro", "/"]
        held.append(
            _memory_file(
                b"".join(os.fsencode(word) + b"\0" for word in (*arguments, *extra, *remount))
            )
        )
        argv = [bwrap, "--args", str(held[-1]), "--"]
        argv += [sys.executable, *SUPERVISOR_FLAGS, SUPERVISOR_INSIDE]
        return ProcessChannel(argv, {"LANG": "C.UTF-8"}, pass_fds=held)
    finally:
        for fd in held:
            os.close(fd)


def _memory_file(content: bytes) -> int:
    fd = os.memfd_create("mlab")
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def view(spec: SandboxSpec, hidden: Iterable[Path]) -> list[str]:
    """bwrap's arguments: what is seen inside, and where."""
    # --new-session: a program could otherwise push input into the caller's terminal (TIOCSTI).
    # --as-pid-1: the kernel kills all processes of the namespace when the supervisor ends, and the
    # supervisor's kill(-1) reaches nothing but them.
    arguments = ["--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"]
    arguments += ["--uid", "1000", "--gid", "1000", "--hostname", "sandbox"]
    if spec.network:
        arguments += ["--share-net"]
    # Half of the memory for /dev/shm, the share that the kernel gives a tmpfs by default.
    arguments += ["--proc", "/proc", "--dev", "/dev", "--size", str(spec.resources.memory_mb << 19)]
    arguments += ["--tmpfs", "/dev/shm"]
    # Before the mounts below: a virtual environment may lie below /tmp.
    arguments += ["--size", str(tmp_mb(spec) << 20), "--perms", "1777", "--tmpfs", "/tmp"]
    arguments += ["--size", str(64 << 20), "--tmpfs", "/run"]
    arguments += ["--ro-bind-try", "/sys/devices/system", "/sys/devices/system"]
    shown = [*_system(), *_python()]
    for path in shown:
        arguments += ["--ro-bind", os.path.realpath(path), path]
    for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if os.path.islink(path):
            arguments += ["--symlink", os.readlink(path), path]
    for name in (*_ETC, *(_NET_ETC if spec.network else ())):
        arguments += ["--ro-bind-try", os.path.realpath(f"/etc/{name}"), f"/etc/{name}"]
    # bwrap mounts in the order of its arguments, so covers follow what they cover.
    arguments += _cover(hidden, shown)
    if spec.resources.gpus:
        for device in (*glob("/dev/nvidia*"), "/dev/kfd", "/dev/dri"):
            arguments += ["--dev-bind-try", device, device]
    arguments += ["--ro-bind", str(SUPERVISOR), SUPERVISOR_INSIDE]
    arguments += ["--bind", str(spec.workspace.resolve()), WORKSPACE]
    for mount in spec.mounts:
        arguments += ["--ro-bind", str(mount.source.resolve()), target_inside(mount)]
    if spec.relay is not None:
        arguments += ["--ro-bind", str(spec.relay), RELAY_INSIDE]
    return [*arguments, "--chdir", WORKSPACE]


def _system() -> list[str]:
    """The system's own folders; those that are links into /usr are made as links."""
    paths = [
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/nix/store",
        "/gnu/store",
    ]
    return [path for path in paths if os.path.isdir(path) and not os.path.islink(path)]


def _python() -> list[str]:
    """The parts of the harness's Python installation that do not lie in the system's folders."""
    prefixes = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    # The python of a virtual environment is a link, often to a further one. One link is followed at
    # a time, because each place on the way must be there inside.
    executable = sys.executable
    while True:
        prefixes.append(os.path.dirname(os.path.dirname(executable)))
        if not os.path.islink(executable):
            break
        executable = os.path.normpath(
            os.path.join(os.path.dirname(executable), os.readlink(executable))
        )
    prefixes += [os.path.realpath(prefix) for prefix in prefixes]
    system = _system()
    found = []
    for prefix in dict.fromkeys(prefixes):
        for part in _PREFIX_PARTS:
            path = os.path.join(prefix, part)
            if os.path.exists(path) and not any(
                Path(path).is_relative_to(folder) for folder in system
            ):
                found.append(path)
    return [path for path in found if path not in ("/lib", "/lib64", "/bin")]


def _cover(hidden: Iterable[Path], shown: Sequence[str]) -> list[str]:
    """Empty folders over what must not be seen, wherever it shows."""
    arguments: list[str] = []
    for path in hidden:
        for base in shown:
            real = Path(os.path.realpath(base))
            if not path.exists() or not path.is_relative_to(real):
                continue
            place = str(Path(base) / path.relative_to(real))
            cover = (
                ["--tmpfs", place, "--remount-ro", place]
                if path.is_dir()
                else ["--ro-bind", os.devnull, place]
            )
            arguments += cover
    return arguments
