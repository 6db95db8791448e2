"""The agent of docs/your-agent.md works as it stands there, and the table of docs/agents.md names
every agent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_mlab.agentfiles.loader import builtin_agents, load_agent
from pytest_mlab.core.trial import EndedBy, Outcome
from pytest_mlab.trial.runner import TrialRunner
from tests.support.scripted_server import ScriptedServer
from tests.support.toy_run import make_run
from tests.support.toy_suite import BETTER_TRAIN, write_toy_suite

DOCS = Path(__file__).parents[2] / "docs"
[EXAMPLE] = re.findall(
    r"(?ms)^```python\n([^`]*?class Careful\b.*?)^```",
    (DOCS / "your-agent.md").read_text(encoding="utf-8"),
)


@pytest.mark.parametrize(
    ("replies", "args", "steps", "outcome"),
    [
        (["raise SystemExit('not yet')", BETTER_TRAIN], [], 5, Outcome.SUCCESS),
        (["raise SystemExit('not yet')", BETTER_TRAIN], ["tries=1"], 3, Outcome.NO_SUBMISSION),
    ],
    ids=["defaults", "tries=1"],
)
def test_the_example_works(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    replies: list[str],
    args: list[str],
    steps: int,
    outcome: Outcome,
) -> None:
    write_toy_suite(tmp_path)
    (tmp_path / "careful.py").write_text(EXAMPLE, encoding="utf-8")
    with ScriptedServer(replies) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-0123456789")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run = make_run(tmp_path, [str(tmp_path / "careful.py")], model="gpt-4-turbo", args=args)
        with TrialRunner(run.path) as runner:
            result = runner.run(run.plan.trials[0])
        assert (result.outcome, result.ended_by) == (outcome, EndedBy.SUBMITTED), result.reason
        assert result.ledger.steps == steps
        assert all("The output of train.py:" in request.prompt for request in server.requests)


def test_the_table_names_every_agent_and_whether_it_calls_a_model() -> None:
    page = (DOCS / "agents.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"(?m)^\| `([\w-]+)` \| (yes|no) \|", page))
    root = Path("/nowhere")
    assert rows == {
        name: "yes" if load_agent(name, root).needs_model else "no" for name in builtin_agents()
    }
