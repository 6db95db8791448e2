"""``-m <modality>`` over the built-in suite: each selects its tasks, and every task belongs to
one."""

from __future__ import annotations

import pytest

from pytest_mlab.plugin.collect import MODALITIES
from tests.support.project import Project
from tests.tasks.conftest import load
from tests.tasks.test_every_task import TASKS

TASKS_OF = {
    "text": ["babylm", "feedback", "imdb"],
    "tabular": ["house-price", "spaceship-titanic"],
    "image": ["cifar10", "fathomnet", "identify-contrails"],
    "graph": ["clrs", "ogbn-arxiv"],
    "timeseries": ["amp-parkinsons-disease-progression-prediction"],
    "speed": ["llama-inference", "vectorization"],
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


def test_every_task_has_one_of_the_modalities_that_pytest_lists() -> None:
    assert {name: load(name).modality for name in TASKS} == {
        name: modality for modality, names in TASKS_OF.items() for name in names
    }
    assert TASKS_OF.keys() <= set(MODALITIES)
