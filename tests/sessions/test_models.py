"""Models by alias: from the file to the request, the trial's name, the plan and the run that is
resumed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest

from tests.support.project import RUN, Project
from tests.support.research_replies import submit
from tests.support.scripted_server import ScriptedServer

KEY = "sk-of-mine-0123456789"
MODELS = """
[models.mine]
model = "openai/my-model"
temperature = 0.25
base_url = "{url}"
api_key_env = "MINE_API_KEY"
input_cost_per_token = 1e-6
output_cost_per_token = 2e-6
"""
OPTIONS = (
    "--mlab-agent=research",
    "--mlab-model=mine",
    "--mlab-max-steps=2",
    "--mlab-max-cost=1",
    "--mlab-gate=none",
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("MINE_API_KEY", KEY)
    with ScriptedServer(key=KEY) as found:
        yield found


def write(
    project: Project, server: ScriptedServer, file: str = "mlab-models.toml", **changes: str
) -> None:
    text = MODELS.format(url=server.base_url)
    for old, new in changes.items():
        text = text.replace(old, new)
    (project.path / file).write_text(text, encoding="utf-8")


def test_settings_of_an_alias_hold_for_all_workers_and_for_the_resumed_run(
    project: Project, server: ScriptedServer
) -> None:
    """The models' file is named in the ini file, as is one of their settings."""
    (project.path / "pytest.ini").write_text(
        "[pytest]\nmlab_models = other.toml\nmlab_model_arg = max_tokens=77\n"
    )
    write(project, server, file="other.toml")
    server.restart(lambda _: submit(), key=KEY)
    done = project.spawn(*OPTIONS, "--mlab-repeats=2", "-n", "2", "-v")
    assert done.ret == 0, done.outlines
    done.stdout.fnmatch_lines(["*guess-research-mine-1*"])
    assert {request.model for request in server.requests} == {"my-model"}
    assert {
        (body["temperature"], body["max_tokens"]) for body in (r.body for r in server.requests)
    } == {(0.25, 77)}
    ledgers = [project.result(f"guess/research--mine/{n}")["ledger"] for n in (1, 2)]
    tokens = [
        sum(ledger["usage"][kind] for ledger in ledgers)
        for kind in ("prompt_tokens", "completion_tokens")
    ]
    assert tokens == [server.usage.prompt_tokens, server.usage.completion_tokens]
    paid = tokens[0] * 1e-6 + tokens[1] * 2e-6
    assert sum(ledger["cost"] for ledger in ledgers) == pytest.approx(paid)
    [frozen] = json.loads((project.run_dir / "plan.json").read_text())["settings"]["models"]
    assert (frozen["name"], frozen["model"]) == ("mine", "openai/my-model")
    assert frozen["params"] == {"temperature": 0.25, "base_url": server.base_url, "max_tokens": 77}
    assert [
        f for f in project.run_dir.rglob("*") if f.is_file() and KEY.encode() in f.read_bytes()
    ] == []

    shutil.rmtree(project.trial("guess/research--mine/2"))
    write(project, server, file="other.toml", **{"0.25": "0.75"})
    again = project.run(f"--mlab-resume={RUN}", *OPTIONS, "--mlab-repeats=2", run_dir=False)
    again.stderr.fnmatch_lines(
        [
            "*params of the model mine was {'temperature': 0.25, *}, is {'temperature': 0.75, *};"
            " repeat its options*"
        ]
    )
    asked = len(server.requests)
    done = project.run(f"--mlab-resume={RUN}", "--mlab-gate=none", run_dir=False)
    assert done.ret == 0, done.outlines
    assert [request.body["temperature"] for request in server.requests[asked:]] == [0.25]
    assert {request.body["max_tokens"] for request in server.requests} == {77}
