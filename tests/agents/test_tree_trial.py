"""Whole trials of the tree agent beside agents that go straight on, all with one model whose edits
sometimes make things worse."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab import cli
from pytest_mlab.core.budget import Budget
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.store.events import Note, StepDone, WorkspaceRestored
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.trial.runner import TrialRunner
from tests.support.research_replies import react_reply, research_reply
from tests.support.scripted_server import Entry, Request, ScriptedServer
from tests.support.toy_run import make_run
from tests.support.toy_suite import BASELINE, write_toy_suite

KEY = "sk-not-a-real-key-0123456789"
MAIN, FAST = "gpt-4-turbo", "gpt-4o-mini"
STEPS = 19
SEED = "seed1"
AGAIN = "again"

SCRIPT = """\
LIMIT = {limit}

import csv


def guess(x):
    return "yes" if int(x) >= LIMIT else "no"


with open("train.csv", newline="") as file:
    rows = list(csv.DictReader(file))
print("validation accuracy:", sum(guess(row["x"]) == row["label"] for row in rows) / len(rows))
with open("test.csv", newline="") as file:
    rows = list(csv.DictReader(file))
with open("submission.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["id", "label"])
    writer.writerows([row["id"], guess(row["x"])] for row in rows)
"""


class Fallible:
    """A model that changes the last ``LIMIT`` it sees: towards the right one (40) or, as its luck
    has it, further away from it. It answers each agent in that agent's form."""

    FIRST = 90

    def __init__(self, agent: str, luck: str) -> None:
        self.agent = agent
        self.chance = random.Random(luck)
        self.acts = 0

    def __call__(self, request: Request) -> Entry:
        if request.model == FAST:
            metric = float(re.findall(r"validation accuracy: ([\d.]+)", request.prompt)[-1])
            return json.dumps(
                {"is_bug": False, "summary": "ran", "metric": metric, "lower_is_better": False}
            )
        if self.agent == "tree":
            code = SCRIPT.format(limit=self.edited(request.prompt))
            return f"Plan: another limit\nFile: train.py\n```python\n{code}```\nRun: train.py"
        speak = research_reply if self.agent == "research" else react_reply
        self.acts += 1
        if self.acts == STEPS:
            return speak("Final Answer", {"final_answer": "done"})
        if self.acts % 2 == 0 or self.acts == STEPS - 1:
            return speak("Execute Script", {"script_name": "train.py"})
        return speak(
            "Write File",
            {"file_name": "train.py", "content": SCRIPT.format(limit=self.edited(request.prompt))},
        )

    def edited(self, prompt: str) -> int:
        found = re.findall(r"LIMIT = (\d+)", prompt)
        if not found:
            return self.FIRST
        now = int(found[-1])
        if self.chance.random() < 0.5:
            return now - 10 if now > 40 else now + 10
        return min(100, now + 15) if now >= 40 else max(0, now - 15)


class Trials:
    """One run of a tree agent and two that go straight on; each trial has a copy of the toy
    task."""

    AGENTS = ("tree", "research", "react")

    def __init__(self, root: Path, server: ScriptedServer) -> None:
        write_toy_suite(root, tasks=(SEED, AGAIN))
        made = make_run(
            root,
            self.AGENTS,
            tasks=(SEED, AGAIN),
            model=MAIN,
            fast_model=FAST,
            budget=Budget(STEPS, 600.0),
            args=["tree.num_drafts=2"],
        )
        self.run = RunDir.open(made.path)
        self.server = server
        self.runner = TrialRunner(self.run.path)

    def trial(self, agent: str, task: str) -> TrialId:
        return TrialId(task, agent, MAIN, 1)

    def play(self, agent: str, task: str, seed: str = "") -> TrialResult:
        """A trial whose model has the luck of ``seed`` (default: the task's name)."""
        self.server.restart(Fallible(agent, seed or task), key=KEY)
        return self.runner.run(self.trial(agent, task))

    def notes(self, task: str) -> list[dict[str, Any]]:
        """What the tree agent noted of its nodes."""
        events = self.run.trial(self.trial("tree", task)).events()
        return [event.data for event in events if isinstance(event, Note) and event.kind == "node"]


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    with ScriptedServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        found = Trials(tmp_path_factory.mktemp("tree"), server)
        with found.runner:
            yield found


def test_beats_agents_that_cannot_go_back(trials: Trials) -> None:
    results = {agent: trials.play(agent, SEED) for agent in trials.AGENTS}
    assert {result.ended_by for result in results.values()} == {EndedBy.SUBMITTED}, results
    scores = {agent: result.score for agent, result in results.items()}
    tree = scores.pop("tree")
    assert tree is not None
    assert all(score is not None and tree > score for score in scores.values()), (tree, scores)
    assert {result.ledger.steps for result in results.values()} == {STEPS}
    assert results["tree"].outcome is Outcome.SUCCESS
    assert tree > BASELINE


def test_every_step_is_scored_from_its_snapshot_and_the_last_is_the_best(
    trials: Trials, capsys: pytest.CaptureFixture[str]
) -> None:
    result, trial = trials.play("tree", SEED), trials.trial("tree", SEED)
    events = list(trials.run.trial(trial).events())
    assert any(isinstance(event, WorkspaceRestored) for event in events)
    nodes = trials.notes(SEED)
    assert cli.main(["rescore", str(trials.run.path), trial.name, "--step", "all"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    scores = {row[0]: row[1] for row in rows if row and (row[0].isdigit() or row[0] == "final")}
    # the metric of each node is that of its own data, which are so alike that the scores agree
    assert [float(scores[str(node["step"])]) for node in nodes] == [
        node["metric"] for node in nodes
    ]
    assert float(scores["final"]) == max(node["metric"] for node in nodes) == result.score
    steps = [event for event in events if isinstance(event, StepDone)]
    assert steps[-1].action == "Final Answer"
    assert (
        steps[-1].snapshot
        == result.snapshot
        == steps[max(nodes, key=lambda node: node["metric"])["step"] - 1].snapshot
    )


def test_two_trials_are_alike(trials: Trials) -> None:
    """Chance is the seed's, so that a trial can be replayed."""
    trials.play("tree", SEED)
    trials.play("tree", AGAIN, SEED)
    assert trials.notes(AGAIN) == trials.notes(SEED) != []
