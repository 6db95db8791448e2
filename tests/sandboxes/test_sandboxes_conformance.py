"""The three backends against the conformance suite; docker against a real engine where there is
one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from pytest_mlab.core.sandbox_api import Sandbox, SandboxOptions
from pytest_mlab.sandboxes import make
from pytest_mlab.testing.conformance import SandboxConformance
from tests.support.docker_engine import docker_image


class TestLocal(SandboxConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def sandbox(cls) -> Sandbox:
        return make("local")


@pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bwrap is not installed: apt-get install bubblewrap"
)
class TestBubblewrap(SandboxConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def sandbox(cls) -> Sandbox:
        return make("bubblewrap")


class TestDocker(SandboxConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def sandbox(cls) -> Iterator[Sandbox]:
        with docker_image() as image:
            yield make(SandboxOptions("docker", image))
