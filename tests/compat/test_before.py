"""A run directory and recordings that the version before the move to the present layout wrote
(commit 54b19e3): they are reported, shown, re-scored, resumed and replayed as they were then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.faults.session import Session

BEFORE = Path(__file__).parent / "before"
PLACEHOLDER = "/project"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """The project as it was, in a folder of this test's own."""
    session = Session(tmp_path_factory.mktemp("before") / "project", tasks=())
    shutil.copytree(BEFORE, session.path, dirs_exist_ok=True)
    for name in ("run/plan.json", "run/run.json"):
        file = session.path / name
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(f'"{PLACEHOLDER}', f'"{session.path}'), encoding="utf-8")
    return session


def kept(then: Any, now: Any, place: str = "") -> None:
    """Every value of ``then`` stands in ``now`` as well; new ones may have come."""
    if isinstance(then, dict):
        for name, value in then.items():
            kept(value, now[name], f"{place}.{name}")
    else:
        assert now == then, place


def test_it_is_reported_with_the_figures_of_then(session: Session) -> None:
    then = json.loads((BEFORE / "run" / "summary.json").read_text(encoding="utf-8"))
    said = session.mlab("report", "run", "--gate", "none")
    assert said.ret == 0, said.err
    now = session.summary()
    found, was = ({one["agent"]: one for one in them["subjects"]} for them in (now, then))
    kept(was["talker"], found["talker"])
    kept(then["conditions"], now["conditions"])
    assert "guess-good-2" in said.out  # it has no result


def test_a_trial_is_shown(session: Session) -> None:
    said = session.mlab("show", "run", "guess-talker-openai-main-1")
    assert said.ret == 0, said.err
    assert "Execute Script" in said.out
    assert "0.44" in said.out


def test_it_is_resumed_and_rescored(session: Session) -> None:
    before = session.result("guess/good/1")
    said = session.pytest("--mlab-resume=run", "--mlab-gate=none")
    assert said.ret == 0, said.out
    assert session.result("guess/good/1") == before
    assert session.result("guess/good/2")["outcome"] == "success"
    rescored = session.mlab("rescore", "run", "guess-good-1")
    assert rescored.ret == 0, rescored.err
    assert "1" in rescored.out


def test_its_recordings_are_replayed(session: Session) -> None:
    said = session.pytest(
        "--mlab-sandbox=local",
        "--mlab-agent=talker",
        "--mlab-model=openai/main",
        "--mlab-fast-model=openai/fast",
        "--mlab-repeats=2",
        "--mlab-gate=none",
        "--mlab-replay=recordings",
        "--mlab-run-dir=replayed",
    )
    assert said.ret == 0, said.out
    for repeat in (1, 2):
        path = Path("trials/guess/talker--openai-main") / str(repeat) / "result.json"
        then, now = (
            json.loads((folder / path).read_text(encoding="utf-8"))
            for folder in (BEFORE / "run", session.path / "replayed")
        )
        for name in ("outcome", "score"):
            assert now[name] == then[name]
        assert now["ledger"]["steps"] == then["ledger"]["steps"]
        assert now["ledger"]["usage"] == then["ledger"]["usage"]
