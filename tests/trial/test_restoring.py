"""Going back to an earlier workspace, in place: what comes back, what stays, and that nothing leads
out of it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_mlab.core.budget import Budget
from pytest_mlab.errors import BudgetExhausted, StoreError, TrialOver
from pytest_mlab.store import manifest
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.events import Note, WorkspaceRestored, WorkspaceRestoring
from pytest_mlab.store.moments import moment, moments
from pytest_mlab.store.snapshots import Snapshots
from pytest_mlab.trial import restoring
from pytest_mlab.trial.restoring import bring_back
from tests.store.test_snapshots import EDITS, Tree, edit, tree_of
from tests.trial.conftest import MakeTrial, Trial

Edits = list[tuple[str, str, str, bytes]]


def write(trial: Trial, name: str, content: str) -> None:
    assert trial.do("Write File", file_name=name, content=content).ok


def run(trial: Trial, code: str) -> str:
    """Code in the workspace, as a step."""
    seen = trial.do("Python REPL", command=code)
    assert seen.ok, seen.text
    return seen.text


def read(trial: Trial, name: str) -> str:
    return (trial.root / name).read_text()


def state(path: Path) -> tuple[int, int, int]:
    info = path.stat()
    return info.st_ino, info.st_size, info.st_ctime_ns


def restored(trial: Trial) -> list[WorkspaceRestored]:
    return [event for event in trial.dir.events() if isinstance(event, WorkspaceRestored)]


def test_the_workspace_is_what_it_was(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"train.py": b"first"})
    write(trial, "train.py", "second")
    run(
        trial,
        "import os; os.makedirs('out/deep'); open('out/deep/model', 'w').write('m');"
        " os.remove('train.py')",
    )
    was = tree_of(trial.root)
    assert trial.env.restore(0) == ()
    assert tree_of(trial.root) == {"train.py": ("file", b"first")}
    assert trial.env.restore(2) == ()
    assert tree_of(trial.root) == was
    assert [
        event.step for event in trial.dir.events() if isinstance(event, WorkspaceRestoring)
    ] == [0, 2]


def test_the_trace_stays_right(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"train.py": b"first"})
    write(trial, "train.py", "second")
    write(trial, "notes.txt", "x")
    trial.env.restore(1)
    write(trial, "other.txt", "y")
    last = trial.steps()[-1]
    assert (sorted(last.set), last.deleted) == (["other.txt"], []), (
        "the diff is from what was restored"
    )
    (event,) = restored(trial)
    assert (event.step, event.snapshot, event.set, event.deleted) == (
        1,
        trial.steps()[0].snapshot,
        {},
        ["notes.txt"],
    )
    # steps keep their numbers, and each comes back as it was
    write_back = {step: sorted(moment(trial.dir, trial.store, step).tree) for step in (1, 2, 3)}
    assert write_back == {
        1: ["train.py"],
        2: ["notes.txt", "train.py"],
        3: ["other.txt", "train.py"],
    }


def test_it_is_no_step_and_is_counted_in_time(make_trial: MakeTrial) -> None:
    trial = make_trial(budget=Budget(max_steps=3, max_seconds=100))
    write(trial, "a", "1")
    trial.env.restore(0)
    assert (trial.env.ledger.steps, len(trial.env.history)) == (1, 1)
    trial.clock.now = 101.0
    with pytest.raises(BudgetExhausted):
        trial.env.restore(1)
    assert not (trial.root / "a").exists(), "nothing is begun any more"


def test_after_the_end_there_is_no_going_back(make_trial: MakeTrial) -> None:
    trial = make_trial()
    write(trial, "a", "1")
    trial.do("Final Answer", final_answer="")
    with pytest.raises(TrialOver):
        trial.env.restore(0)


@pytest.mark.parametrize("step", [-1, 2, 50])
def test_a_step_that_was_not_done_is_named(make_trial: MakeTrial, step: int) -> None:
    trial = make_trial()
    write(trial, "a", "1")
    with pytest.raises(ValueError, match=f"step {step} was not done"):
        trial.env.restore(step)
    assert restored(trial) == []


def test_undo_goes_back_too(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"train.py": b"first"})
    trial.model.replies = ["second", "third"]
    for _ in range(2):
        trial.do(
            "Edit Script (AI)",
            script_name="train.py",
            edit_instruction="more",
            save_name="train.py",
        )
    assert read(trial, "train.py").strip() == "third"
    trial.env.restore(1)
    assert trial.do("Undo Edit Script", script_name="train.py").ok
    assert read(trial, "train.py") == "first"
    trial.env.restore(2)
    assert trial.do("Undo Edit Script", script_name="train.py").ok
    assert read(trial, "train.py").strip() == "second"


def test_the_repl_keeps_its_variables(make_trial: MakeTrial) -> None:
    trial = make_trial()
    run(trial, "x = 41")
    trial.env.restore(0)
    assert run(trial, "print(x + 1)").strip() == "42"


def test_files_and_folders_change_places(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a": b"file", "b/inner": b"in a folder"})
    run(
        trial,
        "import os, shutil; os.remove('a'); os.mkdir('a'); open('a/x', 'w'); shutil.rmtree('b');"
        " open('b', 'w')",
    )
    run(
        trial,
        "os.remove('a/x'); os.symlink('nowhere', 'l'); open('run.sh', 'w'); os.chmod('run.sh',"
        " 0o755)",
    )
    was = tree_of(trial.root)
    trial.env.restore(0)
    assert tree_of(trial.root) == {"a": ("file", b"file"), "b/inner": ("file", b"in a folder")}
    trial.env.restore(2)
    assert tree_of(trial.root) == was
    assert was["a"] == ("dir", None)


def test_read_only_and_public_files_stay_as_they_are(make_trial: MakeTrial) -> None:
    trial = make_trial(
        env={"data/facts.txt": b"facts"},
        public={"data/train.csv": b"1,2\n"},
        read_only=("data/facts.txt",),
    )
    before = {name: state(trial.root / name) for name in ("data/facts.txt", "data/train.csv")}
    run(
        trial,
        "import shutil; shutil.copy('data/train.csv', 'mine.csv'); open('data/new',"
        " 'w').write('n')",
    )
    trial.env.restore(0)
    assert sorted(tree_of(trial.root)) == ["data/facts.txt", "data/train.csv"]
    trial.env.restore(1)
    assert read(trial, "mine.csv") == "1,2\n", "a copy of public data is found in them"
    assert {name: state(trial.root / name) for name in before} == before
    assert trial.workspace.tampered() == []


def test_what_was_tampered_with_stays_so(make_trial: MakeTrial) -> None:
    trial = make_trial(public={"train.csv": b"1,2\n"})
    run(trial, "import shutil; shutil.copy('train.csv', 'mine.csv')")
    run(
        trial,
        "import os; os.chmod('train.csv', 0o600); open('train.csv', 'w').write('9');"
        " os.remove('mine.csv')",
    )
    assert trial.env.restore(1) == ("mine.csv",), (
        "its content would have to come from the file that was changed"
    )
    assert trial.workspace.tampered() == ["train.csv"]
    assert not (trial.root / "mine.csv").exists()


def test_a_file_that_was_not_kept_is_named(
    make_trial: MakeTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = make_trial()
    monkeypatch.setattr(trial.env._snapshots, "_file_limit", 3)
    write(trial, "large", "large content")
    write(trial, "small", "s")
    assert trial.env.restore(1) == (), "it is still there: nothing has to be brought"
    assert read(trial, "large") == "large content"
    run(trial, "import os; os.remove('large')")
    assert trial.env.restore(1) == ("large",)
    assert restored(trial)[-1].missing == ["large"]
    assert not (trial.root / "large").exists()


def test_special_files_and_closed_folders_go(make_trial: MakeTrial) -> None:
    trial = make_trial()
    run(
        trial,
        "import os; os.mkdir('shut'); open('shut/x', 'w'); os.mkfifo('pipe'); os.chmod('shut', 0)",
    )
    trial.env.restore(0)
    assert os.listdir(trial.root) == []
    assert [e.data["text"] for e in trial.dir.events() if isinstance(e, Note)][:1] == [
        "pipe is a named pipe; it is not kept"
    ]


def test_a_damaged_store_is_said(make_trial: MakeTrial) -> None:
    trial = make_trial()
    write(trial, "a", "content")
    run(trial, "import os; os.remove('a')")
    kept = trial.store.path(manifest.digest_of(trial.steps()[0].set["a"]))
    kept.chmod(0o600)
    kept.write_text("other")
    with pytest.raises(StoreError, match="is damaged"):
        trial.env.restore(1)


# --- in place ---


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(EDITS, max_size=5), order=st.lists(st.integers(0, 5), max_size=5))
def test_any_state_is_reached_from_any_other(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Edits], order: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("back")
    root, store = folder / "work", ContentStore(folder / "store")
    root.mkdir()
    (root / "q").write_bytes(b"quiet")
    recorder = Snapshots(store, root)
    recorder.begin()
    states: list[tuple[dict[str, str], Tree]] = [(recorder.tree(), tree_of(root))]
    for edits in steps:
        for kind, name, other, data in edits:
            if not any(
                os.path.islink(os.path.join(root, n)) for n in (name, other, os.path.dirname(name))
            ):
                edit(root, kind, name, other, data)
        recorder.take()
        states.append((recorder.tree(), tree_of(root)))
    for number in order:
        was, tree = states[number % len(states)]
        assert (
            bring_back(
                root, was, recorder.tree(), store=store, keep=(), open_public=lambda digest: None
            )
            == ()
        )
        assert tree_of(root) == tree
        assert (
            manifest.snapshot_id(recorder.tree()) == recorder.take().id == manifest.snapshot_id(was)
        )


def test_no_link_leads_out(tmp_path: Path) -> None:
    root, store, outside = tmp_path / "work", ContentStore(tmp_path / "store"), tmp_path / "outside"
    (root / "d").mkdir(parents=True)
    (root / "d" / "x").write_text("x")
    recorder = Snapshots(store, root)
    recorder.begin()
    was = recorder.tree()
    outside.mkdir()
    (outside / "x").write_text("precious")
    (root / "d" / "x").unlink()
    (root / "d").rmdir()
    (root / "d").symlink_to(outside)
    with pytest.raises(NotADirectoryError):
        restoring._put(root, "d/x", was["d/x"], store, lambda digest: None)
    bring_back(root, was, recorder.tree(), store=store, keep=(), open_public=lambda digest: None)
    assert {p.name: p.read_text() for p in outside.iterdir()} == {"x": "precious"}
    assert (root / "d" / "x").read_text() == "x"


def test_a_path_that_leads_out_is_refused(tmp_path: Path) -> None:
    root, store = tmp_path / "work", ContentStore(tmp_path / "store")
    root.mkdir()
    digest = store.put_bytes(b"x").digest
    with pytest.raises(StoreError, match="leads out of it"):
        bring_back(
            root, {"../x": digest}, {}, store=store, keep=(), open_public=lambda digest: None
        )


def test_a_socket_in_the_way_goes(tmp_path: Path) -> None:
    root, store = tmp_path / "work", ContentStore(tmp_path / "store")
    root.mkdir()
    digest = store.put_bytes(b"x").digest
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(os.path.relpath(root / "a"))
        bring_back(root, {"a": digest}, {}, store=store, keep=(), open_public=lambda digest: None)
    assert (root / "a").read_bytes() == b"x"


def test_moments_know_only_steps(make_trial: MakeTrial) -> None:
    trial = make_trial()
    write(trial, "a", "1")
    trial.env.restore(0)
    write(trial, "b", "1")
    trial.env.restore(1)
    assert [m.step for m in moments(trial.dir, trial.store)] == [0, 1, 2]
