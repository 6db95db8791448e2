from __future__ import annotations

import pytest

from pytest_mlab import sandboxes
from pytest_mlab.core.sandbox_api import SandboxOptions
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
    made = sandboxes.make(SandboxOptions("docker", "mine:1"))
    assert isinstance(made, Docker)
    assert made.image == "mine:1"


def test_an_unknown_name_lists_what_exists() -> None:
    with pytest.raises(ConfigError, match=r"bubblewrap.*auto"):
        sandboxes.make("bublewrap")


def test_auto_takes_the_first_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, bubblewrap="", docker="")
    assert (
        sandboxes.choose(SandboxOptions("auto"), trusted_agents=True).sandbox.name == "bubblewrap"
    )
    answer(monkeypatch, bubblewrap="not installed", docker="")
    assert sandboxes.choose(SandboxOptions("auto"), trusted_agents=True).sandbox.name == "docker"
    assert (
        sandboxes.choose(SandboxOptions("auto"), trusted_agents=True).passed_over
        == "bubblewrap: not installed"
    )


def test_auto_without_isolation_only_for_trusted_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, bubblewrap="not installed", docker="no engine")
    chosen = sandboxes.choose(SandboxOptions("auto"), trusted_agents=True)
    assert chosen.sandbox.name == "local"
    assert chosen.passed_over == "bubblewrap: not installed; docker: no engine"
    with pytest.raises(RequirementMissing, match=r"not installed.*no engine") as caught:
        sandboxes.choose(SandboxOptions("auto"), trusted_agents=False)
    assert caught.value.fix == "apt-get install bubblewrap"


def test_a_named_one_must_work(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, bubblewrap="not installed", docker="no engine")
    with pytest.raises(RequirementMissing, match="sandbox docker does not work here: no engine"):
        sandboxes.choose(SandboxOptions("docker"), trusted_agents=True)
    assert sandboxes.choose(SandboxOptions("local"), trusted_agents=False).sandbox.name == "local"
