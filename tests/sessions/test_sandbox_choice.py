"""``--mlab-sandbox=auto`` says what it took, and why not what it prefers."""

from __future__ import annotations

import pytest

from pytest_mlab.sandboxes.bubblewrap import Bubblewrap
from pytest_mlab.sandboxes.docker import Docker
from tests.support.project import Project


def test_the_header_says_why_nothing_isolates(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for backend in (Bubblewrap, Docker):
        monkeypatch.setattr(backend, "check", lambda self: "not installed")
    result = project.run("--mlab-agent=reference", "--mlab-sandbox=auto")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "mlab: sandbox local, since bubblewrap: not installed; docker: not installed",
            "*sandbox local (NO ISOLATION)*",
        ]
    )
