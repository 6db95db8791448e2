"""Models by alias: from the file to the request, the trial's name, the plan and the run that is
resumed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest

from tests.support.project import RUN, Project
from tests.support.research_replies import research_reply, submit
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
OPTIONS = ("--mlab-agent=research", "--mlab-model=mine", "--mlab-max-steps=2", "--mlab-gate=none")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("MINE_API_KEY", KEY)
    with ScriptedServer(key=KEY) as found:
        yield found


def write(project: Project, server: ScriptedServer, **changes: str) -> None:
    text = MODELS.format(url=server.base_url)
    for old, new in changes.items():
        text = text.replace(old, new)
    (project.path / "mlab-models.toml").write_text(text, encoding="utf-8")


def test_an_alias_is_the_trials_name_and_its_settings_go_out(
    project: Project, server: ScriptedServer
) -> None:
    write(project, server)
    server.restart(
        [research_reply("Execute Script", {"script_name": "train.py"}), submit()], key=KEY
    )
    done = project.spawn(*OPTIONS, "--mlab-model-arg=max_tokens=77", "--mlab-max-cost=1", "-v")
    assert done.ret == 0, done.outlines
    done.stdout.fnmatch_lines(["*guess-research-mine-1*"])
    assert {request.model for request in server.requests} == {"my-model"}
    assert {
        (body["temperature"], body["max_tokens"]) for body in (r.body for r in server.requests)
    } == {(0.25, 77)}
    ledger = project.result("guess/research--mine/1")["ledger"]
    assert ledger["usage"]["prompt_tokens"] == server.usage.prompt_tokens
    paid = server.usage.prompt_tokens * 1e-6 + server.usage.completion_tokens * 2e-6
    assert ledger["cost"] == pytest.approx(paid)
    [frozen] = json.loads((project.run_dir / "plan.json").read_text())["settings"]["models"]
    assert (frozen["name"], frozen["model"]) == ("mine", "openai/my-model")
    assert frozen["params"] == {"temperature": 0.25, "base_url": server.base_url, "max_tokens": 77}
    assert [
        f for f in project.run_dir.rglob("*") if f.is_file() and KEY.encode() in f.read_bytes()
    ] == []


def test_workers_agree_and_a_resumed_run_keeps_its_settings(
    project: Project, server: ScriptedServer
) -> None:
    write(project, server)
    server.restart(lambda _: submit(), key=KEY)
    done = project.spawn(*OPTIONS, "--mlab-repeats=2", "-n", "2")
    assert done.ret == 0, done.outlines
    shutil.rmtree(project.trial("guess/research--mine/2"))
    write(project, server, **{"0.25": "0.75"})
    again = project.spawn(f"--mlab-resume={RUN}", *OPTIONS, "--mlab-repeats=2", run_dir=False)
    again.stderr.fnmatch_lines(
        [
            "*params of the model mine was {'temperature': 0.25, *}, is {'temperature': 0.75, *};"
            " repeat its options*"
        ]
    )
    asked = len(server.requests)
    done = project.spawn(f"--mlab-resume={RUN}", "--mlab-gate=none", run_dir=False)
    assert done.ret == 0, done.outlines
    assert [request.body["temperature"] for request in server.requests[asked:]] == [0.25]


def test_a_mistake_in_the_file_is_a_usage_error(project: Project, server: ScriptedServer) -> None:
    write(project, server, temperature="temprature")
    done = project.spawn(*OPTIONS)
    assert done.ret == 4
    done.stderr.fnmatch_lines(
        ["*mlab-models.toml: models.mine: temprature=0.25: openai takes no such*temperature*"]
    )
    assert not project.run_dir.exists()


def test_replies_that_do_not_parse_are_charged(project: Project, server: ScriptedServer) -> None:
    write(project, server)
    server.restart(["no format at all", "still none", submit()], key=KEY)
    done = project.spawn(*OPTIONS)
    assert done.ret == 0, done.outlines
    ledger = project.result("guess/research--mine/1")["ledger"]
    assert ledger["model_calls"] == len(server.requests) == 3
    assert ledger["usage"]["completion_tokens"] == server.usage.completion_tokens
    assert ledger["steps"] == 1


def test_the_settings_of_a_file_by_name_and_of_the_ini_file(
    project: Project, server: ScriptedServer
) -> None:
    write(project, server)
    (project.path / "mlab-models.toml").rename(project.path / "other.toml")
    (project.path / "pytest.ini").write_text(
        "[pytest]\nmlab_models = other.toml\nmlab_model_arg = temperature=0.5\n"
    )
    server.restart([submit()], key=KEY)
    done = project.spawn(*OPTIONS)
    assert done.ret == 0, done.outlines
    assert server.requests[0].body["temperature"] == 0.5
