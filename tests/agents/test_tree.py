"""The tree agent: which solution it works on, what its model reads and writes, and what stands at
the end."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

import pytest

from agents.tree import TreeAgent, TreeSettings
from agents.tree_reading import Review, Solution, read_review, read_solution
from agents.tree_search import Node, Tree
from pytest_mlab.core.actions import Action, Observation
from pytest_mlab.core.budget import Budget
from pytest_mlab.errors import BudgetExhausted, ContextWindowError
from tests.support.fake_environment import FakeEnvironment, FakeModel

# --- the search ---


def node(
    index: int,
    metric: float | None = None,
    *,
    stage: Any = "draft",
    parent: Node | None = None,
    lower: bool = False,
    ok: bool = True,
) -> Node:
    return Node(
        index, stage, parent, "", {}, "train.py", index, "", ok, metric is None, metric, lower
    )


@dataclass(frozen=True)
class Policy:
    num_drafts: int = 2
    debug_probability: float = 0.5
    max_debug_depth: int = 2


def chosen(tree: Tree, policy: Policy, seed: int = 0) -> tuple[str, int | None]:
    stage, parent = tree.choose(policy, random.Random(seed))
    return stage, None if parent is None else parent.index


def test_drafts_come_first_whatever_became_of_them() -> None:
    tree = Tree()
    assert chosen(tree, Policy()) == ("draft", None)
    tree.nodes.append(node(1, 0.5))
    assert chosen(tree, Policy()) == ("draft", None)
    tree.nodes.append(node(2))
    assert chosen(tree, Policy(debug_probability=0)) == ("improve", 1)
    assert chosen(tree, Policy(debug_probability=1)) == ("debug", 2)


def test_without_a_good_one_there_is_another_draft() -> None:
    assert chosen(Tree([node(1), node(2)]), Policy(debug_probability=0)) == ("draft", None)


def test_only_leaves_are_mended_and_not_for_ever() -> None:
    first = node(1)
    second = node(2, stage="debug", parent=first)
    third = node(3, stage="debug", parent=second)
    always = Policy(num_drafts=1, debug_probability=1, max_debug_depth=2)
    assert chosen(Tree([first, second]), always) == ("debug", 2)
    assert chosen(Tree([first, second, third]), always) == ("draft", None)
    assert third.debug_depth == 2


def test_chance_is_the_seed_s() -> None:
    tree = Tree([node(n) for n in range(1, 9)] + [node(9, 0.5)])
    picks = [chosen(tree, Policy(), seed) for seed in range(20)]
    assert picks == [chosen(tree, Policy(), seed) for seed in range(20)]
    assert {stage for stage, _ in picks} == {"debug", "improve"}


def test_the_best_in_either_direction_the_earliest_of_equals() -> None:
    higher = Tree([node(1, 0.5), node(2, 0.7), node(3, 0.7), node(4)])
    assert higher.best is higher.nodes[1]
    lower = Tree([node(1, 0.5, lower=True), node(2, 0.7, lower=True), node(3, 0.9)])
    assert lower.best is lower.nodes[0]
    divided = Tree([node(1, 0.5, lower=True), node(2, 0.7)])
    assert divided.lower_is_better, "the first review's word when they are divided"


def test_what_stands_when_nothing_works() -> None:
    assert Tree([node(1, ok=False)]).standing is None
    ran = node(1)
    assert Tree([ran, node(2, ok=False)]).standing is ran


# --- reading ---

FENCED = '"""Usage:\n\n```\npython a.py\n```\n"""\nx = 1\n'


@pytest.mark.parametrize(
    ("text", "files", "run"),
    [
        ("Plan: p\nFile: a.py\n```python\nx = 1\n```\nRun: a.py", (("a.py", "x = 1\n"),), "a.py"),
        ("Plan: p\n**File:** `a.py`\n\n```\nx\n```\n**Run:** `b.py`", (("a.py", "x\n"),), "b.py"),
        (
            "Plan: p\nFile: net.py\n```\nn\n```\nFile: a.txt\n```\nt\n```",
            (("net.py", "n\n"), ("a.txt", "t\n")),
            "net.py",
        ),
        (
            "Plan: p\n```\nshort\n```\nor\n```python\nmuch longer\n```",
            (("train.py", "much longer\n"),),
            "train.py",
        ),
        ("Plan: p\nRun: train.py", (), "train.py"),
        (
            "Plan: p\nFile: a.py\n```\nprint('Run: b.py')\nRun: c.py\n```",
            (("a.py", "print('Run: b.py')\nRun: c.py\n"),),
            "a.py",
        ),
        (
            f"Plan: p\nFile: a.py\n```python\n{FENCED}```\nFile: b.py\n```\ny = 2\n```\nRun: a.py",
            (("a.py", FENCED), ("b.py", "y = 2\n")),
            "a.py",
        ),
        (f"Plan: p\n````\n{FENCED}````\nRun: a.py", (("train.py", FENCED),), "a.py"),
        (
            "Plan: p\nFile: r.md\n~~~md\n```sh\nls\n```\n~~~\nRun: a.py",
            (("r.md", "```sh\nls\n```\n"),),
            "a.py",
        ),
    ],
    ids=[
        *("as asked", "decorated", "two files", "no name", "run only", "run inside"),
        *("fences inside", "longer fence", "a text with blocks"),
    ],
)
def test_solutions(text: str, files: tuple[tuple[str, str], ...], run: str) -> None:
    assert read_solution(text, "train.py") == Solution("p", files, run)


@pytest.mark.parametrize("text", ["", "I would train longer.", "```python\nnever closed"])
def test_no_solution(text: str) -> None:
    assert read_solution(text, "train.py") is None


@pytest.mark.parametrize(
    ("metric", "read"),
    [
        ("0.5", 0.5),
        ("3", 3.0),
        ("null", None),
        ("NaN", None),
        ("Infinity", None),
        ("true", None),
        ('"0.5"', None),
    ],
)
def test_metrics(metric: str, read: float | None) -> None:
    text = (
        f'```json\n{{"is_bug": false, "summary": "s", "metric": {metric}, "lower_is_better":'
        " true}\n```"
    )
    assert read_review(text) == Review(False, "s", read, True)


@pytest.mark.parametrize(
    "text", ["", "in short", "{", '{"is_bug": "no", "lower_is_better": false}', "[1]", "{}"]
)
def test_no_review(text: str) -> None:
    assert read_review(text) is None


# --- the agent ---


def reply(value: str, plan: str = "try") -> str:
    return f"Plan: {plan} {value}\nFile: train.py\n```python\nscore({value})\n```\nRun: train.py"


def world(*replies: Any, steps: int = 9) -> FakeEnvironment:
    """A script's score is what it says; ``fail`` fails. Reviews tell the truth."""
    written = ""

    def react(action: Action) -> str | Observation:
        nonlocal written
        if action.name == "List Files":
            return "train.csv\ntrain.py\ndata/"
        if action.name == "Write File":
            written = str(action.args["content"])
        if action.name == "Execute Script":
            value = written.partition("(")[2].partition(")")[0]
            return Observation(f"score {value}", ok=value != "fail")
        return "done"

    def review(prompt: str) -> str:
        value = prompt.rpartition("score ")[2].split()[0].strip("`")
        good = value.replace(".", "").isdigit()
        found = {
            "is_bug": not good,
            "summary": f"saw {value}",
            "metric": float(value) if good else None,
        }
        return json.dumps({**found, "lower_is_better": False})

    model = FakeModel(main=list(replies), fast=review)
    return FakeEnvironment(model, react, budget=Budget(max_steps=steps))


def asked(env: FakeEnvironment) -> list[str]:
    assert isinstance(env.model, FakeModel)
    return env.model.prompts()


def names(env: FakeEnvironment) -> list[str]:
    return [action.name for action in env.executed]


def settings(**changed: Any) -> TreeSettings:
    return TreeSettings(**{"num_drafts": 1, "debug_probability": 0.0, **changed})


def nodes(env: FakeEnvironment) -> list[tuple[str, Any, Any]]:
    return [
        (data["stage"], data["parent"], data["metric"])
        for kind, data in env.notes
        if kind == "node"
    ]


def test_goes_back_to_the_best_and_submits_it_with_its_last_step() -> None:
    env = world(reply("5"), reply("3"), reply("7"))
    TreeAgent(settings()).run(env)
    assert names(env) == [
        "List Files",
        "Read File",
        *["Write File", "Execute Script"] * 3,
        "Final Answer",
    ]
    assert nodes(env) == [("draft", None, 5.0), ("improve", 1, 3.0), ("improve", 1, 7.0)]
    # the second was worse: back to step 4 before its review; the third began there, was better only
    # by its review
    assert env.restored == [4, 4, 8]
    assert "metric 7.0" in str(env.executed[-1].args["final_answer"])


def test_what_stands_while_a_model_is_asked_is_the_best() -> None:
    env = world(reply("5"), reply("3"), BudgetExhausted("no tokens left", limit="tokens"))
    with pytest.raises(BudgetExhausted):
        TreeAgent(settings()).run(env)
    assert env.restored[-1] == 4


def test_a_failing_one_is_mended_from_where_it_failed() -> None:
    env = world(reply("fail"), reply("4"), steps=7)
    TreeAgent(settings(debug_probability=1.0)).run(env)
    assert nodes(env) == [("draft", None, None), ("debug", 1, 4.0)]
    assert env.restored == [2, 4], (
        "back to the start as nothing stands, then to what is to be mended"
    )
    prompt = asked(env)[1]
    assert "does not work" in prompt
    assert "score fail" in prompt
    assert "A review found: saw fail" in prompt


def test_prompts_tell_the_files_the_best_and_what_was_tried() -> None:
    env = world(reply("5", "plain"), reply("6", "wider"), reply("7"))
    TreeAgent(settings()).run(env)
    draft, first, second = asked(env)
    assert "train.csv" in draft
    assert "`train.py` at the start" in draft
    assert "Make the number larger. It costs $5." in draft
    assert "What was tried before" not in draft
    assert "score(5)" in first
    assert "- plain 5 Result: metric 5. saw 5" in first
    assert "score(6)" in second
    assert "score(5)" not in second
    assert "- plain 5" in second


def test_answers_of_no_use_end_it_after_a_while() -> None:
    env = world(*["It is a fine day."] * 4)
    TreeAgent(settings(re_asks=1, give_up=2)).run(env)
    assert names(env) == ["List Files", "Read File", "Final Answer"]
    assert "neither a file nor a script" in asked(env)[1]
    assert "no solution worked" in str(env.executed[-1].args["final_answer"])


def test_more_files_than_steps_are_refused() -> None:
    many = "Plan: p\n" + "\n".join(f"File: f{n}.py\n```\nscore({n})\n```" for n in range(9))
    env = world(many, reply("5"), steps=6)
    TreeAgent(settings()).run(env)
    assert nodes(env) == [("draft", None, 5.0)]
    assert "it changes 9 files, at most 2 can be changed now" in asked(env)[1]


def test_a_review_of_no_use_leaves_it_unjudged() -> None:
    env = world(reply("5"), steps=5)
    assert isinstance(env.model, FakeModel)
    env.model.fast = lambda prompt: "fine"
    TreeAgent(settings(re_asks=2)).run(env)
    assert len(env.model.prompts("fast")) == 3
    assert nodes(env) == [("draft", None, None)]
    assert env.restored == [], "what ran to its end stands"


def test_a_prompt_that_does_not_fit_is_narrowed() -> None:
    env = world(ContextWindowError("too long"), reply("5"), steps=5)
    env.task_description = "t"
    TreeAgent(settings()).run(env)
    assert ("prompt_narrowed", {"scale": 0.5}) in env.notes
    assert nodes(env) == [("draft", None, 5.0)]


def test_prompts_that_never_fit_raise() -> None:
    env = world(*[ContextWindowError("too long")] * 20)
    with pytest.raises(ContextWindowError):
        TreeAgent(settings()).run(env)


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_the_smallest_budgets(steps: int) -> None:
    env = world(reply("5"), steps=steps)
    TreeAgent(settings()).run(env)
    assert names(env)[-1] == "Final Answer"
    assert len(env.history) == (1 if steps < 3 else steps)


def test_as_many_as_it_is_told() -> None:
    env = world(reply("5"), reply("6"), steps=50)
    TreeAgent(settings(max_nodes=2)).run(env)
    assert len(nodes(env)) == 2


def test_files_that_were_not_kept_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    env = world(reply("5"), reply("3"), steps=9)
    monkeypatch.setattr(FakeEnvironment, "restore", lambda self, step: ("model.pt",))
    TreeAgent(settings(max_nodes=2)).run(env)
    assert ("made_again", {"node": 1, "files": ["model.pt"]}) in env.notes
    assert names(env)[-3:] == ["Execute Script", "Execute Script", "Final Answer"]
