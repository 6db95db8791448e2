"""What bounds a whole run, on several workers: a provider's storms, dollars, and keys that are
refused."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.store.events import Event, ModelCall, Note
from pytest_mlab.store.journal import read_events
from tests.faults.session import Said, Session, fits
from tests.support import scripted_server as script
from tests.support.scripted_server import Entry, Request, ScriptedServer, say

KEY = "sk-not-a-real-key-0123456789"
CALLS = 8
TRIALS = 4
PATIENCE = 300.0
"""Several workers import litellm at the same time."""

ASKING = f"""\
class Asking:
    needs_model = True

    def run(self, env):
        env.note("begin", {{}})
        for number in range({CALLS}):
            env.model.complete(f"question {{number}} of {{env.log_dir.parent.name}}")
"""

FEW = ("--mlab-agent=asking", "--mlab-sandbox=local", "--mlab-max-time=10m")


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(key=KEY) as found:
        yield found


def session(folder: Path, calls: int = CALLS) -> Session:
    found = Session(folder, patience=PATIENCE)
    (folder / "agents").mkdir()
    (folder / "agents" / "asking.py").write_text(
        ASKING.replace(f"range({CALLS})", f"range({calls})")
    )
    return found


def environment(server: ScriptedServer, **more: str) -> dict[str, str]:
    return {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": server.base_url,
        "MLAB_MODEL_WAIT": "0.1",
        **more,
    }


def events(session: Session) -> list[Event]:
    """Those of all traces."""
    traces = (session.path / "run" / "trials").rglob("trace.jsonl")
    return [event for trace in traces for event in read_events(trace)]


def results(session: Session) -> dict[str, dict[str, Any]]:
    """All trials of summary.json by their name."""
    tasks = [task for subject in session.summary()["subjects"] for task in subject["tasks"]]
    return {trial["trial"]: trial for task in tasks for trial in task["trials"]}


RPM = 480
TROUBLE = (
    script.rate_limited(0.2),
    script.drop(),
    script.server_error(503),
    script.rate_limited(0.4),
)


def test_a_storm_over_workers_loses_no_trial_while_a_refused_key_stops_its_model_alone(
    tmp_path: Path, server: ScriptedServer
) -> None:
    """Every second question to one model is refused, cut off in the middle or failed when it is
    first asked; the key of the other model is refused."""
    asked: Counter[str] = Counter()
    arrived: list[float] = []

    def answer(request: Request) -> Entry:
        if request.model == "refused":
            return script.unauthorized(echo="sk-te***")
        arrived.append(time.time())
        asked[request.prompt] += 1
        kind = sum(int(word) for word in request.prompt.split() if word.isdigit())
        return (
            TROUBLE[kind // 2 % len(TROUBLE)]
            if kind % 2 and asked[request.prompt] == 1
            else say("an answer")
        )

    server.restart(answer, key=KEY)
    found = session(tmp_path)
    options = (
        "--mlab-model=openai/m",
        "--mlab-model=openai/refused",
        f"--mlab-repeats={TRIALS}",
        f"--mlab-rpm={RPM}",
        "--mlab-gate=none",
        "-n2",
    )
    said = found.pytest(*FEW, *options, env=environment(server, MLAB_MODEL_WINDOW="1"))
    assert said.ret == pytest.ExitCode.TESTS_FAILED, said.out
    assert_the_storm_passed(found, said, arrived)
    left = assert_its_model_stopped(found, said, server)

    server.restart(lambda request: say("an answer"), key=KEY)
    said = found.pytest("--mlab-resume=run", "--mlab-gate=none", env=environment(server))
    assert said.ret == 0, said.out
    assert found.summary()["missing"] == []
    assert len(server.requests) == left * CALLS


def assert_the_storm_passed(found: Session, said: Said, arrived: list[float]) -> None:
    assert f"mlab: openai/m {RPM} requests a minute" in said.out
    ended = {n: trial for n, trial in results(found).items() if "refused" not in n}
    assert Counter(trial["outcome"] for trial in ended.values()) == {"no_submission": TRIALS}

    calls = [
        event
        for event in events(found)
        if isinstance(event, ModelCall) and event.model == "openai/m"
    ]
    retries = TRIALS * CALLS // 2
    assert (len(calls), sum(call.retries for call in calls)) == (TRIALS * CALLS, retries)
    assert len(arrived) == TRIALS * CALLS + retries
    # Requests arrive after they were let through, by how much a busy machine decides: so those that
    # have arrived since a moment before the first was let through (the first note) are no more than
    # may have been let through by then.
    begin = min(event.t for event in events(found) if isinstance(event, Note))
    for number, moment in enumerate(sorted(arrived), 1):
        assert number <= RPM / 60 * (math.floor(moment - begin) + 1)

    assert all(call.waited > 0 for call in calls if call.retries)
    for trial in ended.values():
        used = trial["efficiency"]
        assert 0 < used["waited_seconds"] <= used["seconds"]


def assert_its_model_stopped(found: Session, said: Said, server: ScriptedServer) -> int:
    """The number of trials that were not started."""
    asked = Counter(request.model for request in server.requests)
    assert 1 <= asked["refused"] <= 2  # one of each worker, when both are on their way
    refused = Counter(
        trial["outcome"] for name, trial in results(found).items() if "refused" in name
    )
    assert set(refused) == {"provider_error", "not_run"}
    assert refused["provider_error"] <= 2
    assert found.summary()["missing"][0]["reason"].startswith(
        "not started: openai/refused: the provider refused the key"
    )
    # one message, not one for each trial
    assert said.out.count("FAILED ") == 1
    assert "FAILED mlab::stopped" in said.out
    text = " ".join(said.part("stopped").split())
    assert (
        f"{refused['not_run']} trials not started: openai/refused: the provider refused the key"
        in text
    )
    assert "the rest: pytest --mlab-resume=run" in text
    assert fits(said.part("stopped")) == []
    assert found.junit()["mlab::stopped"].status == "failure"
    return refused["not_run"]


def refusing(refusal: Entry) -> Callable[[Request], Entry]:
    """A provider that serves every model but one."""
    return lambda request: refusal if request.model == "refused" else say("an answer")


def test_an_account_without_money_stops_what_needs_it(
    tmp_path: Path, server: ScriptedServer
) -> None:
    """Here it is the model that edits: no trial of the agent can do without it, and the control
    asks nobody."""
    server.restart(refusing(script.out_of_quota()), key=KEY)
    found = session(tmp_path, calls=1)
    agent = found.path / "agents" / "asking.py"
    agent.write_text(agent.read_text().replace('.name}")', '.name}", role="edit")'))
    models = ("--mlab-model=openai/good", "--mlab-edit-model=openai/refused")
    said = found.pytest(
        *FEW, *models, "--mlab-agent=baseline", "--mlab-repeats=2", env=environment(server)
    )
    assert said.ret == pytest.ExitCode.TESTS_FAILED
    assert len(server.requests) == 1
    assert Counter(
        (name.split("-")[1], trial["outcome"]) for name, trial in results(found).items()
    ) == {
        ("asking", "provider_error"): 1,
        ("asking", "not_run"): 1,
        ("baseline", "below_threshold"): 2,
    }
    reason = "not started: openai/refused: the account has no money or quota left"
    assert reason in " ".join(said.part("stopped").split())
    assert reason in " ".join(found.mlab("report", "run").out.split())


def test_dollars_end_the_run_and_a_higher_limit_lets_it_go_on(
    tmp_path: Path, server: ScriptedServer
) -> None:
    """A call costs a dollar: four words of prompt, a quarter each."""
    found = session(tmp_path, calls=1)
    prices = (
        '[models.dear]\nmodel = "openai/m"\ninput_cost_per_token = 0.25\noutput_cost_per_token'
        " = 0\n"
    )
    (tmp_path / "mlab-models.toml").write_text(prices)
    server.restart(lambda request: say("yes"), key=KEY)

    def run(*args: str) -> Said:
        return found.pytest(
            *args, "--mlab-gate=none", env=environment(server, MLAB_MODEL_WINDOW="0.5")
        )

    limits = ("--mlab-run-max-cost=2.5", "--mlab-tpm=100")
    said = run(*FEW, "--mlab-model=dear", "--mlab-repeats=6", *limits, "-n2")
    assert said.ret == pytest.ExitCode.TESTS_FAILED, said.out
    spent = len(server.requests)
    assert 3 <= spent <= 4  # with two dollars spent, one more trial of each worker may start
    assert Counter(trial["outcome"] for trial in results(found).values()) == {
        "no_submission": spent,
        "not_run": 6 - spent,
    }
    spending = {"cost_usd": spent, "calls": spent, "unpriced_calls": 0, "run_max_cost_usd": 2.5}
    assert found.summary()["spending"] == spending
    assert "mlab: $2.50 for the run; dear 100 tokens a minute" in said.out
    assert f"spent ${spent}.00 of $2.50 for the run" in said.out
    assert (
        f"Spent ${spent}.00 of $2.50 for the run." in (found.path / "run" / "report.md").read_text()
    )
    assert found.junit_suite()["mlab.spent_usd"] == f"{spent}.0"
    text = " ".join(said.part("stopped").split())
    assert f"{6 - spent} trials not started: the $2.5 of the whole run are spent" in text
    notes = [event for event in events(found) if isinstance(event, Note) and event.kind == "limits"]
    assert "above the 100 of a minute: it goes alone" in notes[0].data["text"]

    said = run("--mlab-resume=run", f"--mlab-run-max-cost={spent}.5")
    assert (
        said.ret == pytest.ExitCode.TESTS_FAILED
    )  # what earlier sessions spent counts: one more trial starts
    assert len(server.requests) == spent + 1
    assert found.summary()["spending"] == spending | {
        "cost_usd": spent + 1,
        "calls": spent + 1,
        "run_max_cost_usd": spent + 0.5,
    }
