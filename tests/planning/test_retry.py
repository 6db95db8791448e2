"""Which trials ``--mlab-retry`` runs again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_mlab.core.trial import Outcome
from pytest_mlab.planning.options import resolve
from pytest_mlab.planning.retry import WORDS, parse_outcomes, proposal, to_run_again
from tests.core.builders import a_result
from tests.reporting.runs import a_run


def test_every_word_and_every_whole_name_is_an_outcome() -> None:
    assert parse_outcomes(" infra, provider,infra_error") == (
        Outcome.INFRA_ERROR,
        Outcome.PROVIDER_ERROR,
    )
    assert parse_outcomes(",".join(WORDS)) == tuple(WORDS.values())


@pytest.mark.parametrize("text", ["success", "infra provider", ",", "not_run"])
def test_other_words_are_refused_with_those_that_are_known(text: str) -> None:
    with pytest.raises(ValueError, match="infra, provider, task"):
        parse_outcomes(text)


def test_it_needs_a_run_to_resume() -> None:
    with pytest.raises(Exception, match="--mlab-resume=RUN"):
        resolve({"mlab_retry": "infra"}.get)
    assert resolve({"mlab_retry": "infra", "mlab_resume": "r"}.get).retry == (Outcome.INFRA_ERROR,)


def test_the_proposal_counts_and_its_command_is_accepted() -> None:
    results = [
        replace(a_result(repeat=n), outcome=outcome)
        for n, outcome in enumerate(
            (Outcome.INFRA_ERROR, Outcome.INFRA_ERROR, Outcome.BELOW_THRESHOLD), start=1
        )
    ]
    text = proposal(results, "pytest --mlab-resume=r")
    assert text.startswith("2 trials ended as infra_error; ")
    words = text.rpartition("again: ")[2].split()
    assert words == ["pytest", "--mlab-resume=r", "--mlab-retry=infra"]
    assert proposal(results[2:], "pytest --mlab-resume=r") == ""
    assert proposal(results, "") == ""


def test_chosen_trials_with_the_outcome_are_found_and_left_where_they_are(tmp_path: Path) -> None:
    """They are put aside later, once it is sure that the session runs."""
    outcomes = (Outcome.INFRA_ERROR, Outcome.SUCCESS, Outcome.INFRA_ERROR)
    results = [replace(a_result(repeat=n), outcome=o) for n, o in enumerate(outcomes, start=1)]
    run = a_run(tmp_path / "r", results)
    ids = [result.id for result in results]
    assert to_run_again(run, ids, (Outcome.INFRA_ERROR,)) == [ids[0], ids[2]]
    assert to_run_again(run, ids[1:], (Outcome.INFRA_ERROR,)) == [ids[2]]
    assert to_run_again(run, ids, ()) == []
    assert len(run.results()) == 3
