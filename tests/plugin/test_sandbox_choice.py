"""``--mlab-sandbox=auto`` says what it took, and why not what it prefers."""

from __future__ import annotations

import pytest

from pytest_mlab import sandboxes
from tests.support.project import Project


def test_the_header_says_why_nothing_isolates(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        name = "broken"

        def check(self) -> str:
            return "not installed"

    real = sandboxes.make
    monkeypatch.setattr(
        sandboxes,
        "make",
        lambda name, **settings: real(name, **settings) if name == "local" else Broken(),
    )
    result = project.run("--mlab-agent=reference", "--mlab-sandbox=auto")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "mlab: sandbox local, since bubblewrap: not installed; docker: not installed",
            "*sandbox local (NO ISOLATION)*",
        ]
    )
