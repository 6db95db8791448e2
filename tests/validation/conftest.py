"""A sound task on its bench, made once a test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_mlab.validation.bench import Bench
from tests.validation.tasks import bench, sound_task


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Checks change nothing on a bench: what they share there is made once."""
    with bench(sound_task(tmp_path_factory.mktemp("sound") / "guess"), runs=2) as made:
        yield made
