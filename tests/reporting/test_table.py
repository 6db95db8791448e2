from __future__ import annotations

import re
from pathlib import Path

from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.core.plan import RunSettings
from pytest_mlab.core.trial import Outcome, TrialId
from pytest_mlab.reporting.figures import RunFigures
from pytest_mlab.reporting.table import table
from pytest_mlab.store.rundir import RunDir
from tests.core.builders import a_result
from tests.reporting.runs import BELOW, SETTINGS, SUCCESS, a_control, a_run, busy_results

AGGREGATE = GatePolicy("aggregate")


def test_the_whole_table(tmp_path: Path) -> None:
    missing = [TrialId("cifar10", "research", "gpt-4-turbo", 9)]
    run = a_run(tmp_path / "r", busy_results(), missing, SETTINGS)
    lines = table(
        RunFigures.of(run, GatePolicy("aggregate", 0.6)), "pytest --mlab-resume=reports/r"
    )
    assert "\n".join(lines) == (Path(__file__).parent / "gold_table.txt").read_text().rstrip("\n")


def test_a_table_fits_an_old_terminal(tmp_path: Path) -> None:
    results = [
        a_result(
            k,
            BELOW,
            task="a-task-with-a-very-long-name",
            agent="my-own-agent",
            model="provider/a-model-with-a-very-long-name-" + "x" * 60,
            improvement=-123456.0,
            cost=99999.123,
            steps=10**6,
            seconds=10**6,
        )
        for k in range(1, 13)
    ]
    results += [a_control(k, SUCCESS, "a-task-with-a-very-long-name") for k in range(1, 13)]
    lines = table(RunFigures.of(a_run(tmp_path / "r", results), AGGREGATE))
    assert all(len(line) <= 80 and line.isascii() for line in lines if "x" * 60 not in line), lines
    at = lines.index("a-task-with-a-very-long-name", lines.index("agent my-own-agent, model"))
    assert lines[at + 1].split()[:3] == ["0/12", "0.00-0.26", "12/12"]
    wide = table(RunFigures.of(RunDir.open(tmp_path / "r"), AGGREGATE), width=120)
    [row] = [line for line in wide if re.match("a-task-with-a-very-long-name +0/12", line)]
    assert row.split()[1:] == lines[at + 1].split()


def test_reasons_cannot_break_the_terminal(tmp_path: Path) -> None:
    missing = a_result(1, Outcome.NOT_RUN)
    odd = type(missing)(missing.id, Outcome.NOT_RUN, "gone\n\x1b[31mred é\udc80")
    run = a_run(tmp_path / "r", [], [missing.id])
    lines = table(RunFigures.of(run, AGGREGATE, {missing.id: odd}))
    at = lines.index("  toy-research-m-1: gone")
    assert lines[at + 1] == r"      \x1b[31mred \xe9\udc80"


def test_a_reason_keeps_its_first_lines(tmp_path: Path) -> None:
    missing = a_result(1, Outcome.NOT_RUN)
    long = type(missing)(
        missing.id, Outcome.NOT_RUN, "add:\n" + "\n".join(f"  key{n} = 1" for n in range(9))
    )
    lines = table(
        RunFigures.of(a_run(tmp_path / "r", [], [missing.id]), AGGREGATE, {missing.id: long})
    )
    at = lines.index("  toy-research-m-1: add:")
    assert lines[at + 1 : at + 7] == [*(f"      key{n} = 1" for n in range(5)), lines[at + 6]]
    assert "key" not in lines[at + 6]


def test_without_a_model_there_are_no_tokens_and_no_dollars(tmp_path: Path) -> None:
    text = "\n".join(
        table(RunFigures.of(a_run(tmp_path / "r", [a_control(1, SUCCESS, "toy")]), AGGREGATE))
    )
    assert "tokens  " not in text
    assert "model calls" not in text
    assert "mean of" not in text


def test_an_unknown_price_is_said_to_be_unknown(tmp_path: Path) -> None:
    lines = table(RunFigures.of(a_run(tmp_path / "r", [a_result(1, cost=None)]), AGGREGATE))
    assert any(line.startswith("toy") and line.endswith(" ?") for line in lines)
    assert "  ? the price of a model is unknown, so the cost is as well" in lines
    assert "0.00" not in "\n".join(lines)


def test_no_isolation_is_said_in_the_first_lines(tmp_path: Path) -> None:
    settings = RunSettings(sandbox="mine", isolated=False)
    run = a_run(tmp_path / "r", [a_result(1, sandbox="mine")], settings=settings)
    assert "sandbox mine (NO ISOLATION)" in " ".join(table(RunFigures.of(run, AGGREGATE))[:2])


def test_other_conditions_get_a_table_of_their_own(tmp_path: Path) -> None:
    run = a_run(tmp_path / "r", [a_result(1), a_result(2, BELOW, data="full")])
    lines = table(RunFigures.of(run, AGGREGATE))
    assert "agent research, model m" in lines
    assert "agent research, model m (data full, sandbox bubblewrap)" in lines


def test_the_same_reason_is_said_once(tmp_path: Path) -> None:
    run = a_run(
        tmp_path / "r", [a_result(1)], [TrialId("toy", "research", "m", k) for k in range(2, 13)]
    )
    lines = table(RunFigures.of(run, AGGREGATE))
    at = lines.index("MISSING: 11 of 12 planned trials did not run")
    end = lines.index("", at)
    named = ", ".join(f"toy-research-m-{k}" for k in range(2, 10))
    assert (
        " ".join(line.strip() for line in lines[at + 1 : end])
        == f"{named} and 3 more: there is no result"
    )


def test_errors_that_are_not_the_agents_say_why_the_most_frequent_first(tmp_path: Path) -> None:
    results = [a_result(k, Outcome.INFRA_ERROR) for k in range(1, 4)]
    named = [
        type(r)(**{**vars(r), "reason": why})
        for r, why in zip(results, ("rare", "often", "often"), strict=True)
    ]
    named += [a_result(k, Outcome.AGENT_ERROR) for k in (4, 5, 6)]
    lines = table(RunFigures.of(a_run(tmp_path / "r", named), AGGREGATE))
    at = lines.index("ERRORS: 3 trials ended in an error that the agent did not make")
    assert lines[at + 1 : at + 4] == [
        "  toy-research-m-2, toy-research-m-3: often",
        "  toy-research-m-1: rare",
        "",
    ]


def test_of_many_reasons_some_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    results = [a_result(k, Outcome.TASK_ERROR) for k in range(1, 9)]
    named = [type(r)(**{**vars(r), "reason": f"reason {r.id.repeat}"}) for r in results]
    lines = table(RunFigures.of(a_run(tmp_path / "r", named), AGGREGATE))
    assert "  toy-research-m-5: reason 5" in lines
    assert "  and 3 other reasons, all of them in summary.json" in lines


def test_a_gate_that_passes_is_one_line(tmp_path: Path) -> None:
    run = a_run(tmp_path / "r", [a_result(1)])
    assert (
        table(RunFigures.of(run, GatePolicy("aggregate", 0.5)))[-1]
        == "gate aggregate, fail-under 0.5: passed"
    )
    assert table(RunFigures.of(run, GatePolicy("none")))[-1] == "gate none: recorded only"
