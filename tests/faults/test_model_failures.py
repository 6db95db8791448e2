"""Models that talk nonsense and providers that fail: told apart from each other and from an agent's
own failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.faults.session import Said, Session, fits
from tests.support import scripted_server as script
from tests.support.research_replies import research_reply, submit
from tests.support.scripted_server import Entry, Request, ScriptedServer

KEY = "sk-not-a-real-key-0123456789"
ATTEMPTS = 3
STEPS = 3

RUN = research_reply("Execute Script", {"script_name": "train.py"})

FAILING: dict[str, tuple[Entry, str, int]] = {
    # model: what the server does, a part of the reason, requests
    "refused-key": (script.unauthorized(echo=KEY), "AuthError: ", 1),
    "forbidden": (script.unauthorized(403), "AuthError: ", 1),
    "storm": (script.rate_limited(0), "RateLimitError: ", ATTEMPTS),
    "patience": (script.rate_limited(9999), "RateLimitError: ", 1),
    "quota": (script.out_of_quota(), "QuotaError: ", 1),
    "down": (script.server_error(500), "ProviderDownError: ", ATTEMPTS),
    "overloaded": (script.server_error(503), "ProviderDownError: ", ATTEMPTS),
    "hanging": (script.hang(), "ProviderDownError: ", ATTEMPTS),
    "dropping": (script.drop(), "ProviderDownError: ", ATTEMPTS),
    "garbled": (script.malformed(), "ProviderDownError: ", ATTEMPTS),
}

TALKING: dict[str, Entry] = {
    "babbling": "I would rather talk about the weather.",
    "empty": script.empty(),
    "null": script.empty(None),
    "refusing": script.refusal(),
    "unknown-action": research_reply("Dance", {"style": "tango"}),
    "bad-arguments": research_reply("Execute Script", "not json at all"),
    "binary": "\x00\x01\ufffd\x1b[2J" * 100,
}

REJECTED: dict[str, tuple[Entry, str]] = {
    "too-long": (script.context_length(), "the agent raised ContextWindowError"),
    "malformed-request": (script.bad_request(), "the agent raised BadRequestError"),
}


def answers() -> script.Script:
    """What to do with a request, by the model that it names."""
    good = iter([RUN, submit()])
    passing: list[Entry] = [
        script.rate_limited(0),
        script.drop(),
        RUN,
        script.server_error(),
        submit(),
    ]
    recovering = iter(passing)

    def answer(request: Request) -> Entry:
        model = request.model.rpartition("/")[2]
        if model == "good":
            return next(good)
        if model == "recovering":
            return next(recovering)
        if model in FAILING:
            return FAILING[model][0]
        if model in REJECTED:
            return REJECTED[model][0]
        return TALKING[model]

    return answer


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(answers(), key=KEY) as found:
        yield found


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("project"))


def environment(url: str) -> dict[str, str]:
    """A key, a provider, and little patience with it."""
    return {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": url,
        "MLAB_MODEL_ATTEMPTS": str(ATTEMPTS),
        "MLAB_MODEL_WAIT": "0.01",
        "MLAB_MODEL_TIMEOUT": "0.7",
    }


@pytest.fixture(scope="module")
def said(session: Session, server: ScriptedServer) -> Said:
    names = [*FAILING, *TALKING, *REJECTED, "recovering", "good"]
    models = [f"--mlab-model=openai/{name}" for name in names]
    return session.pytest(f"--mlab-max-steps={STEPS}", *models, env=environment(server.base_url))


def place(model: str) -> tuple[str, str]:
    """The folder and the name of a model's trial."""
    return f"guess/research--openai-{model}/1", f"guess-research-openai-{model}-1"


def requests(server: ScriptedServer) -> Counter[str]:
    """How often each model was asked."""
    return Counter(request.model.rpartition("/")[2] for request in server.requests)


@pytest.mark.parametrize("model", FAILING)
def test_the_provider_fails(
    session: Session, server: ScriptedServer, said: Said, model: str
) -> None:
    _, reason, asked = FAILING[model]
    folder, name = place(model)
    result = session.result(folder)
    assert result["outcome"] == "provider_error", result["reason"]
    assert reason in result["reason"]
    assert requests(server)[model] == asked
    assert (f", after {asked} attempts" in result["reason"]) == (asked > 1)
    text = said.part(f"test_beats_baseline[{name}]")
    assert text.startswith("provider_error: ")
    assert fits(text) == []
    assert session.case(name).text.startswith(f"provider_error: {result['reason']}")


@pytest.mark.parametrize("model", TALKING)
def test_the_model_talks_nonsense(
    session: Session, server: ScriptedServer, said: Said, model: str
) -> None:
    folder, name = place(model)
    result = session.result(folder)
    assert (result["outcome"], result["ended_by"]) == ("no_submission", "steps"), result["reason"]
    assert f"used {STEPS} of {STEPS} steps" in said.part(f"test_beats_baseline[{name}]")
    assert STEPS <= requests(server)[model] <= STEPS * 6


@pytest.mark.parametrize("model", REJECTED)
def test_a_request_that_the_provider_rejects_is_the_agents_fault(
    session: Session, said: Said, model: str
) -> None:
    result = session.result(place(model)[0])
    assert result["outcome"] == "agent_error"
    assert REJECTED[model][1] in result["reason"]
    assert said.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("model", ["recovering", "good"])
def test_what_passes_is_survived(session: Session, said: Said, model: str) -> None:
    result = session.result(place(model)[0])
    assert (result["outcome"], result["score"]) == ("below_threshold", 0.4), result["reason"]
    assert said.ret == pytest.ExitCode.TESTS_FAILED


def test_they_are_told_apart(session: Session, said: Said) -> None:
    assert (
        f"ERRORS: {len(FAILING)} trials ended in an error that the agent did not make" in said.out
    )
    found = {
        subject["model"].rpartition("/")[2]: subject for subject in session.summary()["subjects"]
    }
    for model in FAILING:
        assert found[model]["success"]["rate_without_errors"] is None, found[model]["success"]
    for model in (*TALKING, *REJECTED):
        assert found[model]["success"]["rate_without_errors"] == 0.0


def test_the_key_is_nowhere(session: Session, said: Said) -> None:
    assert KEY not in said.out + said.err
    files = [path for path in session.path.rglob("*") if path.is_file()]
    assert any(path.name == "trace.jsonl" for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
