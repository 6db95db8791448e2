"""The agent in docs/agents.md loads and works as it stands there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from pytest_mlab.adapters.agent_loader import load_agent
from tests.support.fake_environment import FakeEnvironment, FakeModel

DOCS = Path(__file__).parents[2] / "docs" / "agents.md"


def test_the_example(tmp_path: Path) -> None:
    block = re.search(r"(?ms)^    from pytest_mlab import .*?return\n", DOCS.read_text(encoding="utf-8"))
    assert block
    (tmp_path / "greedy.py").write_text(textwrap.dedent(block.group()), encoding="utf-8")
    agent = load_agent(str(tmp_path / "greedy.py"), tmp_path)
    env = FakeEnvironment(FakeModel(["print('better')"]))
    agent().run(env)
    assert [action.name for action in env.executed] == ["Write File", "Execute Script", "Final Answer"]
