"""A task's own script, run outside a trial."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_mlab.core.sandbox_api import Connection, SandboxSpec
from pytest_mlab.core.task import Task
from pytest_mlab.errors import SuiteError
from pytest_mlab.sandboxes.local import Local
from pytest_mlab.suites.loader import load_task
from pytest_mlab.trial.provision import provision
from pytest_mlab.trial.scripted import run_script
from pytest_mlab.trial.workspace import Workspace
from tests.support.toy_suite import write_toy_task


@dataclass
class Stage:
    """A toy task in a fresh workspace, in the sandbox ``local``."""

    task: Task
    workspace: Workspace
    connection: Connection
    outputs: Path

    def reference(self, *actions: str) -> None:
        """Run a reference of these ``[[action]]`` tables."""
        last = 'name = "Final Answer"\nargs.final_answer = "done"\n'
        text = "\n".join(f"[[action]]\n{action}" for action in (*actions, last))
        (self.task.folder / "reference" / "actions.toml").write_text(text)
        run_script(self.task, "reference", self.workspace, self.connection, self.outputs)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    write_toy_task(tmp_path / "guess")
    task = load_task(tmp_path / "guess", "toy")
    workspace = provision(task, tmp_path, {}, tmp_path / "workspace", mounts=False)
    connection = Local().open(SandboxSpec(workspace.root, f"script-{tmp_path.name}"))
    yield Stage(task, workspace, connection, tmp_path / "outputs")
    connection.close()


def write(name: str, content: str) -> str:
    return f'name = "Write File"\nargs.file_name = "{name}"\nargs.content = """{content}"""\n'


def execute(name: str) -> str:
    return f'name = "Execute Script"\nargs.script_name = "{name}"\n'


def test_the_actions_are_those_of_a_trial(stage: Stage) -> None:
    stage.reference(
        write("a.py", "print('x' * 40_000)\nopen('b', 'w').write('c')"),
        execute("a.py"),
        'name = "Copy File"\nargs.source = "b"\nargs.destination = "d"\n',
    )
    assert (stage.workspace.root / "d").read_text() == "c"
    assert (stage.outputs / "outputs" / "step-0002.txt").stat().st_size == 40_001


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("1 / 0", "a.py failed with exit status 1: a.py:1: ZeroDivisionError: division by zero"),
        ("raise SystemExit('no luck')", "a.py failed with exit status 1: no luck"),
        ("import os; os._exit(3)", "a.py failed with exit status 3. It printed nothing."),
    ],
)
def test_a_script_that_fails_is_a_suite_error(stage: Stage, script: str, reason: str) -> None:
    with pytest.raises(SuiteError) as error:
        stage.reference(write("a.py", script), execute("a.py"), write("later", ""))
    assert str(error.value) == f"guess: {reason}"
    assert not (stage.workspace.root / "later").exists()


@pytest.mark.parametrize("name", ["../outside", "absent.py"])
def test_an_action_that_cannot_be_done_is_a_suite_error(stage: Stage, name: str) -> None:
    with pytest.raises(SuiteError, match="guess: Execute Script"):
        stage.reference(execute(name))
