"""Agents that are programs: they run in the sandbox, and their model calls arrive at an endpoint,
each as a step."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_mlab.core.model_api import Model, ModelReply
from pytest_mlab.core.sandbox_api import Connection, Execution
from pytest_mlab.errors import (
    BadRequestError,
    BudgetExhausted,
    ContextWindowError,
    RequirementMissing,
    SandboxError,
    TrialOver,
)
from pytest_mlab.store.trialdir import TrialDir
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.actions.base import SHOWN, shortened
from pytest_mlab.trial.outputs import Output

OUTPUT = "program-{number:02d}.txt"
KEEP = 4 * SHOWN
_ASK_SECONDS = 60.0
_WORD = 300
# By a process inside, because the home of a sandbox may not exist on the host.
_WRITE = (
    "import os, sys; path = os.path.join(os.environ['HOME'], sys.argv[1]); "
    "open(path, 'wb').write(sys.stdin.buffer.read()); sys.stdout.write(path)"
)

Call = Callable[[Model], ModelReply]
ModelStep = Callable[[Mapping[str, Any], Call], ModelReply]
"""Does a model call as a step; its arguments are the description for the trace, and the call."""


class Gateway(Protocol):
    """Where a program reaches the trial's model."""

    def serve(self, answerer: ModelStep) -> AbstractContextManager[None]:
        """Answer a program's requests by ``answerer`` until the block is left."""
        ...

    def variables(self, port: int) -> Mapping[str, str]:
        """The environment that leads programs there, by way of ``port`` of their loopback
        device."""
        ...


@dataclass(frozen=True)
class ProgramRun:
    """A program's end: ``text`` is its output for the trace, ``output_file`` where the whole is,
    relative to the trial's folder; ``over`` is what ended the trial meanwhile, and is to be
    raised."""

    done: Execution
    text: str
    output_file: str
    over: Exception | None


class Programs:
    """Runs the programs of one trial. ``places`` are where files of the agent are seen inside, by
    the word for them; without a ``gateway`` programs have no model."""

    def __init__(
        self,
        connection: Connection,
        account: Account,
        trial_dir: TrialDir,
        *,
        gateway: Gateway | None = None,
        places: Mapping[str, str] | None = None,
    ) -> None:
        self._connection = connection
        self._account = account
        self._trial_dir = trial_dir
        self._gateway = gateway
        self._places = dict(places or {})
        self._count = 0

    @property
    def has_model(self) -> bool:
        """Whether model calls of programs are served, each as a step."""
        return self._gateway is not None

    def argv(self, words: Sequence[str]) -> list[str]:
        """``words``, the agent's files by their paths in the sandbox. Raises RequirementMissing
        when the sandbox has no such program."""
        argv = [self._placed(word) for word in words]
        # The name is an argument and not a part of the script, so that it needs no quoting.
        asked = self._connection.execute(
            ["sh", "-c", 'command -v -- "$1" >/dev/null', "sh", argv[0]], timeout=_ASK_SECONDS
        )
        # None: the question itself was stopped, which says nothing about the program.
        if asked.exit_status not in (0, None):
            raise RequirementMissing(
                f"the program {argv[0]!r} is not in the sandbox",
                fix=(
                    "install it where the sandbox shows it (/usr, or the Python environment of"
                    " pytest-mlab), name its files by --mlab-agent-arg=files=PATH, or take"
                    " --mlab-sandbox=docker with an image that has it"
                ),
            )
        return argv

    def _placed(self, word: str) -> str:
        for name, place in self._places.items():
            if word == name or word.startswith(f"{name}/"):
                return place + word[len(name) :]
        return word

    def put_file(self, name: str, content: bytes) -> str:
        """Write a file into the home of the sandbox; its path inside. Raises SandboxError."""
        done = self._connection.execute(
            [self._connection.python, "-c", _WRITE, name], stdin=content, timeout=_ASK_SECONDS
        )
        if done.exit_status != 0:
            raise SandboxError(
                f"the file {name} cannot be written in the sandbox: {done.output[-300:]!r}"
            )
        return done.output.decode()

    def run(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        stdin: bytes,
        patience: float,
        step: ModelStep,
    ) -> ProgramRun:
        """Run a program to its end, its model calls by ``step``. Raises SandboxError."""
        self._count += 1
        answerer = _Answerer(self._connection, step, patience)
        path = self._trial_dir.outputs / OUTPUT.format(number=self._count)
        try:
            with Output(path, 0) as output, self._serving(answerer) as variables:
                left = self._account.remaining_seconds()
                done = self._connection.execute(
                    list(argv),
                    env={**variables, **env},
                    stdin=stdin,
                    timeout=None if math.isinf(left) else left,
                    keep=KEEP,
                    sink=output,
                )
        finally:
            answerer.end()
        over = answerer.over
        if over is None and done.killed_for == "timeout":
            over = BudgetExhausted(
                "the trial's seconds are used up, while a program ran", limit="seconds"
            )
        root = self._trial_dir.path
        return ProgramRun(done, output.text(output.kept(root)), output.name(root), over)

    @contextlib.contextmanager
    def _serving(self, answerer: _Answerer) -> Iterator[Mapping[str, str]]:
        if self._gateway is None:
            yield {}
            return
        with self._gateway.serve(answerer.answer):
            yield self._gateway.variables(self._connection.relay_port)


class _Answerer:
    """Answers the model calls of a running program one at a time, and ends the program when no more
    can be answered."""

    def __init__(self, connection: Connection, step: ModelStep, patience: float) -> None:
        self._connection = connection
        self._step = step
        self._patience = patience
        self._turn = threading.Lock()
        self._timer: threading.Timer | None = None
        self._ended = False
        self.over: Exception | None = None
        """What ended the trial while the program ran."""

    def answer(self, about: Mapping[str, Any], call: Call) -> ModelReply:
        """One model call, a step of its own. Errors of this request alone go back to the program;
        all others end the trial."""
        with self._turn:
            # The program may go on asking after the trial's end. It gets the same reason each time.
            if self.over is not None:
                raise self.over.with_traceback(None)
            if self._ended:
                raise TrialOver("the program has ended")
            try:
                return self._step(about, call)
            # Programs shorten their prompt and try again.
            except (BadRequestError, ContextWindowError):
                raise
            except Exception as error:  # in the endpoint's thread nothing else would see it
                self.over = error
                # A program that is out of budget may want to write down its best result.
                patience = self._patience if isinstance(error, TrialOver) else 0.0
                self._timer = threading.Timer(patience, self._connection.cancel)
                self._timer.daemon = True
                self._timer.start()
                raise

    def end(self) -> None:
        """The program has ended: wait for a call that is under way, and stop the timer, which would
        cancel a later program."""
        with self._turn:
            self._ended = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()


def said(reply: ModelReply) -> str:
    """A reply as the trace shows it: its text, and a line for each tool call."""
    calls = [f"[calls {call.name} {call.arguments}]" for call in reply.tool_calls]
    return shortened("\n".join([*([reply.text] if reply.text else []), *calls]))


def shortened_words(argv: Sequence[str]) -> list[str]:
    """``argv`` for the trace, long words cut."""
    return [word if len(word) <= _WORD else f"{word[: _WORD - 3]}..." for word in argv]
