"""The agent's ``run``, plain or ``async``, and the exception that it ended with."""

from __future__ import annotations

import inspect
import shlex
import traceback
from collections.abc import Awaitable, Iterator
from pathlib import Path

from pytest_mlab.core.agent_api import Agent, Environment
from pytest_mlab.core.plan import PlannedAgent, PlannedTask
from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import TrialOver

DEFAULT_SUITE = "mlagentbench"


def run_agent(agent: Agent, env: Environment) -> BaseException | None:
    """Let the agent work; the exception that it raised, None when it returned.

    What an ``async`` run returns is awaited by asyncio, in this thread. Of a group of exceptions,
    as task groups raise it, the one that is not the trial's end counts."""
    try:
        _complete(agent.run(env))
    except BaseException as error:  # noqa: BLE001 - whatever an agent raises is recorded as its end
        cause = _cause(error)
        if not isinstance(cause, TrialOver):
            traceback.print_exc()
        return cause
    return None


def _complete(returned: object) -> None:
    if inspect.isawaitable(returned):
        import asyncio  # here, because only async agents need it

        asyncio.run(_awaited(returned))
    # The loader refuses such a method; a decorator may hide it from the loader.
    elif inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        raise TypeError("run returned a generator, whose code never runs; take out its yield")


async def _awaited(returned: Awaitable[object]) -> None:
    # asyncio.run() takes coroutines only, and a decorator may return another awaitable.
    await returned


def _cause(error: BaseException) -> BaseException:
    """``error``, or what is in it when it is a group."""
    causes = list(_leaves(error))
    others = [cause for cause in causes if not isinstance(cause, TrialOver)]
    if not others:
        return causes[0]
    return others[0] if len(others) == 1 else error


def _leaves(error: BaseException) -> Iterator[BaseException]:
    # By its attribute: Python 3.10 has groups from the package exceptiongroup only.
    inner = getattr(error, "exceptions", None)
    if not (isinstance(inner, tuple) and inner):
        yield error
        return
    for one in inner:
        yield from _leaves(one)


def breakpoint_reason(
    error: BaseException | None, trial: TrialId, agent: PlannedAgent, task: PlannedTask
) -> str:
    """Why an agent that met a breakpoint ended, and the command that debugs it; '' for any other
    end."""
    import bdb

    # A debugger that finds the end of its input, which is /dev/null here, quits.
    if not isinstance(error, bdb.BdbQuit):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if Path(f.filename).name not in ("bdb.py", "pdb.py")]
    where = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    ref = f"{agent.ref}[{agent.said}]" if agent.said else agent.ref
    words = [f"--mlab-agent={ref}"]
    if trial.model:
        words.append(f"--mlab-model={trial.model}")
    if task.suite != DEFAULT_SUITE:
        words.append(f"--mlab-suite={Path(task.folder).parent}")
    words += [f"--mlab-task={trial.task}", "--mlab-repeats=1", "-n", "0", "--mlab-debug"]
    return (
        f"the agent stopped at a breakpoint{where}, and its process has no terminal; to debug it:"
        f" pytest {shlex.join(words)}"
    )
