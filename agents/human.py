"""A person at the terminal, with the actions, the budget and the trace of any other agent: to
compare agents with.

What is entered is an action in a short form (``r train.py``) or a command of this dialogue
(``help``). Content of several lines comes line by line up to a line with one dot, or from the
person's editor."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping

from pydantic import BaseModel, Field

from pytest_mlab import (
    Action,
    ActionSpec,
    BudgetExhausted,
    ConfigError,
    Environment,
    Observation,
    Person,
)

WIDTH = 80

SHORT: Mapping[str, str] = {
    "ls": "List Files",
    "cat": "Read File",
    "w": "Write File",
    "a": "Append File",
    "cp": "Copy File",
    "lines": "Inspect Script Lines",
    "r": "Execute Script",
    "py": "Python REPL",
    "undo": "Undo Edit Script",
    "submit": "Final Answer",
}
"""The actions of use to a person, in the order of their numbers. All others go by their full
names."""

ASSUMED: Mapping[str, str] = {"dir_path": "."}
"""Arguments that need not be given."""

MULTILINE = frozenset({"content", "command"})
"""Arguments that may have several lines."""

COMMANDS = """\
  e FILE       change a file in your editor (reads it and writes it: two steps)
  back [N]     make the workspace what it was after step N (0: the start;
               without N: before the last step); costs no step
  more         the last observation, whole
  task         the task again
  help         this list
  ctrl-C       stops a running script, drops what you are typing; loses nothing
  ctrl-D       ends the trial, after a question"""

_MARK = re.compile(r"\s*(?:[-*]|\d+\.)\s+|\s*")
_BEGINS = re.compile(r"\s*$|\s*[-*] |\s*\d+\. |[|#]|```")
"""A line that is not the continuation of the one above."""

_WORD = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|(\S+))""")


class HumanSettings(BaseModel, frozen=True, extra="forbid"):
    """What can be changed about the dialogue."""

    shown_lines: int = Field(
        default=60, ge=4, description="lines of an observation; `more` shows the rest"
    )


class HumanAgent:
    """Asks for one action after the other until the final answer, the end of the budget or the
    person's wish."""

    needs_model = False
    interactive = True
    Settings = HumanSettings

    def __init__(self, settings: HumanSettings | None = None) -> None:
        self.settings = settings or self.Settings()

    def run(self, env: Environment) -> None:
        """Talk; what ends the trial passes through."""
        with env.person.held():
            _Talk(env, env.person, self.settings).talk()


class _Talk:
    """One trial's dialogue."""

    def __init__(self, env: Environment, person: Person, settings: HumanSettings) -> None:
        self.env = env
        self.person = person
        self.settings = settings
        self.numbers = {
            str(n): name
            for n, name in enumerate((s for s in SHORT.values() if s in env.actions), 1)
        }
        self.last: Observation | None = None
        self.over = False

    def talk(self) -> None:
        """Until it is over."""
        self.person.tell(f"\n{'-' * WIDTH}")
        self.show_task()
        self.show_help()
        try:
            while not self.over:
                self.turn()
        except BudgetExhausted as error:
            self.person.tell(f"\n{error}. The workspace is scored as it is.")
            raise

    def turn(self) -> None:
        """One entry of the person."""
        try:
            entered = self.person.ask(self.prompt())
            self.obey(entered.strip())
        except EOFError:
            self.over = self.wants_to_leave()
        except KeyboardInterrupt:
            self.person.tell("(dropped; nothing else is lost, ctrl-D ends the trial)")
        except ConfigError as error:
            self.person.tell(f"({error})")

    def prompt(self) -> str:
        """Where things stand."""
        budget, ledger = self.env.budget, self.env.ledger
        left = budget.max_seconds - ledger.seconds
        time = "" if math.isinf(left) else f", {_duration(left)} left"
        return f"\n[{ledger.steps} of {budget.max_steps} steps{time}] > "

    # --- what was entered ---

    def obey(self, entered: str) -> None:
        """Do a command, or an action."""
        word, _, rest = entered.partition(" ")
        if word in ("", "help", "h", "?"):
            self.show_help()
        elif word == "task":
            self.show_task()
        elif word == "more":
            self.person.tell(self.last.text if self.last else "(nothing was done yet)")
        elif word == "back":
            self.go_back(rest.strip())
        elif word == "e":
            self.edit(rest.strip())
        else:
            self.act(entered)

    def act(self, entered: str) -> None:
        """Do the action that is meant, asking for what is missing."""
        spec, rest = self.meant(entered)
        if spec is None:
            self.person.tell(
                f"({entered.split()[0]!r} is neither an action nor a command; `help` lists them)"
            )
            return
        arguments = self.arguments(spec, rest)
        if arguments is None:
            self.person.tell(f"(dropped: {spec.name})")
            return
        self.execute(Action(spec.name, arguments))

    def meant(self, entered: str) -> tuple[ActionSpec | None, str]:
        """The action by number, short form or name, and what follows it."""
        for name, spec in sorted(self.env.actions.items(), key=lambda item: -len(item[0])):
            if (
                entered.casefold().startswith(name.casefold())
                and entered[len(name) : len(name) + 1].strip() == ""
            ):
                return spec, entered[len(name) :].strip()
        word, _, rest = entered.partition(" ")
        found = self.numbers.get(word) or SHORT.get(word, "")
        return self.env.actions.get(found), rest.strip()

    def arguments(self, spec: ActionSpec, rest: str) -> dict[str, str] | None:
        """The arguments: given with the action, or asked for one by one; None when the person
        changes their mind."""
        properties = spec.schema.get("properties", {})
        found = dict(zip(properties, _words(rest, len(properties)), strict=False))
        try:
            for name in spec.schema.get("required", properties):
                if name in found or name in ASSUMED:
                    found.setdefault(name, ASSUMED.get(name, ""))
                else:
                    about = properties[name].get("description", "")
                    found[name] = (
                        self.lines(name)
                        if name in MULTILINE
                        else self.person.ask(f"{name} ({about}): ")
                    )
        except (EOFError, KeyboardInterrupt):
            return None
        return found

    def lines(self, name: str) -> str:
        """A text of several lines."""
        editor = ", or `e` for your editor" if self.person.has_editor else ""
        self.person.tell(f"{name}: line by line, a line with one dot (.) ends it{editor}")
        found: list[str] = []
        while True:
            try:
                line = self.person.ask("| ")
            except EOFError:
                break
            if line == ".":
                break
            if line == "e" and not found and editor:
                return self.person.edit("", name)
            found.append(line)
        return "".join(f"{line}\n" for line in found)

    # --- doing ---

    def execute(self, action: Action) -> Observation:
        """Do a step and show what came of it; ctrl-C stops what it runs."""
        with self.person.interrupting(self.env.cancel):
            self.last = self.env.execute(action)
        self.show(action, self.last)
        self.over = self.last.done
        return self.last

    def edit(self, name: str) -> None:
        """Change a file in the editor."""
        if not name or not self.person.has_editor:
            self.person.tell(
                "(e FILE; it needs the variable EDITOR)" if name else "(which file? e FILE)"
            )
            return
        with self.person.interrupting(self.env.cancel):
            seen = self.env.execute(Action("Read File", {"file_name": name}))
        if "left out" in seen.text and len(seen.text) > 30_000:
            self.person.tell(f"({name} is too long to be read whole; change it by a script)")
            return
        if not seen.ok and "does not exist" not in seen.text:
            self.person.tell(f"({seen.text})")
            return
        if "\ufffd" in seen.text:
            self.person.tell(
                f"({name} is not UTF-8, so an editor here would change it; use a script)"
            )
            return
        before = seen.text if seen.ok else ""
        if before == "(the file is empty)":
            before = ""
        after = self.person.edit(before, name)
        if after == before:
            self.person.tell(f"({name} is as it was)")
        else:
            self.execute(Action("Write File", {"file_name": name, "content": after}))

    def go_back(self, step: str) -> None:
        """Make the workspace what it was."""
        done = len(self.env.history)
        if step and not step.isdecimal():
            self.person.tell("(back N, where N is a step's number)")
            return
        number = int(step) if step else max(0, done - 1)
        if number > done:
            self.person.tell(f"(there was no step {number}; the last one is {done})")
            return
        missing = self.env.restore(number)
        self.person.tell(
            f"The workspace is what it was {f'after step {number}' if number else 'at the start'}."
        )
        if missing:
            self.person.tell(f"These files were not kept and are gone: {', '.join(missing)}")

    def wants_to_leave(self) -> bool:
        """What ctrl-D is meant to do: True when the trial is over."""
        self.person.tell("End the trial? s submits the workspace, e ends without an answer (it is")
        try:
            answer = self.person.ask("scored all the same), anything else goes on: ").strip()
        except EOFError:
            return True  # again, or the terminal is gone
        except KeyboardInterrupt:
            return False
        if answer == "s":
            self.env.execute(Action("Final Answer", {"final_answer": "submitted at the terminal"}))
        return answer in ("s", "e")

    # --- showing ---

    def show(self, action: Action, seen: Observation) -> None:
        """An observation; the middle of a long one is left out."""
        facts = [f"step {len(self.env.history)}: {action.name}"]
        facts += [] if seen.exit_status is None else [f"exit status {seen.exit_status}"]
        facts += [] if seen.ok else ["error"]
        lines = seen.text.rstrip("\n").split("\n")
        most = self.settings.shown_lines
        if len(lines) > most:
            head = most * 2 // 3
            lines[head : len(lines) - (most - head)] = [
                f"[... {len(lines) - most} lines more; `more` shows them ...]"
            ]
        self.person.tell("\n".join([f"--- {', '.join(facts)}", *lines]))

    def show_task(self) -> None:
        """The task's text."""
        self.person.tell(_filled(self.env.task_description))

    def show_help(self) -> None:
        """All that can be entered."""
        keys = {name: short for short, name in SHORT.items()}
        rows = []
        for number, name in self.numbers.items():
            arguments = " ".join(self.env.actions[name].schema.get("properties", {}))
            rows.append(f" {number:>2} or {keys[name]:<7}{name:<21}{arguments}")
        others = ", ".join(name for name in self.env.actions if name not in keys)
        named = textwrap.wrap(
            f"By name: {others}", WIDTH, initial_indent="  ", subsequent_indent="    "
        )
        said = "Enter an action by its number or its short form, with arguments or without:"
        self.person.tell("\n".join(["", said, "", *rows, "", *named, "", COMMANDS]))


def _words(text: str, count: int) -> list[str]:
    """Up to ``count`` arguments: words, or quoted texts; the last one takes the rest of the
    line."""
    found: list[str] = []
    while text.strip() and len(found) < count:
        match = _WORD.match(text)
        if match is None or (len(found) == count - 1 and text[match.end() :].strip()):
            found.append(text.strip())
            break
        found.append(next(group for group in match.groups() if group is not None))
        text = text[match.end() :]
    return found


def _filled(text: str) -> str:
    """Markdown with the lines of a paragraph or of a list's point filled anew; tables and code stay
    as they are."""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        code ^= line.startswith("```")
        joins = bool(lines and lines[-1].strip()) and not code and _BEGINS.match(line) is None
        if joins and not lines[-1].startswith(("|", "#", "```")):
            lines[-1] = f"{lines[-1]} {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(line if line.startswith("|") else _wrapped(line) for line in lines)


def _wrapped(line: str) -> str:
    """A line in lines of at most 80 characters: under a list's text, not under its mark."""
    mark = _MARK.match(line)
    indent = " " * len(mark.group()) if mark else ""
    return textwrap.fill(line, WIDTH, subsequent_indent=indent) if len(line) > WIDTH else line


def _duration(seconds: float) -> str:
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    return (
        f"{hours}h{minutes % 60:02d}m"
        if hours
        else f"{minutes}m"
        if minutes
        else f"{int(seconds)}s"
    )
