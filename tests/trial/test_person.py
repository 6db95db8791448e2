"""A person at a real pseudo-terminal: lines, ctrl-C, ctrl-D, the editor, and the terminal's state
afterwards."""

from __future__ import annotations

import os
import pty
import sys
import termios
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_mlab.core.agent_api import Terminal
from pytest_mlab.errors import BudgetExhausted, ConfigError
from pytest_mlab.trial.person import TerminalPerson, kept, printable


@dataclass
class Desk:
    """Both ends of a pseudo-terminal: ``typed`` goes in, ``seen`` is what the screen shows."""

    controller: int
    terminal: int

    @property
    def device(self) -> str:
        """The terminal's name."""
        return os.ttyname(self.terminal)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.controller, text.encode())

    def seen_up_to(self, text: str) -> str:
        """What the screen shows until ``text`` has come."""
        found = b""
        while text.encode() not in found:
            found += os.read(self.controller, 4096)
        return found.decode()

    @property
    def modes(self) -> list[object]:
        """The terminal's state."""
        return list(termios.tcgetattr(self.terminal))

    def person(self, **more: str) -> TerminalPerson:
        """Who sits there."""
        return TerminalPerson(Terminal(self.device, **more))


@pytest.fixture
def desk() -> Iterator[Desk]:
    controller, terminal = pty.openpty()
    yield Desk(controller, terminal)
    for end in (controller, terminal):
        os.close(end)


def test_a_line_is_asked_for_and_edited_by_the_terminal(desk: Desk) -> None:
    desk.type("helo\x7flo wörld\n")
    assert desk.person().ask("name: ") == "hello wörld"
    assert "name: " in desk.seen_up_to("name: ")


def test_lines_come_one_at_a_time(desk: Desk) -> None:
    person = desk.person()
    desk.type("one\ntwo\n\n")
    assert [person.ask("> ") for _ in range(3)] == ["one", "two", ""]


def test_ctrl_d_is_an_end_and_not_the_last(desk: Desk) -> None:
    person = desk.person()
    desk.type("\x04")
    with pytest.raises(EOFError):
        person.ask("> ")
    desk.type("on\n")
    assert person.ask("> ") == "on"


def test_ctrl_c_drops_the_line_and_ends_nothing(desk: Desk) -> None:
    person = desk.person()
    with person.held():
        desk.type("half a line\x03")
        with pytest.raises(KeyboardInterrupt):
            person.ask("> ")
        desk.type("another\n")
        assert person.ask("> ") == "another"


def test_outside_of_a_question_the_terminal_is_as_it_was(desk: Desk) -> None:
    before = desk.modes
    person = desk.person()
    with person.held(), person.held():
        assert desk.modes != before
    assert desk.modes == before
    desk.type("x\n")
    person.ask("> ")
    assert desk.modes == before


def test_another_key_than_ctrl_c_may_interrupt(desk: Desk) -> None:
    modes = termios.tcgetattr(desk.terminal)
    modes[6][termios.VINTR] = b"\x18"
    termios.tcsetattr(desk.terminal, termios.TCSANOW, modes)
    person = desk.person()
    with person.held():
        desk.type("a line\x18")
        with pytest.raises(KeyboardInterrupt):
            person.ask("> ")


def test_what_would_steer_the_terminal_is_written_out(desk: Desk) -> None:
    desk.person().tell("red \x1b[31m, bell \x07, tab\tend \u202e.")
    assert "red \\x1b[31m, bell \\x07, tab" in desk.seen_up_to("end \\u202e.")


@pytest.mark.parametrize("text", ["", "plain\nlines\ttabs", "wörld ✓ 日本"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert printable(text) == text


def test_the_time_bounds_a_question(desk: Desk) -> None:
    person = TerminalPerson(Terminal(desk.device), lambda: 0.0)
    with pytest.raises(BudgetExhausted):
        person.ask("> ")
    assert "The time is over." in desk.seen_up_to("over.")


def test_a_terminal_that_is_closed_is_the_end() -> None:
    controller, terminal = pty.openpty()
    person = TerminalPerson(Terminal(os.ttyname(terminal)))
    with person.held():
        os.close(terminal)
        os.close(controller)
        for _ in range(2):
            with pytest.raises(EOFError):
                person.ask("> ")


def test_a_terminal_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"/dev/no-such-terminal cannot be opened"):
        TerminalPerson(Terminal("/dev/no-such-terminal")).ask("> ")


def test_ctrl_c_while_something_runs_is_heard_at_once(desk: Desk) -> None:
    person, stopped = desk.person(), threading.Event()
    with person.held(), person.interrupting(stopped.set):
        desk.type("typed ahead\n")
        desk.type("and dropped\x03")
        assert stopped.wait(30)
    assert person.ask("> ") == "typed ahead"


def test_what_is_typed_ahead_answers_the_next_question(desk: Desk) -> None:
    person = desk.person()
    heard = threading.Event()
    with person.held():
        with person.interrupting(heard.set):
            desk.type("next\n")
        assert person.ask("> ") == "next"
    assert not heard.is_set()


EDITOR = """\
import sys, termios
path = sys.argv[-1]
assert sys.stdin.isatty()
signals = bool(termios.tcgetattr(0)[3] & termios.ISIG)
text = open(path).read()
open(path, "w").write(f"{text}{path.rpartition('/')[2]} {signals}")
"""


def test_the_editor_gets_the_terminal_as_programs_expect_it(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "editor.py").write_text(EDITOR)
    person = desk.person(editor=f"{sys.executable} {tmp_path / 'editor.py'}")
    assert person.has_editor
    with person.held():
        held = desk.modes
        assert person.edit("before ", "src/train.py") == "before train.py True"
        assert desk.modes == held


def test_the_editor_keeps_line_endings(desk: Desk) -> None:
    text = "a\r\nb\rc\n\x0c"
    assert desk.person(editor="true").edit(text, "a.py") == text


@pytest.mark.parametrize("editor", ["", "false", "/no/such/editor"])
def test_no_editor_and_a_broken_one_are_said(desk: Desk, editor: str) -> None:
    person = desk.person(editor=editor)
    with pytest.raises(ConfigError, match=editor or "set the variable EDITOR"):
        person.edit("text", "a.txt")


def test_the_terminal_is_put_back_after_a_process_that_was_killed(desk: Desk) -> None:
    before = desk.modes
    with kept(Terminal(desk.device)):
        modes = termios.tcgetattr(desk.terminal)
        modes[3] &= ~(termios.ISIG | termios.ECHO)
        termios.tcsetattr(desk.terminal, termios.TCSANOW, modes)
        assert desk.modes != before
    assert desk.modes == before
    with kept(None):
        pass
