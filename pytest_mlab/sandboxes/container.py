"""The attached socket to a supervisor that is a container's first process."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from typing import TYPE_CHECKING, Any

from pytest_mlab.errors import SandboxError
from pytest_mlab.sandboxes.channel import CHUNK, ChannelLost, wait_for

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

_HEAD = struct.Struct(">BxxxI")
_STDERR = 2
_MAX_PIECE = 1 << 24


def brief(error: Exception) -> str:
    """The first line of what an engine says."""
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def remove(client: DockerClient, container_id: str) -> bool:
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


class ContainerChannel:
    """A supervisor in a container: stdout and stderr come in pieces with a head, on one socket."""

    def __init__(self, client: DockerClient, container: Container, attached: Any) -> None:
        self._client = client
        self._container = container
        self._attached = attached
        self._socket: socket.socket = getattr(attached, "_sock", attached)
        self._socket.setblocking(False)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._socket.fileno(), select.POLLIN)
        self._writable.register(self._socket.fileno(), select.POLLOUT)
        self._inbox = bytearray()
        self._errors = bytearray()

    def send(self, data: bytes, deadline: float | None) -> None:
        """Hand over everything. Raises ChannelLost."""
        left = memoryview(data)
        while left:
            left = left[self._write(left) :]
            if left:
                wait_for(self._writable, deadline)

    def _write(self, data: memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise ChannelLost(f"it takes no requests any more ({error.strerror})") from None

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

        self._attached.close()
        self._socket.close()
        try:
            remove(self._client, str(self._container.id))
        except (docker.errors.DockerException, OSError) as error:
            raise SandboxError(
                f"the container {self._container.name} cannot be removed: {brief(error)}"
            ) from error
