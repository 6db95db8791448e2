from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab import sandboxes
from pytest_mlab.errors import ConfigError, RequirementMissing
from pytest_mlab.sandboxes.bubblewrap import Bubblewrap
from pytest_mlab.sandboxes.docker import Docker
from pytest_mlab.sandboxes.local import Local


def answer(monkeypatch: pytest.MonkeyPatch, *, bubblewrap: str, docker: str) -> None:
    monkeypatch.setattr(Bubblewrap, "check", lambda self: bubblewrap)
    monkeypatch.setattr(Docker, "check", lambda self: docker)


def test_names_and_classes() -> None:
    assert {"bubblewrap", "docker", "local"} <= set(sandboxes.names())
    assert isinstance(sandboxes.make("local"), Local)
    made = sandboxes.make("docker", docker_image="mine:1")
    assert isinstance(made, Docker)
    assert made.image == "mine:1"


def test_an_unknown_name_lists_what_exists() -> None:
    with pytest.raises(
        ConfigError,
        match=r"'bublewrap'; did you mean bubblewrap\? There are: auto, bubblewrap, docker",
    ):
        sandboxes.make("bublewrap")


def test_auto_takes_the_first_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, bubblewrap="", docker="")
    assert sandboxes.choose("auto", trusted_agents=True).sandbox.name == "bubblewrap"
    answer(monkeypatch, bubblewrap="not installed", docker="")
    assert sandboxes.choose("auto", trusted_agents=True).sandbox.name == "docker"
    assert sandboxes.choose("auto", trusted_agents=True).passed_over == "bubblewrap: not installed"


def test_auto_without_isolation_only_for_trusted_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, bubblewrap="not installed", docker="no engine")
    chosen = sandboxes.choose("auto", trusted_agents=True)
    assert chosen.sandbox.name == "local"
    assert chosen.passed_over == "bubblewrap: not installed; docker: no engine"
    with pytest.raises(RequirementMissing, match=r"not installed.*no engine") as caught:
        sandboxes.choose("auto", trusted_agents=False)
    assert caught.value.fix == "apt-get install bubblewrap"


def test_a_named_one_must_work(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, bubblewrap="not installed", docker="no engine")
    with pytest.raises(RequirementMissing, match="sandbox docker does not work here: no engine"):
        sandboxes.choose("docker", trusted_agents=True)
    assert sandboxes.choose("local", trusted_agents=False).sandbox.name == "local"


def test_others_by_entry_point(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def points(group: str) -> EntryPoints:
        assert group == "pytest_mlab.sandboxes"
        return EntryPoints([EntryPoint("mine", "pytest_mlab.sandboxes.local:Local", group)])

    monkeypatch.setattr(sandboxes, "entry_points", points)
    made: Any = sandboxes.make("mine", hidden=[tmp_path])
    assert isinstance(made, Local)
    assert "mine" in sandboxes.names()
