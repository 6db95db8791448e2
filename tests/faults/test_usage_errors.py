"""Names and values that do not exist: exit status 4, what exists with the nearest first, and
nothing written."""

from __future__ import annotations

import pytest

from tests.faults.session import Session

AGENT = "--mlab-agent=baseline"

# The messages are tested where they are made (tests/planning/test_options.py, test_make.py).
# Each of these is raised in another part of the session.
ERRORS = {
    # arguments, parts of the message in their order
    "pytest's own": ([AGENT, "missing.py"], ["file or directory not found: missing.py"]),
    "when the run is frozen": (
        [AGENT, "--mlab-run-dir=/proc/none"],
        ["/proc/none cannot be written", "--mlab-run-dir"],
    ),
    "from a worker's selection": (
        [AGENT, "-n", "2", "-k", "othr"],
        ["no trial is selected by -k 'othr'", "other, guess"],
    ),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("project"), tasks=("guess", "other"))


@pytest.mark.parametrize("kind", ERRORS)
def test_error(session: Session, kind: str) -> None:
    args, parts = ERRORS[kind]
    said = session.pytest(*args)
    assert said.ret == pytest.ExitCode.USAGE_ERROR, said.out
    at = 0
    for part in parts:
        found = said.err.find(part, at)
        assert found >= 0, (part, said.err)
        at = found + len(part)
    assert said.err.startswith("ERROR: ")
    assert "Traceback" not in said.out + said.err
    assert "INTERNALERROR" not in said.out
    assert not session.run_dir.exists()
