"""An action that another package adds."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from pytest_mlab.core.trial import Outcome
from pytest_mlab.errors import ConfigError
from pytest_mlab.store.events import StepDone
from pytest_mlab.trial.actions import GROUP, with_outside
from pytest_mlab.trial.runner import TrialRunner
from tests.support.research_replies import research_reply, submit
from tests.support.scripted_server import ScriptedServer
from tests.support.toy_run import make_run
from tests.support.toy_suite import write_toy_suite

SHOUTING = """
from pytest_mlab import ActionAnswer, ActionError, action


@action(
    "Shout",
    "Repeats a text in capitals.",
    returns="The text.",
    order=15,
    text=(str, "what to shout"),
    times=(int, "how often"),
)
def shout(context, args):
    if args["times"] > 3:
        raise ActionError("that is too loud")
    context.workspace.write("shouted.txt", args["text"].encode())
    return ActionAnswer(" ".join([args["text"].upper()] * args["times"]))

"""


def install(site: Path) -> None:
    """A package whose entry point is the action."""
    info = site / "shouting-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pytest_mlab.actions]\nshout = shouting:shout\n")
    (site / "shouting.py").write_text(SHOUTING)


def test_an_agent_sees_and_does_it_and_the_trace_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    write_toy_suite(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-0123456789")
    replies = [
        research_reply("Shout", {"text": "hello", "times": 2}),
        research_reply("Shout", {"text": "hello", "times": 9}),
        research_reply("Shout", {"text": "hello"}),
        submit(),
    ]
    with ScriptedServer(replies) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run = make_run(tmp_path, ["research"], model="gpt-4-turbo")
        (trial,) = run.plan.trials
        with TrialRunner(run.path) as trials:
            result = trials.run(trial)
        prompt = server.requests[0].prompt
    assert result.outcome is Outcome.NO_SUBMISSION, result.reason
    for shown in ("Shout", "Repeats a text in capitals.", "what to shout", "how often"):
        assert shown in prompt
    assert prompt.index("List Files") < prompt.index("Shout") < prompt.index("Copy File")
    steps = [event for event in run.trial(trial).events() if isinstance(event, StepDone)]
    assert [(s.action, s.ok) for s in steps] == [
        ("Shout", True),
        ("Shout", False),
        ("Shout", False),
        ("Final Answer", True),
    ]
    assert steps[0].args == {"text": "hello", "times": 2}
    assert steps[0].observation == "HELLO HELLO"
    assert "shouted.txt" in steps[0].set
    assert steps[1].observation == "Shout: that is too loud"
    assert "missing times" in steps[2].observation


FILES = "pytest_mlab.trial.actions.files"


@pytest.mark.parametrize(
    ("reference", "named"),
    [
        (f"{FILES}:SHOWN", "mine = "),
        (f"{FILES}:absent", "mine = "),
        ("no_such_package:shout", "mine = "),
        (FILES, "mine = "),
        (f"{FILES}:read_file", "'Read File'"),
    ],
)
def test_what_is_not_an_action_is_a_config_error_that_names_it(reference: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        with_outside([EntryPoint("mine", reference, GROUP)])
