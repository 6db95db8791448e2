from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.core.trial import Outcome, TrialId, slug

TEXT = st.text(max_size=20)


@given(TEXT)
def test_a_slug_is_a_file_name_and_a_test_id(text: str) -> None:
    assert re.fullmatch(r"[a-z0-9._-]+", slug(text))
    assert slug(text) not in (".", "..")


@given(TEXT, TEXT)
def test_two_texts_do_not_share_a_slug(one: str, other: str) -> None:
    if slug(one) == slug(other):
        assert re.sub("[/:]", "-", one) == re.sub("[/:]", "-", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a b", "a-b"), ("A", "a"), ("ä", "ö"), ("", "x"), ("a.", "a"), ("-a", "a"), ("a  b", "a b")],
)
def test_texts_that_look_alike_are_told_apart(one: str, other: str) -> None:
    assert slug(one) != slug(other)


@given(st.from_regex(r"[a-z0-9][a-z0-9._-]*[a-z0-9]", fullmatch=True))
def test_what_is_a_slug_stays_as_it_is(text: str) -> None:
    assert slug(text) == text


def test_names_read_as_people_say_them() -> None:
    trial = TrialId("cifar10", "research", "gpt-4-turbo", 3)
    assert trial.name == "cifar10-research-gpt-4-turbo-3"
    assert trial.subject == "research--gpt-4-turbo"
    assert trial.folder == PurePosixPath("trials/cifar10/research--gpt-4-turbo/3")
    assert slug("openai/gpt-5") == "openai-gpt-5"


def test_an_agent_without_a_model_has_a_shorter_name() -> None:
    trial = TrialId("cifar10", "baseline", "", 1)
    assert (trial.name, trial.subject) == ("cifar10-baseline-1", "baseline")
    assert trial.folder == PurePosixPath("trials/cifar10/baseline/1")


@given(st.lists(TEXT, min_size=3, max_size=3), st.integers(1, 99))
def test_a_trials_folder_stays_inside_the_run(names: list[str], repeat: int) -> None:
    folder = TrialId(names[0], names[1], names[2], repeat).folder
    assert len(folder.parts) == 4
    assert ".." not in folder.parts


def test_there_are_nine_outcomes_of_which_the_agent_answers_for_five() -> None:
    assert len(Outcome) == 9
    assert {o.value for o in Outcome if o.is_agents} == {
        "success",
        "below_threshold",
        "invalid_submission",
        "no_submission",
        "agent_error",
    }
    assert {o.value for o in Outcome if o.is_scored} == {"success", "below_threshold"}
