from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.core.task import Direction, Threshold
from pytest_mlab.reporting.baselines import baselines_markdown, baselines_table, rows
from tests.core.builders import a_baseline, a_task

TASKS = [
    a_task(a_baseline(0.5, 0.6, 0.7), reference=a_baseline(0.9, 0.9), name="b-up"),
    a_task(
        a_baseline(25097.0),
        reference=a_baseline(12548.5),
        name="a-down",
        direction=Direction.MINIMIZE,
    ),
    a_task(name="c-unmeasured"),
    a_task(a_baseline(-1.0), name="d-below-zero"),
    a_task(threshold=Threshold(absolute=0.3), reference=a_baseline(0.4), name="e-absolute"),
]


def test_the_table_says_what_must_be_beaten_and_what_is_known_to() -> None:
    lines = baselines_table(rows(TASKS))
    assert lines[:6] == [
        "task              data metric                    baseline  needed   known   gain",
        "a-down            mini < accuracy            25097+-0 (1)   22587   12548 +50.0%",
        "b-up              mini > accuracy            0.6+-0.1 (3)    0.66     0.9 +50.0%",
        "c-unmeasured      mini > accuracy                       -       -       -      -",
        "d-below-zero      mini > accuracy               -1+-0 (1)       -       -      -",
        "e-absolute        mini > accuracy                       -     0.3     0.4      -",
    ]
    text = " ".join(lines)
    assert "not measured yet (mlab measure --write): c-unmeasured on mini" in text
    assert (
        "task d-below-zero, data mini: the baseline is -1.0; a relative threshold needs one above 0"
        in text
    )
    assert all(len(line) <= 80 and line.isascii() for line in lines)


def test_the_page_has_every_row_and_the_machines() -> None:
    page = baselines_markdown(rows(TASKS), "toys")
    assert page.startswith("# Tasks of the suite toys\n")
    assert (
        "| b-up | mini | accuracy, higher is better | starter | 0.6 ± 0.1 (3) | 0.66 | 0.9 ± 0 (2)"
        " | +50.0% |" in page
    )
    assert "\nNot measured yet (mlab measure --write): c-unmeasured on mini.\n" in page
    assert page.count("- test\n") == 1


def test_a_run_of_tasks_without_problems_says_nothing_of_any() -> None:
    assert not [line for line in baselines_table(rows(TASKS[:2])) if "measured yet" in line]


def test_the_command_lists_the_built_in_tasks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["tasks", "--rootdir", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    for name in ("cifar10", "house-price", "spaceship-titanic", "vectorization"):
        assert f"\n{name} " in shown
    assert cli.main(["tasks", "house-price", "--markdown", "--rootdir", str(tmp_path)]) == 0
    assert "| house-price | mini |" in capsys.readouterr().out


def test_an_unknown_task_names_the_nearest(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["tasks", "huose-price", "--rootdir", str(tmp_path)]) == 2
    assert "did you mean 'house-price'?" in capsys.readouterr().err
