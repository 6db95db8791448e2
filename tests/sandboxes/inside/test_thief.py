"""The thief: what it finds when there is something to find, and that it finds nothing in a trial's
sandbox."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_mlab.core.task import Source, Variant
from pytest_mlab.data.sources import source_hosts
from pytest_mlab.sandboxes.inside import thief
from pytest_mlab.suites.loader import load_task
from pytest_mlab.validation.hidden import secrets_of
from tests.suites.folders import edit
from tests.support.child_process import running
from tests.support.toy_suite import DATA
from tests.validation.checks.test_leaks import OpenBench, needs_bwrap
from tests.validation.tasks import STRICT, bench, finding, settings, sound_task, subject, the


def wanted(**changes: Any) -> dict[str, Any]:
    return {
        "sizes": {},
        "names": [],
        "paths": [],
        "needles": [],
        "hosts": [],
        "root": "/",
        "skip": [],
    } | changes


@needs_bwrap
def test_a_sound_task_gives_it_nothing(tmp_path: Path) -> None:
    found = finding("thief", sound_task(tmp_path / "guess"), sandbox="bubblewrap")
    assert (found.status, found.reason) == (
        "ok",
        "none of 5 hidden files, no path to them, no network",
    )


@needs_bwrap
def test_a_sandbox_that_shows_too_much(tmp_path: Path) -> None:
    """All at once: each search reads every file of the sandbox, for two to three seconds."""
    task = sound_task(tmp_path / "guess")
    shown = tmp_path / "shown"
    made = OpenBench(subject(task), settings(sandbox="bubblewrap", network=bool(thief.routed())))
    with made:
        shutil.copytree(task / "reference", shown / "reference")
        shutil.copy(task / "evaluator.py", shown)
        shutil.copytree(made.prepared.answers, shown / "answers")
        made.shown = shown
        found = the("thief").run(made)
    assert found.status == "fail"
    for copy, original in {
        "answers/answers.csv": "answers/answers.csv",
        "evaluator.py": "evaluator.py",
        "reference/actions.toml": "reference/actions.toml",
    }.items():
        assert f"/mnt/shown/{copy} is a copy of {original}" in found.facts["found"]
    if thief.routed():
        assert "packets are routed over the network interface" in str(found.facts["found"])


def test_a_copy_in_the_workspace(tmp_path: Path) -> None:
    """Found in any sandbox; of ``local`` the report says that nothing else was searched."""
    task = sound_task(tmp_path / "guess")
    found = finding("thief", task)
    assert found.status == "ok"
    assert (
        found.reason
        == "5 hidden files not in the workspace; elsewhere: not applicable, local hides nothing"
    )
    (task / "env" / "lib").mkdir()
    (task / "env" / "lib" / "metric.py").write_text(STRICT)
    found = finding("thief", task)
    assert found.status == "fail"
    assert found.reason.endswith("/lib/metric.py is a copy of evaluator.py")


def test_the_search_for_pieces_is_the_thiefs_as_well(tmp_path: Path) -> None:
    with bench(sound_task(tmp_path / "guess")) as made:
        made.searched = ["/a is a copy of evaluator.py", "/b holds piece 3 of the answers"]
        found = the("thief").run(made)
    assert (found.status, found.reason) == ("fail", "/a is a copy of evaluator.py")


def test_what_is_hidden(tmp_path: Path) -> None:
    task = sound_task(tmp_path / "guess")
    with bench(task) as made:
        names = [secret.name for secret in secrets_of(made.task, made.prepared)]
    assert names == [
        "answers/answers.csv",
        "data.py",
        "evaluator.py",
        "reference/actions.toml",
        "reference/train.py",
    ]


def test_a_declared_starter_file_is_not_hidden(tmp_path: Path) -> None:
    """vectorization compares with the original code, which the agent has."""
    copy = "    import shutil; shutil.copy(raw / 'train.py', answers / 'original.py')\n"
    task = sound_task(tmp_path / "guess", data=DATA + copy)
    source = (
        '[[data.mini.source]]\nkind = "embedded"\nref = "env/train.py"\nlicence ='
        ' "ours"\n\n[data.mini.baseline]'
    )
    edit(task / "task.toml", "[data.mini.baseline]", source)
    with bench(task) as made:
        names = [secret.name for secret in secrets_of(made.task, made.prepared)]
    assert "answers/original.py" not in names
    assert "answers/answers.csv" in names


def test_it_knows_where_data_come_from(tmp_path: Path) -> None:
    task = load_task(sound_task(tmp_path / "guess"), "toy")
    sources = (
        Source("http", "https://data.example.org/a.tar.gz"),
        Source("kaggle", "competitions/x"),
        Source("generator"),
        Source("embedded", "env/train.py"),
    )
    task = replace(task, variants={"mini": Variant("mini", sources)})
    assert list(source_hosts(task)) == ["data.example.org", "www.kaggle.com"]


# --- the searches, one by one ---


def test_files_by_content_name_and_piece(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hidden file")
    (tmp_path / "b").write_bytes(b"hidden fils")
    (tmp_path / "answers.csv").write_bytes(b"")
    (tmp_path / "c").write_bytes(b"... run of answers ...")
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "answers.csv").write_bytes(b"run of answers")
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "system" / "tool").write_bytes(b"run of answers")
    (tmp_path / "tool").symlink_to("system/tool")  # as in /etc/alternatives
    digest = hashlib.sha256(b"hidden file").hexdigest()
    request = wanted(
        sizes={"11": {digest: "evaluator.py"}},
        names=["answers.csv"],
        needles=[b"no such".hex(), b"run of answers".hex()],
        skip=[f"{tmp_path}/system/"],
    )
    assert sorted(thief.in_files(request, str(tmp_path))) == [
        f"{tmp_path}/a is a copy of evaluator.py",
        f"{tmp_path}/answers.csv can be read",
        f"{tmp_path}/c holds piece 1 of the answers",
    ]


def test_words_of_processes() -> None:
    # Of a child: /proc shows what this process was started with, which may have changed since.
    path = "/hidden/answers"
    with running({"TOLD": path}) as process:
        place = f"/proc/{process.pid}/environ"
        found = list(thief.in_words(place, wanted(paths=[path, "/no/such/path"])))
    assert found == [f"{place} tells the path {path}"]
    assert list(thief.in_words("/proc/self/nothing", wanted(paths=[path]))) == []


def test_open_files_of_processes(tmp_path: Path) -> None:
    path = tmp_path / "open"
    path.write_bytes(b"answers of a process")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with path.open("rb") as file:
        path.unlink()
        found = list(
            thief.in_descriptors("/proc/self/fd", wanted(sizes={"20": {digest: "answers/a"}}))
        )
        assert found == [f"/proc/self/fd/{file.fileno()} is a copy of answers/a"]


def test_all_processes_are_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "open"
    path.write_bytes(b"answers of a process")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with path.open("rb") as file:
        found = list(thief.in_processes(wanted(sizes={"20": {digest: "answers/a"}})))
        assert f"/proc/{os.getpid()}/fd/{file.fileno()} is a copy of answers/a" in found


def test_services_that_answer(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert (
            list(thief.in_network(wanted(hosts=[["127.0.0.1", port]])))[-1]
            == f"127.0.0.1:{port} can be reached"
        )
    assert not thief.answers("127.0.0.1", port)
    place = Path(os.path.relpath(tmp_path)) / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()
        found = list(thief.in_files(wanted(), str(place.parent)))
        assert found == [f"the socket {place} accepts a connection"]
    assert list(thief.in_socket(str(place))) == []
