"""Backend ``docker``: a container per sandbox, made through the docker SDK and the engine that
DOCKER_HOST names.

The container has no network, no capability, a read-only root file system, the trial's memory,
processor and process limits, and the supervisor as its first process, spoken to over the attached
socket. When the harness dies, the engine closes the supervisor's stdin; it ends, and the engine
removes the container.

Programs run as the caller's user, or as 1000 when the caller is root: files of the workspace are
then handed over before every command and taken back at the end."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlab.core.sandbox_api import SandboxSpec
from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes.channel import CHUNK, ChannelLost, send_all, wait_for
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
    target_inside,
    tmp_mb,
)
from pytest_mlab.sandboxes.ownership import hand_over, readable_mounts

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

DEFAULT_IMAGE = "mlab-tasks:latest"
LABEL = "pytest-mlab"
_USER_FOR_ROOT = 1000
_BUILD = (
    "printf 'FROM python:3.12-slim\\nRUN pip install numpy pandas scikit-learn torch\\n' "
    f"| docker build -t {DEFAULT_IMAGE} -"
)
# The engine's framing of an attached stream: its number, three zero bytes, the piece's length.
_HEAD = struct.Struct(">BxxxI")
_STDERR = 2
_MAX_PIECE = 1 << 24
_CPU_PERIOD = 100_000
"""Microseconds over which the kernel counts a container's processor time."""


class Docker:
    """Starts containers from ``image`` (default: ``mlab-tasks:latest``), which needs a python3 of
    3.9 or later and whatever the tasks' code imports. Nothing of the host is inside unless mounted,
    so ``hidden`` needs no care."""

    name = "docker"
    isolated = True
    mounts = True
    uses_host_python = False
    preload: tuple[str, ...] = ("docker",)

    def __init__(self, *, image: str = "", hidden: Sequence[Path] = ()) -> None:
        del hidden
        self.image = image or DEFAULT_IMAGE

    def check(self) -> str:
        """'' when a sandbox can be opened here, else why not and the way out."""
        import docker.errors

        try:
            with _client() as client:
                client.images.get(self.image)
        except docker.errors.ImageNotFound:
            way_out = _BUILD if self.image == DEFAULT_IMAGE else f"docker pull {self.image}"
            return f"the engine has no image {self.image}: {way_out}"
        except (docker.errors.DockerException, OSError) as error:
            return f"no docker engine answers ({_brief(error)}): start one, or set DOCKER_HOST"
        with tempfile.TemporaryDirectory(prefix="mlab-check-") as folder:
            try:
                connection = self.open(SandboxSpec(Path(folder), f"check-{os.getpid()}"))
            except SandboxError as error:
                return str(error)
            connection.close()
        return ""

    def open(self, spec: SandboxSpec) -> SupervisedConnection:
        """Start a container. Raises SandboxError."""
        owner = (os.geteuid(), os.getegid())
        user = owner if owner[0] else (_USER_FOR_ROOT, _USER_FOR_ROOT)
        resources = contextlib.ExitStack()
        try:
            client = _reach(resources)
            shown = spec
            if user != owner:
                shown = readable_mounts(spec, resources)
        except SandboxError:
            resources.close()
            raise
        # An ExitStack unwinds backwards: the files are the caller's again before the mount points
        # go, and the client is closed last.
        created: list[Path] = []
        resources.callback(lambda: remove_mount_points(created))
        if user != owner:
            resources.callback(lambda: hand_over(spec.workspace, *owner))

        def launch() -> _ContainerChannel:
            created.extend(make_mount_points(spec))
            before()
            return _start(client, self.image, shown, user)

        def before() -> None:
            if user != owner:
                hand_over(spec.workspace, *user)

        opening = opening_request(
            spec,
            WORKSPACE,
            environment(spec.resources, home="/tmp", network=spec.network),
            measured=(WORKSPACE,),
            unmeasured=[target_inside(mount) for mount in spec.mounts],
            inherit_env=True,
        )
        return SupervisedConnection(
            launch,
            opening,
            python="python3",
            places={
                mount.target: mount.target for mount in spec.mounts if mount.target.startswith("/")
            },
            before=before,
            release=resources.close,
        )

    def sweep(self, label_prefix: str) -> int:
        """Remove containers whose label begins with ``label_prefix``; how many. Raises
        SandboxError."""
        import docker.errors

        removed = 0
        try:
            with _client() as client:
                for found in client.api.containers(all=True, filters={"label": LABEL}):
                    if found["Labels"][LABEL].startswith(label_prefix):
                        removed += _remove(client, found["Id"])
        except (docker.errors.DockerException, OSError) as error:
            raise SandboxError(f"leftover containers cannot be removed: {_brief(error)}") from error
        return removed


@contextlib.contextmanager
def _client() -> Iterator[DockerClient]:
    import docker

    _knock(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock")
    client = docker.from_env(timeout=60)
    try:
        client.ping()
        yield client
    finally:
        client.close()


def _reach(resources: contextlib.ExitStack) -> DockerClient:
    """A client that is closed with ``resources``. Raises SandboxError."""
    import docker.errors

    try:
        return resources.enter_context(_client())
    except (docker.errors.DockerException, OSError) as error:
        raise SandboxError(
            f"no docker engine answers ({_brief(error)}): start one, or set DOCKER_HOST"
        ) from error


def _knock(host: str) -> None:
    """Raise OSError when no engine listens on a local engine's socket; the SDK would leave a socket
    open."""
    if host.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(host.removeprefix("unix://"))


def _start(
    client: DockerClient, image: str, spec: SandboxSpec, user: tuple[int, int]
) -> _ContainerChannel:
    """Create, attach to and start a container. Raises SandboxError."""
    import docker.errors

    try:
        container = client.containers.create(image, **container_settings(spec, user))
    except docker.errors.DockerException as error:
        raise SandboxError(
            f"no container can be made from the image {image}: {_brief(error)}"
        ) from error
    try:
        # Before the start, so that nothing of the supervisor's first output is missed.
        attached = client.api.attach_socket(
            str(container.id), {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        )
        channel = _ContainerChannel(client, container, attached)
    except BaseException:
        _remove(client, str(container.id))
        raise
    try:
        container.start()
    except docker.errors.DockerException as error:
        channel.close()
        raise SandboxError(
            f"the container of image {image} does not start: {_brief(error)}"
        ) from error
    return channel


def container_settings(spec: SandboxSpec, user: tuple[int, int]) -> dict[str, Any]:
    """Everything about a container but its image, in the SDK's words."""
    from docker.types import DeviceRequest, LogConfig, Mount

    resources = spec.resources
    shown = [Mount(SUPERVISOR_INSIDE, str(SUPERVISOR), type="bind", read_only=True)]
    shown += [Mount(WORKSPACE, str(spec.workspace.resolve()), type="bind")]
    shown += [
        Mount(target_inside(m), str(m.source.resolve()), type="bind", read_only=True)
        for m in spec.mounts
    ]
    if spec.relay is not None:
        shown += [Mount(RELAY_INSIDE, str(spec.relay), type="bind", read_only=True)]
    memory = (
        resources.memory_mb + 64
    ) << 20  # the supervisor's own; its watch on the tree speaks first
    settings: dict[str, Any] = {
        # Both are given: the image may have an entry point and a command of its own.
        "entrypoint": ["python3", *SUPERVISOR_FLAGS, SUPERVISOR_INSIDE],
        "command": [],
        "labels": {LABEL: spec.label},
        "user": f"{user[0]}:{user[1]}",
        "working_dir": WORKSPACE,
        "hostname": "sandbox",
        "network_mode": "bridge" if spec.network else "none",
        "mounts": shown,
        "read_only": True,
        # The engine mounts a tmpfs with noexec unless it is asked for exec.
        "tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={tmp_mb(spec)}m"},
        "shm_size": resources.memory_mb << 19,
        "mem_limit": memory,
        # This limit is of memory and swap together. Unset, it allows as much swap again.
        "memswap_limit": memory,
        # Not nano_cpus: that refuses more processors than the engine has.
        "cpu_period": _CPU_PERIOD,
        "cpu_quota": resources.cpus * _CPU_PERIOD,
        "pids_limit": resources.pids + 32,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "stdin_open": True,
        "auto_remove": True,
        "log_config": LogConfig(type="none"),  # else the engine writes all output to its disk
    }
    if resources.gpus:
        settings["device_requests"] = [DeviceRequest(count=resources.gpus, capabilities=[["gpu"]])]
    return settings


def _brief(error: Exception) -> str:
    """The first line of an engine's message."""
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def _remove(client: DockerClient, container_id: str) -> bool:
    """Kill and remove a container and wait until it is gone; False when it was gone already."""
    import docker.errors

    try:
        client.api.remove_container(container_id, v=True, force=True)
    except docker.errors.NotFound:
        return False
    except docker.errors.APIError as error:
        if error.status_code != 409:  # 409: its removal is under way
            raise
        with contextlib.suppress(docker.errors.NotFound):
            client.api.wait(container_id, condition="removed")
    return True


class _ContainerChannel:
    """A supervisor in a container: stdout and stderr come in pieces with a head, on one socket."""

    def __init__(self, client: DockerClient, container: Container, attached: Any) -> None:
        self._client = client
        self._container = container
        self._attached = attached
        # The SDK may wrap the socket in a SocketIO, which cannot be polled or made non-blocking.
        self._socket: socket.socket = getattr(attached, "_sock", attached)
        self._socket.setblocking(False)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._socket.fileno(), select.POLLIN)
        self._writable.register(self._socket.fileno(), select.POLLOUT)
        self._inbox = bytearray()
        self._errors = bytearray()

    def send(self, data: bytes, deadline: float | None) -> None:
        """Hand over everything. Raises ChannelLost."""
        send_all(self._socket.send, self._writable, data, deadline)

    def receive(self, deadline: float | None) -> bytes:
        """Some bytes of stdout, at least one. Raises ChannelLost."""
        while True:
            data = self._take()
            if data:
                return data
            wait_for(self._readable, deadline)
            try:
                data = self._socket.recv(CHUNK)
            except BlockingIOError:
                continue
            except OSError as error:
                raise ChannelLost(f"the engine closed it ({error.strerror})") from None
            if not data:
                raise ChannelLost("it ended")
            self._inbox += data

    def _take(self) -> bytes:
        """What the whole pieces in the inbox add to stdout."""
        out = bytearray()
        position = 0
        while len(self._inbox) - position >= _HEAD.size:
            stream, size = _HEAD.unpack_from(self._inbox, position)
            if size > _MAX_PIECE:
                raise ChannelLost(f"a piece of {size} bytes")
            end = position + _HEAD.size + size
            if len(self._inbox) < end:
                break
            piece = self._inbox[position + _HEAD.size : end]
            position = end
            if stream == _STDERR:
                self._errors = (self._errors + piece)[-2000:]
            else:
                out += piece
        del self._inbox[:position]
        return bytes(out)

    def complaint(self) -> str:
        """The last lines on stderr."""
        return self._errors.decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Kill and remove the container."""
        import docker.errors

        # Both: to close a SocketIO leaves its socket open.
        self._attached.close()
        self._socket.close()
        try:
            _remove(self._client, str(self._container.id))
        except (docker.errors.DockerException, OSError) as error:
            raise SandboxError(
                f"the container {self._container.name} cannot be removed: {_brief(error)}"
            ) from error
