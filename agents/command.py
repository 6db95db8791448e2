"""Any program as an agent: ``--mlab-agent='command:claude -p {prompt}'``,
``command:./my_agent.sh``.

It runs in the sandbox, in the workspace. The environment leads it to the trial's model, whatever
model it asks for; its model calls are the steps. When it ends, the workspace is scored as it
stands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

from pydantic import BaseModel, ConfigDict, Field, field_validator

from pytest_mlab import ConfigError, Environment, Execution, ProgramFailed

PROMPT = "{prompt}"
PROMPT_FILE = "{prompt_file}"
LONGEST_WORD = 128 * 1024 - 1
"""Bytes of one argument or variable of a program at most (the kernel's MAX_ARG_STRLEN, less the
null byte)."""
LAST_LINES = 5
_COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class CommandSettings(BaseModel):
    """What can be changed about the agent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str = Field(
        default="",
        description=(
            "the command line, words as in a shell; {prompt} stands for the task's text,"
            " {prompt_file} for a file that holds it"
        ),
    )
    files: tuple[str, ...] = Field(
        default=(),
        description="further files and folders of the rootdir that the command names and may read",
    )
    env: tuple[str, ...] = Field(
        default=(), description="further variables for the program, each NAME=value"
    )
    patience: float = Field(
        default=10.0,
        ge=0,
        description="seconds that the program may go on once the budget is used up",
    )

    @field_validator("command")
    @classmethod
    def _words(cls, command: str) -> str:
        try:
            shlex.split(command)
        except ValueError as error:
            raise ValueError(f"{error}; write it as for a shell") from None
        return command

    @field_validator("env")
    @classmethod
    def _assignments(cls, env: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [one for one in env if not one.partition("=")[0] or "=" not in one]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is not NAME=value")
        return env


class CommandAgent:
    """Runs one program to its end."""

    needs_model = True
    model_optional = True
    needs_endpoint = True
    Settings = CommandSettings

    def __init__(self, settings: CommandSettings | None = None) -> None:
        self.settings = settings or self.Settings()
        self.words = shlex.split(self.settings.command)
        self.program = "" if "/" in (self.words or ["/"])[0] else self.words[0]

    def program_files(self, rootdir: Path) -> Mapping[str, Path]:
        """Words of the command that name something of the project, and what the settings name
        besides."""
        if not self.words:
            raise ConfigError(
                "the agent command runs nothing yet: write --mlab-agent='command:PROGRAM ARGUMENTS'"
            )
        found = dict(self._named_in_command(rootdir))
        for name in self.settings.files:
            if not (rootdir / name).exists():
                raise ConfigError(
                    f"the agent command: {rootdir / name} (files={name}) does not exist"
                )
            found[name] = rootdir / name
        return found

    def _named_in_command(self, rootdir: Path) -> Iterator[tuple[str, Path]]:
        for number, word in enumerate(self.words):
            path = rootdir / word
            if Path(word).is_absolute() or not (path.is_file() or ("/" in word and path.is_dir())):
                if number == 0 and "/" in word and not Path(word).is_absolute():
                    raise ConfigError(f"the agent command: the program {path} does not exist")
                continue
            if number == 0 and not path.stat().st_mode & 0o111:
                raise ConfigError(f"the agent command: {path} may not be executed: chmod +x {word}")
            yield word, path

    def run(self, env: Environment) -> None:
        """Until the program ends, or the budget does."""
        prompt = Template(
            Path(__file__).with_name("command_prompt.md").read_text(encoding="utf-8")
        ).substitute(task=env.task_description.strip())
        fill = {PROMPT: prompt}
        if any(PROMPT_FILE in word for word in self.words):
            fill[PROMPT_FILE] = env.put_file("task.md", prompt.encode())
        asks = any(place in word for word in self.words for place in (PROMPT, PROMPT_FILE))
        argv = [_filled(word, fill) for word in self.words]
        self._check_lengths(argv)
        variables = dict(one.split("=", 1) for one in self.settings.env)
        if len(prompt.encode()) + len("MLAB_TASK=") <= LONGEST_WORD:
            variables = {"MLAB_TASK": prompt, **variables}
        else:
            env.note(
                "left_out",
                {"text": f"MLAB_TASK: {len(prompt.encode())} bytes fit into no variable"},
            )
        done = env.run_program(
            argv,
            env=variables,
            stdin=b"" if asks else prompt.encode(),
            patience=self.settings.patience,
        )
        if done.exit_status != 0:
            raise ProgramFailed(f"{self.words[0]} {ended(done)}")

    def _check_lengths(self, argv: list[str]) -> None:
        """Raise ProgramFailed for a word that no program can be given."""
        for word, filled in zip(self.words, argv, strict=True):
            size = len(filled.encode())
            if size > LONGEST_WORD:
                raise ProgramFailed(
                    f"{self.words[0]} cannot be started: with the task's text the argument {word!r}"
                    f" has {size} bytes, and an argument has at most {LONGEST_WORD}; to fix: write"
                    f" {PROMPT_FILE} in place of {PROMPT}, and have the program read that file"
                )


def ended(done: Execution) -> str:
    """How a program failed, with the last lines that it printed."""
    how = (
        f"was killed ({done.killed_for})"
        if done.killed_for
        else f"ended with exit status {done.exit_status}"
    )
    text = _COLOUR.sub("", done.output.decode("utf-8", "replace"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (
        f"{how}: {' / '.join(lines[-LAST_LINES:])[-600:]}"
        if lines
        else f"{how} and printed nothing"
    )


def _filled(word: str, fill: Mapping[str, str]) -> str:
    """``word`` with its placeholders filled; what stands in a text that was filled in is text."""
    return re.sub("|".join(map(re.escape, fill)), lambda found: fill[found.group()], word)
