"""The agents of docs/your-agent.md work as they stand there, with a model that answers as most do;
and the table of docs/agents.md names every agent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mlab.agentfiles.loader import builtin_agents, load_agent
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId
from pytest_mlab.trial.runner import TrialRunner
from tests.support.scripted_server import ScriptedServer
from tests.support.toy_run import make_run
from tests.support.toy_suite import BETTER_TRAIN, write_toy_suite

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = {
    name: block
    for block in re.findall(
        r"(?ms)^```python\n(.*?)^```", (DOCS / "your-agent.md").read_text(encoding="utf-8")
    )
    for name in re.findall(r"(?m)^class (\w+):", block)
}
FENCED = "Here is the new file.\n\n```python\n{}\n```\n\nIt should be better now."


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-0123456789")
        patch.setenv("OPENAI_BASE_URL", found.base_url)
        yield found


@pytest.fixture(scope="module")
def runner(
    server: ScriptedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TrialRunner]:
    """A run of the examples, of one also with a setting."""
    root = tmp_path_factory.mktemp("example")
    write_toy_suite(root)
    files = {name: root / f"{name.lower()}.py" for name in EXAMPLES}
    for name, file in files.items():
        file.write_text(EXAMPLES[name], encoding="utf-8")
    refs = [*map(str, files.values()), f"{files['Careful']}[tries=1]"]
    run = make_run(root, refs, model="gpt-4-turbo")
    with TrialRunner(run.path) as found:
        yield found


@pytest.mark.parametrize(
    ("agent", "steps", "outcome"),
    [
        ("careful", 5, Outcome.SUCCESS),
        ("careful[tries=1]", 3, Outcome.NO_SUBMISSION),
        ("greedy", 5, Outcome.SUCCESS),
    ],
)
def test_the_example_works(
    runner: TrialRunner, server: ScriptedServer, agent: str, steps: int, outcome: Outcome
) -> None:
    answers = [FENCED.format(code) for code in ("raise SystemExit('not yet')", BETTER_TRAIN)]
    server.restart(answers)
    result = runner.run(TrialId("guess", agent, "gpt-4-turbo", 1))
    assert (result.outcome, result.ended_by) == (outcome, EndedBy.SUBMITTED), result.reason
    assert result.ledger.steps == steps
    asked = "Answer with" if agent == "greedy" else "The output of train.py:"
    assert all(asked in request.prompt for request in server.requests)


def test_the_table_names_every_agent_and_whether_it_calls_a_model() -> None:
    page = (DOCS / "agents.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"(?m)^\| `([\w-]+)` \| (yes|no) \|", page))
    root = Path("/nowhere")
    assert rows == {
        name: "yes" if load_agent(name, root).needs_model else "no" for name in builtin_agents()
    }
