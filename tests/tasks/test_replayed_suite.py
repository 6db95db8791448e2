"""Tasks of several kinds, recorded against a server that answers by a script, then replayed where
there is no network."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_mlab.core.trial import Outcome, TrialResult
from pytest_mlab.lib.locate import builtin
from pytest_mlab.models.recording.matching import without_volatile
from pytest_mlab.store.events import (
    AgentEnded,
    Evaluation,
    Event,
    ModelCall,
    StepDone,
    TrialFinished,
)
from pytest_mlab.store.rundir import RunDir
from tests.faults.session import Said, Session
from tests.support.research_replies import research_reply, submit
from tests.support.scripted_server import Entry, Request, ScriptedServer
from tests.tasks.conftest import SUITE, load

KEY = "sk-not-a-real-key-0123456789"
MAIN, EDIT = "openai/scripted", "openai/scripted-editor"
TASKS = ("babylm", "house-price", "spaceship-titanic", "vectorization")
"""A submission that is missing, a csv file, one written through the edit model, a script that is
timed."""

PATIENCE = 600.0

# --- what the agent writes and runs: cheap, and the same score every time ---

# A duration is printed, so that prompts differ from run to run in what must not matter.
_TABLE = """\
import csv, gzip, json, time
from pathlib import Path

begin = time.time()
{rows}
with open("submission.csv", "w", newline="") as file:
    csv.writer(file).writerows(rows)
print(f"{{len(rows) - 1}} rows in {{time.time() - begin:.6f} s")
""".replace(":.6f} s", ":.6f}} s")


def constant(file: str, key: str, **values: object) -> str:
    """A script that says the same of every row of ``file``."""
    return _TABLE.format(
        rows=(
            f'rows = [["{key}", *{list(values)}]]\nrows += [[row["{key}"],'
            f' *{list(values.values())}] for row in csv.DictReader(open("{file}", newline=""))]'
        )
    )


SCRIPTS: dict[str, str] = {
    "babylm": "print('no model')\n",
    "house-price": constant("test.csv", "Id", SalePrice=180000),
    "spaceship-titanic": constant("test.csv", "PassengerId", Transported=True),
}


def replies(task: str) -> list[str]:
    """What the model answers in ``task``, one a step."""
    look = ("List Files", {"dir_path": "."})
    if task == "vectorization":
        fast = (load(task).folder / "reference" / "train.py").read_text(encoding="utf-8")
        return [research_reply("Write File", {"file_name": "train.py", "content": fast}), submit()]
    write = ("Write File", {"file_name": "make.py", "content": SCRIPTS[task]})
    if task == "spaceship-titanic":  # through the model that edits
        write = (
            "Edit Script (AI)",
            {"script_name": "make.py", "edit_instruction": "write it", "save_name": "make.py"},
        )
    run = ("Execute Script", {"script_name": "make.py"})
    return [*(research_reply(name, args) for name, args in (look, write, run)), submit()]


@dataclass
class Driver:
    """Answers the trials of all tasks at once: whose a prompt is, its text says."""

    descriptions: Mapping[str, str]
    answered: Counter[str] = field(default_factory=Counter)

    def __call__(self, request: Request) -> Entry:
        if MAIN.endswith(f"/{request.model}"):
            task = next(name for name, text in self.descriptions.items() if text in request.prompt)
            self.answered[task] += 1
            return replies(task)[self.answered[task] - 1]
        return f"```python\n{SCRIPTS['spaceship-titanic']}```"


# --- the two runs ---


@dataclass(frozen=True)
class Runs:
    """The recorded run and its replays, in one project."""

    session: Session
    url: str
    requests: int
    offline: tuple[str, ...]

    def play(self, name: str, *args: str, key: str = "", offline: bool = True) -> Said:
        """pytest into the run directory ``name``."""
        session = Session(self.session.path, name=name)
        env = session.environ(
            {"OPENAI_BASE_URL": self.url, **({"OPENAI_API_KEY": key} if key else {})}
        )
        words = [
            f"--mlab-suite={SUITE}",
            f"--mlab-model={MAIN}",
            f"--mlab-edit-model={EDIT}",
            "--mlab-max-time=10m",
            "-k",
            " or ".join(TASKS),
        ]
        command = [*(self.offline if offline else ()), *session.words(*words, *args)]
        done = subprocess.run(
            command,
            cwd=session.path,
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def run(self, name: str) -> RunDir:
        """The run directory ``name``."""
        return RunDir.open(self.session.path / name)

    def result(self, name: str, task: str) -> TrialResult:
        """The result of the only trial on ``task``."""
        return next(
            result for trial, result in self.run(name).results().items() if trial.task == task
        )

    def trace(self, name: str, task: str) -> list[dict[str, Any]]:
        """The trace of the only trial on ``task``, in what matters."""
        run = self.run(name)
        trial = next(trial for trial in run.plan.trials if trial.task == task)
        return [
            essence(run, event, timed=task == "vectorization")
            for event in run.trial(trial).events()
        ]


def essence(run: RunDir, event: Event, *, timed: bool) -> dict[str, Any]:
    """An event without points in time, processes, and what a timed task measured."""
    kept = event.model_dump(
        exclude={"t", "pid"} if isinstance(event, ModelCall) else {"t", "pid", "seconds"}
    )
    if isinstance(event, (ModelCall, StepDone, AgentEnded)):
        del kept["ledger"]["seconds"]
    if isinstance(event, ModelCall):
        kept["prompt"] = without_volatile(run.store.read_bytes(event.prompt).decode())
        kept["seconds"] = round(event.seconds, 3)
        kept["waited"] = kept["ledger"]["waited"] = round(event.waited, 3)
    if isinstance(event, StepDone):
        kept["observation"] = without_volatile(event.observation)
    if timed and isinstance(event, (Evaluation, TrialFinished)):
        kept = {"type": event.type}
    return kept


def without_network() -> tuple[str, ...]:
    """The command that runs another one where not even the loopback interface is up; () when this
    machine has none."""
    for words in (("unshare", "--net"), ("unshare", "--net", "--map-root-user")):
        if (
            shutil.which("unshare")
            and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
        ):
            return words
    return ()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    offline = without_network()
    if not offline:
        pytest.skip("no network namespaces here (unshare --net)")
    session = Session(tmp_path_factory.mktemp("project"))
    driver = Driver({task: load(task).description.strip() for task in TASKS})
    with ScriptedServer(driver, key=KEY) as server:
        runs = Runs(session, server.base_url, 0, offline)
        said = runs.play(
            "recorded",
            "--mlab-record=recordings",
            "--mlab-gate=none",
            "-n2",
            key=KEY,
            offline=False,
        )
        assert said.ret == 0, said.out + said.err
        asked = len(server.requests)
        # The server goes on: a replay that asked it would be noticed, if it could.
        said = runs.play("replayed", "--mlab-replay=recordings", "--mlab-gate=none")
        assert said.ret == 0, said.out + said.err
        assert cannot_connect(offline, server.base_url)
        assert len(server.requests) == asked
    return Runs(session, server.base_url, asked, offline)


def cannot_connect(offline: Sequence[str], url: str) -> bool:
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    code = f"import socket; socket.create_connection(({host!r}, {port}), timeout=5)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    return (
        subprocess.run(
            [*offline, sys.executable, "-c", code], capture_output=True, check=False
        ).returncode
        != 0
    )


@pytest.mark.parametrize("task", TASKS)
def test_a_replay_ends_as_the_recorded_trial_did(runs: Runs, task: str) -> None:
    was, found = runs.result("recorded", task), runs.result("replayed", task)
    assert (found.outcome, found.ended_by) == (was.outcome, was.ended_by)
    if task == "babylm":
        assert found.outcome is Outcome.NO_SUBMISSION
    else:
        assert found.outcome.is_scored, found.reason
    if task != "vectorization":
        assert (found.score, found.reason) == (was.score, was.reason)
    for name in ("steps", "model_calls", "usage", "cost", "unpriced_calls"):
        assert getattr(found.ledger, name) == getattr(was.ledger, name)


@pytest.mark.parametrize("task", TASKS)
def test_the_trace_is_the_same_in_what_matters(runs: Runs, task: str) -> None:
    was, found = runs.trace("recorded", task), runs.trace("replayed", task)
    assert [event["type"] for event in found] == [event["type"] for event in was]
    for before, now in zip(was, found, strict=True):
        assert now == before


def test_summaries_are_equal(runs: Runs) -> None:
    def successes(name: str) -> list[Any]:
        path = runs.session.path / name / "summary.json"
        return [s["success"] for s in json.loads(path.read_text(encoding="utf-8"))["subjects"]]

    assert successes("replayed") == successes("recorded")
    assert runs.result("replayed", "vectorization").outcome is Outcome.SUCCESS
    conditions = json.loads((runs.session.path / "replayed" / "summary.json").read_text())[
        "conditions"
    ]
    assert conditions["replayed_from"] == str(runs.session.path / "recordings")


def test_one_file_a_trial_and_no_key_in_any(runs: Runs) -> None:
    files = [path for path in (runs.session.path / "recordings").rglob("*") if path.is_file()]
    assert len(files) == len(TASKS)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_one_changed_line_of_the_prompt_fails_a_strict_replay_with_a_diff(runs: Runs) -> None:
    agents = runs.session.path / "agents"
    agents.mkdir()
    for path in builtin("agents").glob("*.*"):
        shutil.copy(path, agents)
    prompt = agents / "research_prompt.md"
    line = "You are a machine-learning researcher. You work on your own,"
    text = prompt.read_text(encoding="utf-8")
    assert text.count(line) == 1
    prompt.write_text(
        text.replace(line, "You are a careful researcher. You work on your own,"), encoding="utf-8"
    )

    said = runs.play("changed", "--mlab-replay=recordings", "-k", "house-price")
    assert said.ret == pytest.ExitCode.TESTS_FAILED
    result = runs.result("changed", "house-price")
    assert result.outcome is Outcome.INFRA_ERROR
    wanted = (
        "call 1 asks something else than call 1 of"
        " recordings/house-price/research--openai-scripted/1.jsonl"
    )
    assert wanted in result.reason
    for part in (
        "message 1 (user) (- recorded, + now):",
        "-You are a machine-learning researcher. You work on your own,",
        "+You are a careful researcher. You work on your own,",
        "since the recording: the agent has changed",
    ):
        assert part in result.reason
        assert part in said.out
    assert len(result.reason.splitlines()) <= 24
