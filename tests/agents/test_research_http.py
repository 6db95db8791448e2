"""The research agent through the real litellm against the scripted server: what is spent, written
and survived."""

from __future__ import annotations

import pytest

from agents.research import ResearchAgent
from agents.research_retrieval import ResearchRetrievalAgent
from pytest_mlab.core.actions import Action
from pytest_mlab.core.budget import Budget
from pytest_mlab.errors import AuthError, BudgetExhausted, ProviderDownError
from tests.agents.conftest import KEY, Trial
from tests.support import scripted_server as script
from tests.support.fake_environment import FakeEnvironment
from tests.support.research_replies import research_reply, submit
from tests.support.scripted_server import Entry, Request

RUN = research_reply("Execute Script", {"script_name": "train.py"})
EDIT = research_reply(
    "Edit Script (AI)",
    {"script_name": "train.py", "edit_instruction": "more trees", "save_name": "train.py"},
)


def by_model(
    *main: Entry, edit: Entry = "print('edited')", fast: Entry = "in short"
) -> script.Script:
    """Main replies one after the other, always the same ones of the other two models."""
    replies = iter(main)

    def answer(request: Request) -> Entry:
        if request.model == "gpt-4-turbo":
            return next(replies, script.bad_request("no main reply left"))
        return edit if request.model == "gpt-4o" else fast

    return answer


def environment(trial: Trial, output: str = "accuracy 0.7") -> FakeEnvironment:
    def react(action: Action) -> str:
        if action.name == "Edit Script (AI)":
            return trial.model.complete(str(action.args["edit_instruction"]), role="edit").text
        return output

    return FakeEnvironment(trial.model, react, budget=trial.account.budget)


def test_a_good_run(trial: Trial) -> None:
    trial.server.restart(by_model(EDIT, RUN, submit()), key=KEY)
    env = environment(trial)
    ResearchAgent().run(env)
    assert [step.action.name for step in env.history] == [
        "Edit Script (AI)",
        "Execute Script",
        "Final Answer",
    ]
    assert env.history[0].observation.text == "print('edited')"
    assert [(call.role, call.model) for call in trial.calls] == [
        ("main", "gpt-4-turbo"),
        ("edit", "gpt-4o"),
        ("main", "gpt-4-turbo"),
        ("main", "gpt-4-turbo"),
    ]
    ledger = trial.account.ledger
    assert ledger.usage == trial.server.usage
    assert ledger.known_cost == pytest.approx(sum(call.cost or 0 for call in trial.calls))
    assert ledger.cost > 0


def test_the_request_stops_before_the_observation(trial: Trial) -> None:
    trial.server.restart(by_model(submit()), key=KEY)
    ResearchAgent().run(environment(trial))
    body = trial.server.requests[0].body
    assert (body["temperature"], body["stop"]) == (0.5, ["Observation:"])


@pytest.mark.parametrize(
    "entry",
    [
        "I would try a larger model.",
        script.empty(),
        script.empty(None),
        script.refusal(),
        "{} " * 100,
    ],
    ids=["prose", "empty", "null", "refusal", "braces"],
)
def test_replies_that_never_parse_are_bounded_and_paid_for(trial: Trial, entry: Entry) -> None:
    trial.server.restart(lambda _: entry, key=KEY)
    env = environment(trial)
    env.budget = Budget(max_steps=3)
    with pytest.raises(BudgetExhausted):
        ResearchAgent().run(env)
    assert len(env.history) == 3
    assert len(trial.server.requests) == 4 * 6 == trial.account.ledger.model_calls
    assert trial.account.ledger.usage == trial.server.usage


def test_arguments_that_are_no_json(trial: Trial) -> None:
    broken = research_reply("Execute Script", "run train.py please")
    trial.server.restart(by_model(broken, RUN, submit()), key=KEY)
    env = environment(trial)
    ResearchAgent().run(env)
    assert [step.observation.ok for step in env.history] == [False, True, True]
    prompts = [request.prompt for request in trial.server.requests]
    assert ["could not be read" in prompt for prompt in prompts] == [False, True, False]


def test_a_long_observation_goes_through_the_fast_model(trial: Trial) -> None:
    trial.server.restart(by_model(RUN, submit(), fast="loss fell to 0.3"), key=KEY)
    ResearchAgent().run(environment(trial, "epoch loss " * 2_000))
    assert [call.model for call in trial.calls] == [
        "gpt-4-turbo",
        *["gpt-4o-mini"] * 4,
        "gpt-4-turbo",
    ]
    assert {
        request.body["temperature"]
        for request in trial.server.requests
        if request.model == "gpt-4o-mini"
    } == {0.01}
    assert "loss fell to 0.3" in trial.server.requests[-1].prompt


def test_with_retrieval(trial: Trial) -> None:
    trial.server.restart(by_model(RUN, RUN, RUN, RUN, submit(), fast="a summary"), key=KEY)
    env = environment(trial)
    ResearchRetrievalAgent().run(env)
    names = [step.action.name for step in env.history]
    assert names.count("Append Summary to Research Log") == 4
    assert names[-2:] == ["Retrieval from Research Log", "Final Answer"]


def test_passing_faults_are_survived(trial: Trial) -> None:
    faults: list[Entry] = [
        script.rate_limited(0),
        RUN,
        script.server_error(),
        script.drop(),
        RUN,
        script.malformed(),
        submit(),
    ]
    trial.server.restart(by_model(*faults), key=KEY)
    env = environment(trial)
    ResearchAgent().run(env)
    assert len(env.history) == 3
    assert [call.retries for call in trial.calls] == [1, 2, 1]


def test_a_prompt_that_does_not_fit_is_shortened(trial: Trial) -> None:
    trial.server.restart(by_model(RUN, RUN, script.context_length(), submit()), key=KEY)
    env = environment(trial)
    ResearchAgent().run(env)
    assert ("history_shortened", {"shown_steps": 1}) in env.notes
    assert [call.error[:18] for call in trial.calls] == ["", "", "ContextWindowError", ""]


@pytest.mark.parametrize(
    ("entry", "kind", "requests"),
    [(script.unauthorized(), AuthError, 1), (script.server_error(), ProviderDownError, 3)],
    ids=["401", "500"],
)
def test_lasting_faults_pass_through_as_what_they_are(
    trial: Trial, entry: Entry, kind: type[Exception], requests: int
) -> None:
    trial.server.restart(lambda _: entry, key=KEY)
    with pytest.raises(kind):
        ResearchAgent().run(environment(trial))
    assert len(trial.server.requests) == requests
    assert trial.calls[0].error.startswith(kind.__name__)


def test_the_key_is_in_no_file_of_the_trial(trial: Trial) -> None:
    telltale = research_reply(
        "Execute Script", {"script_name": "train.py"}, thought=f"the key is {KEY}"
    )
    trial.server.restart(by_model(telltale, script.unauthorized(echo=KEY)), key=KEY)
    env = environment(trial, f"OPENAI_API_KEY={KEY}")
    with pytest.raises(AuthError) as caught:
        ResearchAgent().run(env)
    assert KEY not in str(caught.value)
    assert [request.key for request in trial.server.requests] == [KEY, KEY]
    assert (
        KEY in trial.server.requests[1].prompt
    )  # the model itself wrote it: it is in the prompt, and only there
    files = trial.files()
    assert len(files) >= 4
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []
