"""Understand File, the research log, Request Help and Final Answer."""

from __future__ import annotations

import pytest

from pytest_mlab.errors import ContextWindowError
from pytest_mlab.trial.actions import understand
from tests.trial.conftest import FakeModel, MakeTrial

ASK = {"file_name": "f", "things_to_look_for": "the answer"}


def test_a_short_file_is_read_at_once(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"f": b"forty-two"}, model=FakeModel([" It is 42.\n"]))
    assert trial.do("Understand File", **ASK).text == "It is 42."
    ((role, prompt),) = trial.model.asked
    assert role == "fast"
    assert "forty-two" in prompt
    assert "the answer" in prompt


def test_a_long_file_is_read_in_blocks_and_put_together(make_trial: MakeTrial) -> None:
    content = b"A" * 10_000 + b"B" * 10_000 + b"C" * 5
    trial = make_trial(
        env={"f": content}, model=FakeModel(["about A", "about B", "about C", "about all"])
    )
    assert trial.do("Understand File", **ASK).text == "about all"
    prompts = [prompt for _, prompt in trial.model.asked]
    assert "A" * 10_000 in prompts[0]
    assert "BB" not in prompts[0]
    assert "part 3 of 3" in prompts[2]
    assert all(part in prompts[3] for part in ("about A", "about B", "about C", "the answer"))


def test_what_was_not_read_is_said(make_trial: MakeTrial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(understand, "MAX_READ", 10)
    trial = make_trial(env={"f": b"x" * 12}, model=FakeModel(["read"]))
    assert (
        trial.do("Understand File", **ASK).text
        == "read\n(The last 2 characters of f were not read.)"
    )


def test_a_file_with_template_signs_is_read_as_it_is(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"f": b"$name ${x} $$"}, model=FakeModel(["ok"]))
    assert trial.do("Understand File", **ASK).ok
    assert "$name ${x} $$" in trial.model.asked[0][1]


def test_its_failures_are_observations(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"f": b"x", "bin": b"\0"}, model=FakeModel([ContextWindowError("long")]))
    assert "too long for the model" in trial.do("Understand File", **ASK).text
    assert "binary" in trial.do("Understand File", file_name="bin", things_to_look_for="x").text
    assert (
        "does not exist"
        in trial.do("Understand File", file_name="none", things_to_look_for="x").text
    )
    assert [s.ok for s in trial.steps()] == [False, False, False]


def test_the_research_log_is_kept_and_asked(make_trial: MakeTrial) -> None:
    trial = make_trial(model=FakeModel(["relevant", "thoughts"]))
    for action, args in (
        ("Retrieval from Research Log", {"current_plan": "p"}),
        ("Reflection", {"things_to_reflect_on": "q"}),
    ):
        seen = trial.do(action, **args)
        assert not seen.ok
        assert "the research log is empty" in seen.text
    assert trial.do("Append Summary to Research Log", content="first\n").ok
    assert trial.do("Append Summary to Research Log", content="second ä").ok
    log = trial.env.log_dir / "research_log.log"
    assert log.read_text() == "first\n\nsecond ä\n\n"
    assert trial.do("Retrieval from Research Log", current_plan="my plan").text == "relevant"
    assert trial.do("Reflection", things_to_reflect_on="my question").text == "thoughts"
    (_, plan), (_, question) = trial.model.asked
    assert "first\n\nsecond ä" in plan
    assert "my plan" in plan
    assert "my question" in question
    assert {role for role, _ in trial.model.asked} == {"fast"}
    assert trial.do("List Files", dir_path=".").text == "(the folder is empty)"


def test_nobody_helps_in_a_benchmark(make_trial: MakeTrial) -> None:
    seen = make_trial().do("Request Help", request="what now?")
    assert not seen.ok
    assert (
        seen.text == "Request Help: no person can be asked in this run; decide yourself and go on"
    )


def test_the_final_answer_is_done(make_trial: MakeTrial) -> None:
    seen = make_trial().do("Final Answer", final_answer="42")
    assert seen.ok
    assert seen.done
