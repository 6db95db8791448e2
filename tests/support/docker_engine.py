"""The docker engine that tests may use: the one that ``.ci/docker-engine start DIR`` printed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def docker_image() -> Iterator[str]:
    """The tests' image, with DOCKER_HOST set to their engine meanwhile; skips where there is
    none."""
    host, image = (os.environ.get(f"MLAB_TEST_DOCKER_{name}") for name in ("HOST", "IMAGE"))
    if not host or not image:
        pytest.skip("no docker engine for tests: export $(sudo .ci/docker-engine start DIR)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", host)
        yield image
