"""``-m <modality>`` over the built-in suite: each selects its tasks, and every task belongs to
one."""

from __future__ import annotations

import pytest

from pytest_mlab.plugin.collect import MODALITIES
from tests.support.project import Project
from tests.tasks.conftest import TASKS, load

TASKS_OF = {
    modality: [name for name in TASKS if load(name).modality == modality]
    for modality in sorted({load(name).modality for name in TASKS})
}


@pytest.mark.parametrize("modality", TASKS_OF)
def test_a_modality_selects_its_tasks(project: Project, modality: str) -> None:
    result = project.run(
        "--mlab-suite=mlagentbench",
        "--mlab-agent=reference",
        "--collect-only",
        "-q",
        "--strict-markers",
        "-m",
        modality,
    )
    found = [
        line.partition("[")[2].removesuffix("-reference-1]")
        for line in result.outlines
        if "::" in line
    ]
    assert found == TASKS_OF[modality]


def test_the_modalities_of_the_built_in_tasks_are_those_that_pytest_lists() -> None:
    assert TASKS_OF.keys() <= set(MODALITIES)
