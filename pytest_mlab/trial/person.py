"""The person at the terminal that a run was started from: shows text, asks questions, opens an
editor.

A trial's process has no terminal of its own and its output goes to a log, so the device is opened
by its name. Lines are edited by the terminal itself. While a question is open, or for as long as
:meth:`TerminalPerson.held` lasts, Ctrl-C does not send a signal to the processes of the terminal:
it is made a character that ends a line, which the reader here sees."""

from __future__ import annotations

import contextlib
import math
import os
import select
import shlex
import subprocess
import tempfile
import termios
import threading
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_mlab.core.agent_api import Terminal
from pytest_mlab.errors import BudgetExhausted, ConfigError

_LOCAL, _CHARACTERS = 3, 6
"""Places of the local modes and of the special characters in what termios calls attributes."""

_NONE = b"\0"


class TerminalPerson:
    """Implements :class:`pytest_mlab.core.agent_api.Person`. ``remaining`` gives the seconds that a
    question may take."""

    def __init__(
        self, terminal: Terminal, remaining: Callable[[], float] = lambda: math.inf
    ) -> None:
        self._terminal = terminal
        self._remaining = remaining
        self._fd = -1
        self._holds = 0
        self._usual: list[object] = []
        self._interrupt = b"\x03"
        self._pending = b""

    # --- the terminal ---

    @property
    def _device(self) -> int:
        """The open device. Raises ConfigError when it is gone."""
        if self._fd < 0:
            try:
                # O_NOCTTY: the trial's process leads a session without a terminal. Opened without
                # this flag, the device would become its controlling terminal.
                self._fd = os.open(self._terminal.device, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            except OSError as error:
                raise ConfigError(
                    f"the terminal {self._terminal.device} cannot be opened ({error.strerror});"
                    " start the run again where you sit"
                ) from error
        return self._fd

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Inside the block Ctrl-C does not kill the process; the open question, or the next one,
        raises KeyboardInterrupt."""
        if self._holds == 0:
            self._usual = self._modes()
            self._set(self._holding(self._usual))
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            if self._holds == 0:
                self._set(self._usual)

    def _holding(self, usual: list[object]) -> list[object]:
        modes = [list(part) if isinstance(part, list) else part for part in usual]
        local, characters = modes[_LOCAL], modes[_CHARACTERS]
        assert isinstance(local, int)
        assert isinstance(characters, list)
        modes[_LOCAL] = (local | termios.ICANON | termios.ECHO) & ~termios.ISIG
        # The key may be another one, or switched off. Then Ctrl-C stays what ends a question.
        if characters[termios.VINTR] not in (_NONE, 0):
            self._interrupt = bytes(characters[termios.VINTR])
        # In line mode, a read returns at VEOL as at a line break: the key wakes the reader at once.
        characters[termios.VEOL] = self._interrupt
        return modes

    def _modes(self) -> list[object]:
        try:
            return list(termios.tcgetattr(self._device))
        except termios.error as error:
            raise ConfigError(
                f"{self._terminal.device} is gone as a terminal ({error}); start the run again"
            ) from error

    def _set(self, modes: list[object]) -> None:
        with contextlib.suppress(termios.error):  # it is gone; the next question raises EOFError
            termios.tcsetattr(self._device, termios.TCSANOW, modes)  # type: ignore[arg-type]

    # --- telling and asking ---

    def tell(self, text: str) -> None:
        """Write ``text`` and a line break; control characters are shown as escapes."""
        # The text may come from a model or a script, and escape sequences could steer the terminal.
        self._write(printable(text) + "\n")

    def ask(self, prompt: str) -> str:
        """The line that the person enters.

        Raises EOFError for Ctrl-D and when the terminal is gone, KeyboardInterrupt for Ctrl-C,
        BudgetExhausted when the time is over first."""
        with self.held():
            self._write(printable(prompt))
            line = self._line()
        return line.decode("utf-8", "replace")

    def _line(self) -> bytes:
        while True:
            line, found, rest = self._pending.partition(b"\n")
            if found:
                self._pending = rest
                return line
            data = self._read()
            if data.endswith(self._interrupt):
                self._pending = b""
                self._write("\n")
                raise KeyboardInterrupt
            self._pending += data

    def _read(self) -> bytes:
        left = self._remaining()
        if not select.select([self._device], [], [], None if math.isinf(left) else max(0.0, left))[
            0
        ]:
            self._write("\nThe time is over.\n")
            raise BudgetExhausted("the time was over while a person was asked", limit="seconds")
        try:
            data = os.read(self._device, 1 << 16)
        except OSError:  # the terminal was closed
            data = b""
        if not data:
            self._write("\n")
            raise EOFError
        return data

    def _write(self, text: str) -> None:
        view = memoryview(text.encode("utf-8", "replace"))
        with contextlib.suppress(OSError):  # the terminal is gone
            while view:
                view = view[os.write(self._device, view) :]

    # --- more ---

    @contextlib.contextmanager
    def interrupting(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call ``stop`` when the person presses Ctrl-C inside the block. Lines entered meanwhile
        answer the next questions."""
        with self.held():
            # A thread that waits for the terminal cannot be stopped. Closing this pipe's other end
            # wakes it.
            wake, waker = os.pipe()
            watcher = threading.Thread(
                target=self._watch, args=(wake, stop), name="mlab-terminal", daemon=True
            )
            watcher.start()
            try:
                yield
            finally:
                os.close(waker)
                watcher.join()
                os.close(wake)

    def _watch(self, wake: int, stop: Callable[[], None]) -> None:
        while wake not in (ready := select.select([self._device, wake], [], [])[0]):
            try:
                data = os.read(ready[0], 1 << 16)
            except OSError:
                return
            if data.endswith(self._interrupt):
                stop()
            elif not data:
                return
            else:
                self._pending += data

    @property
    def has_editor(self) -> bool:
        """Whether :meth:`edit` can be used."""
        return bool(self._terminal.editor)

    def edit(self, text: str, name: str) -> str:
        """``text`` after the person has edited it in their editor; ``name`` is the file's. Raises
        ConfigError without an editor, or when it fails."""
        if not self._terminal.editor:
            raise ConfigError("there is no editor; set the variable EDITOR and start the run again")
        with tempfile.TemporaryDirectory(prefix="mlab-edit-") as folder:
            file = Path(folder, os.path.basename(name) or "text")
            file.write_bytes(text.encode())
            command = [*shlex.split(self._terminal.editor), str(file)]
            # TERM is not among the variables that a trial's process gets (process/child_env.py).
            variables = {**os.environ, "TERM": self._terminal.term or "dumb"}
            with self._lent() as device:
                try:
                    subprocess.run(
                        command,
                        stdin=device,
                        stdout=device,
                        stderr=device,
                        env=variables,
                        check=True,
                    )
                except (OSError, subprocess.CalledProcessError) as error:
                    raise ConfigError(
                        f"the editor {self._terminal.editor!r} failed: {error}"
                    ) from None
            # Not read_text(), which makes every line ending \n.
            return file.read_bytes().decode("utf-8", "replace")

    @contextlib.contextmanager
    def _lent(self) -> Iterator[int]:
        """The terminal in its usual mode, as a program expects it."""
        held = self._modes()
        self._set(self._usual or held)
        try:
            yield self._device
        finally:
            self._set(held)


def printable(text: str) -> str:
    """``text`` with control characters as escapes, but for line breaks and tabs."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c)[0] != "C" else repr(c)[1:-1] for c in text
    )


@contextlib.contextmanager
def kept(terminal: Terminal | None) -> Iterator[None]:
    """After the block the terminal has its old mode again, even when a process that changed it was
    killed."""
    if terminal is None:
        yield
        return
    device = os.open(terminal.device, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        modes = termios.tcgetattr(device)
        try:
            yield
        finally:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(device, termios.TCSANOW, modes)
    finally:
        os.close(device)
