"""What a trial needs and this machine lacks: a skip that names the command that fixes it."""

from __future__ import annotations

import hashlib
import io
import re
import shlex
import sys
import zipfile
from pathlib import Path

import pytest

from tests.data.file_server import file_server
from tests.faults.session import Said, Session
from tests.support.toy_agents import write_toy_agents

TASKS = ("guess", "third")

SOURCE = """\
kind = "http"
ref = "{ref}"
sha256 = "{sha256}"
size_mb = 1
licence = "own"
consent = "{rules}"
"""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    found = Session(tmp_path, tasks=TASKS)
    write_toy_agents(tmp_path)
    return found


def change(session: Session, task: str, old: str, new: str) -> None:
    """Change a task.toml."""
    toml = session.path / "task_suites" / "toy" / task / "task.toml"
    text = toml.read_text()
    assert old in text
    toml.write_text(text.replace(old, new))


def assert_skipped(session: Session, said: Said, trial: str, *words: str) -> None:
    """The reason stands in the skip's line, in the list of what is missing, in JUnit and in
    summary.json."""
    flat = " ".join(said.out.split())
    missing = flat.partition("MISSING: ")[2]
    case = session.case(trial)
    assert case.status == "skipped"
    (known,) = [
        entry["reason"] for entry in session.summary()["missing"] if entry["trial"] == trial
    ]
    for word in words:
        assert re.search(rf"^SKIPPED .*{re.escape(word)}", said.out, re.M), said.out
        assert word in missing
        assert word in case.text
        assert word in known
    assert "there is no result" not in flat


def without_programs(folder: Path) -> dict[str, str]:
    """An environment in which no program but Python is found, and no docker engine."""
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(sys.executable)
    return {"PATH": str(folder / "bin"), "DOCKER_HOST": f"unix://{folder}/nobody"}


def test_gpu(session: Session) -> None:
    change(session, "guess", "pids = 64", "pids = 64\ngpus = 1")
    said = session.pytest("-rs", "--mlab-agent=good", env={"CUDA_VISIBLE_DEVICES": ""})
    assert_skipped(session, said, "guess-good-1", "the task guess needs 1 GPU", "-m 'not mlab_gpu'")
    assert session.result("third/good/1")["outcome"] == "success"


def test_bubblewrap(session: Session) -> None:
    env = without_programs(session.path)
    said = session.pytest("-rs", "-n", "2", "--mlab-agent=good", "--mlab-task=guess", env=env)
    words = ("bubblewrap does not work here", "to fix: apt-get install bubblewrap")
    assert_skipped(session, said, "guess-good-1", *words)
    assert said.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_no_sandbox_at_all_for_code_that_nobody_trusts(session: Session) -> None:
    env = without_programs(session.path)
    said = session.pytest(
        "-rs", "--mlab-agent=good", "--mlab-task=guess", "--mlab-sandbox=auto", env=env
    )
    words = (
        "no sandbox works here",
        "--mlab-sandbox=local accepts that",
        "to fix: apt-get install bubblewrap",
    )
    assert_skipped(session, said, "guess-good-1", *words)


def test_data_whose_fixing_command_fixes(session: Session) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("raw.txt", "raw")
    archived = content.getvalue()
    with file_server() as server:
        source = SOURCE.format(
            ref=f"{server.address}/data.zip",
            sha256=hashlib.sha256(archived).hexdigest(),
            rules=server.address,
        )
        change(session, "guess", 'kind = "generator"', source)
        said = session.pytest("-rs", "-n", "2", "--mlab-agent=good")
        assert_skipped(
            session,
            said,
            "guess-good-1",
            "rules that you must accept",
            "to fix: mlab prepare guess",
        )
        assert session.result("third/good/1")["outcome"] == "success"
        fix = re.findall(r"^SKIPPED .*to fix: mlab (prepare guess [-\w ]*)", said.out, re.M)[0]
        refused = session.mlab(*shlex.split(fix))
        assert refused.ret == 1
        assert "/data.zip failed: the server answers 404" in refused.out + refused.err
        server.files["/data.zip"] = archived
        fixed = session.mlab(*shlex.split(fix))
        assert fixed.ret == 0, fixed
    again = session.pytest("--mlab-resume=run")
    assert again.ret == 0, again.out + again.err
    assert session.summary()["missing"] == []
