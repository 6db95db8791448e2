"""Preparing data: once, whole or not at all, and refused where something is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_mlab.core.task import Source
from pytest_mlab.data.prepare import is_prepared, prepare
from pytest_mlab.errors import ConfigError, DataUnavailable, SuiteError
from tests.data.tasks import task_with
from tests.suites.folders import DATA_PY, edit

COUNTED = DATA_PY + "    with open({counter!r}, 'a') as file:\n        file.write('ran\\n')\n"


def counted(tmp_path: Path) -> tuple[str, Path]:
    """A data.py that writes a line into a file at every run."""
    counter = tmp_path / "counter"
    return COUNTED.format(counter=str(counter)), counter


def runs(counter: Path) -> int:
    return len(counter.read_text().splitlines()) if counter.exists() else 0


def leftovers(cache: Path) -> list[str]:
    return [
        path.name for path in (cache / "data" / "toy").iterdir() if path.name.startswith(".tmp")
    ]


def test_public_files_and_answers_are_apart_and_have_digests(tmp_path: Path) -> None:
    ready = prepare(task_with(tmp_path), "mini", tmp_path / "cache")
    assert (ready.public / "train.csv").read_text() == "id,y\n1,0\n"
    assert (ready.answers / "answer.csv").read_text() == "2,1\n"
    assert list(ready.files) == ["train.csv"]
    assert len(ready.files["train.csv"]) == len(ready.digest) == 64
    assert ready.variant == "mini"
    assert leftovers(tmp_path / "cache") == []


def test_the_digest_depends_on_content_only(tmp_path: Path) -> None:
    first = prepare(task_with(tmp_path), "mini", tmp_path / "one")
    second = prepare(task_with(tmp_path), "mini", tmp_path / "two")
    assert first.digest == second.digest
    edit(tmp_path / "toy" / "raw" / "points.csv", "2,1", "2,0")
    assert prepare(task_with(tmp_path), "mini", tmp_path / "one").digest != first.digest


def test_prepared_data_are_not_prepared_again(tmp_path: Path) -> None:
    code, counter = counted(tmp_path)
    task = task_with(tmp_path, data_py=code)
    assert is_prepared(task, "mini", tmp_path / "cache") is None
    ready = prepare(task, "mini", tmp_path / "cache")
    assert prepare(task, "mini", tmp_path / "cache") == ready
    assert is_prepared(task, "mini", tmp_path / "cache") == ready
    assert runs(counter) == 1
    assert prepare(task, "mini", tmp_path / "cache", force=True) == ready
    assert runs(counter) == 2


def test_editing_the_description_prepares_nothing_again_but_editing_what_data_are_made_of_does(
    tmp_path: Path,
) -> None:
    code, counter = counted(tmp_path)
    prepare(task_with(tmp_path, data_py=code), "mini", tmp_path / "cache")
    edit(tmp_path / "toy" / "description.md", "Predict", "Please predict")
    edit(tmp_path / "toy" / "env" / "train.py", "train", "start")
    prepare(task_with(tmp_path), "mini", tmp_path / "cache")
    assert runs(counter) == 1
    edit(tmp_path / "toy" / "raw" / "points.csv", "1,0", "1,1")
    prepare(task_with(tmp_path), "mini", tmp_path / "cache")
    assert runs(counter) == 2
    edit(tmp_path / "toy" / "task.toml", 'version = "1"', 'version = "2"')
    prepare(task_with(tmp_path), "mini", tmp_path / "cache")
    assert runs(counter) == 3
    prepare(task_with(tmp_path, data_py=code + "\n"), "mini", tmp_path / "cache")
    assert runs(counter) == 4


@pytest.mark.parametrize("damage", ["change", "add", "remove"])
def test_damaged_data_are_prepared_again(tmp_path: Path, damage: str) -> None:
    task, cache = task_with(tmp_path), tmp_path / "cache"
    ready = prepare(task, "mini", cache)
    file = ready.public / "train.csv"
    if damage == "change":
        file.write_text("id,y\n1,1\n")
        os.utime(file, ns=(1, 1))
    elif damage == "add":
        (ready.answers / "more.csv").write_text("x")
    else:
        file.unlink()
    assert is_prepared(task, "mini", cache) is None
    assert prepare(task, "mini", cache) == ready
    assert file.read_text() == "id,y\n1,0\n"


def test_a_change_that_keeps_size_and_time_is_found_by_the_full_check(tmp_path: Path) -> None:
    task, cache = task_with(tmp_path), tmp_path / "cache"
    file = prepare(task, "mini", cache).public / "train.csv"
    before = file.stat()
    file.write_text("id,y\n1,1\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert is_prepared(task, "mini", cache) is not None
    assert is_prepared(task, "mini", cache, verify=True) is None


def test_a_torn_manifest_means_not_prepared(tmp_path: Path) -> None:
    task, cache = task_with(tmp_path), tmp_path / "cache"
    manifest = prepare(task, "mini", cache).public.parent / "manifest.json"
    content = manifest.read_text()
    for text in (content[:40], "[]", json.dumps(json.loads(content) | {"format": 99})):
        manifest.write_text(text)
        assert is_prepared(task, "mini", cache) is None
    assert prepare(task, "mini", cache).variant == "mini"


def test_an_unknown_variant_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="task toy has no data variant 'maxi'; it has: mini, full"
    ):
        prepare(task_with(tmp_path), "maxi", tmp_path / "cache")


RAISES = "def prepare(raw, public, answers, variant):\n    raise KeyError('SalePrice')\n"
EXITS = "import os\n\ndef prepare(raw, public, answers, variant):\n    os.kill(os.getpid(), 11)\n"
CHATTY = """\
def prepare(raw, public, answers, variant):
    print("x" * 100000)
    print("the end")
    raise SystemExit(3)
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            RAISES,
            [
                "data.py (mini) failed with exit status 1",
                'File "data.py", line 2',
                "KeyError: 'SalePrice'",
            ],
        ),
        (EXITS, ["was killed by signal 11"]),
        (CHATTY, ["failed with exit status 3", "the end"]),
        ("x = 1\n", ["has no attribute 'prepare'"]),
        ("def prepare(:\n", ["SyntaxError"]),
    ],
)
def test_a_failing_data_py_is_the_tasks_fault_and_leaves_nothing(
    tmp_path: Path, code: str, expected: list[str]
) -> None:
    with pytest.raises(SuiteError) as caught:
        prepare(task_with(tmp_path, data_py=code), "mini", tmp_path / "cache")
    for text in (str(tmp_path / "toy" / "data.py"), *expected):
        assert text in str(caught.value)
    assert len(str(caught.value)) < 5000
    assert leftovers(tmp_path / "cache") == []
    assert is_prepared(task_with(tmp_path), "mini", tmp_path / "cache") is None


def test_a_missing_package_names_the_tasks_requirements(tmp_path: Path) -> None:
    task = task_with(tmp_path, data_py="import no_such_package_here\n")
    with pytest.raises(
        DataUnavailable,
        match=r'No module named .no_such_package_here.; to fix: pip install "numpy>=1\.26"',
    ):
        prepare(task, "mini", tmp_path / "cache")
    source = Source("embedded", "raw/points.csv", licence="CC0")
    full = task_with(tmp_path, source, variant="full")
    with pytest.raises(DataUnavailable, match=r'pip install "numpy>=1\.26" "pytest-mlab\[full\]"$'):
        prepare(full, "full", tmp_path / "cache")


PUBLISHES = (
    DATA_PY
    + "    (public / {name!r}).parent.mkdir(exist_ok=True)\n    (public / {name!r}).{write}\n"
)


@pytest.mark.parametrize(
    ("name", "write", "expected"),
    [
        (
            "sub/copy.csv",
            "write_text(lines[-1] + '\\n')",
            "public/sub/copy.csv is the same file as answers/answer.csv",
        ),
        ("train.py", "write_text('x')", "wrote public/train.py, but env/train.py exists too"),
        ("link.csv", "symlink_to(raw / 'points.csv')", "wrote public/link.csv, which is a link"),
    ],
)
def test_data_that_give_answers_away_or_shadow_files_are_refused(
    tmp_path: Path, name: str, write: str, expected: str
) -> None:
    task = task_with(tmp_path, data_py=PUBLISHES.format(name=name, write=write))
    with pytest.raises(SuiteError, match=expected):
        prepare(task, "mini", tmp_path / "cache")
    assert is_prepared(task, "mini", tmp_path / "cache") is None


def test_an_empty_file_on_both_sides_gives_nothing_away(tmp_path: Path) -> None:
    code = DATA_PY + "    (public / 'a').touch()\n    (answers / 'b').touch()\n"
    assert "a" in prepare(task_with(tmp_path, data_py=code), "mini", tmp_path / "cache").files


PEEKS = """\
import os, sys
from pathlib import Path


def prepare(raw, public, answers, variant):
    beside = sorted(path.name for path in Path(__file__).parent.iterdir())
    (answers / "beside").write_text(str(beside))
    (answers / "env").write_text(str(sorted(os.environ)))
    (answers / "path").write_text(str("" in sys.path))
"""


def test_data_py_sees_neither_the_task_folder_nor_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-x")
    ready = prepare(task_with(tmp_path, data_py=PEEKS), "mini", tmp_path / "cache")
    assert "env" not in (ready.answers / "beside").read_text()
    assert "API_KEY" not in (ready.answers / "env").read_text()
    assert "PYTEST" not in (ready.answers / "env").read_text()
    assert (ready.answers / "path").read_text() == "False"


def test_an_embedded_file_that_changed_is_refused(tmp_path: Path) -> None:
    source = Source("embedded", "raw/points.csv", sha256="0" * 64)
    with pytest.raises(
        SuiteError, match=r"points\.csv: sha256 is [0-9a-f]{64}, .*task\.toml says 0000"
    ):
        prepare(task_with(tmp_path, source), "mini", tmp_path / "cache")


def test_sources_that_bring_the_same_path_are_refused(tmp_path: Path) -> None:
    source = Source("embedded", "raw/points.csv")
    with pytest.raises(
        SuiteError, match=r"two sources of the task bring the same path 'points\.csv'"
    ):
        prepare(task_with(tmp_path, source, source), "mini", tmp_path / "cache")


def test_a_folder_may_be_embedded_and_a_generator_brings_nothing(tmp_path: Path) -> None:
    code = (
        "def prepare(raw, public, answers, variant):\n    (answers /"
        " 'raw').write_text(str([*raw.rglob('*.csv')]))\n"
    )
    task = task_with(tmp_path, Source("embedded", "raw"), Source("generator"), data_py=code)
    ready = prepare(task, "mini", tmp_path / "cache")
    assert "raw/raw/points.csv" in (ready.answers / "raw").read_text()
    assert not (ready.public.parent / "raw").exists()


def test_a_cache_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(DataUnavailable, match=r"cannot be prepared: .*--cache-dir"):
        prepare(task_with(tmp_path), "mini", tmp_path / "cache")


CHILD = """\
import sys
from pathlib import Path
from pytest_mlab.data.prepare import prepare
from pytest_mlab.suites.loader import load_task
task = load_task(Path(sys.argv[1]), "lab")
print("ready", flush=True)
sys.stdin.readline()
print("begins", flush=True)
print(prepare(task, "mini", Path(sys.argv[2])).digest)
"""


def start_child(tmp_path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path / "toy"), str(tmp_path / "cache")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def tell(child: subprocess.Popen[str], word: str) -> None:
    assert child.stdin is not None
    child.stdin.write(word + "\n")
    child.stdin.flush()


def hear(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


GATED = COUNTED + "    with open({gate!r}) as file:\n        file.readline()\n"


def test_eight_processes_at_once_prepare_once(tmp_path: Path) -> None:
    counter, gate = tmp_path / "counter", tmp_path / "gate"
    os.mkfifo(gate)
    task_with(tmp_path, data_py=GATED.format(counter=str(counter), gate=str(gate)))
    children = [start_child(tmp_path) for _ in range(8)]
    assert [hear(child) for child in children] == ["ready"] * 8
    for child in children:
        tell(child, "go")
    assert [hear(child) for child in children] == ["begins"] * 8
    held = os.open(gate, os.O_RDWR)  # data.py goes on only now that all eight are under way
    os.write(held, b"on\n" * 8)
    answers = {child.communicate(timeout=60)[0] for child in children}
    os.close(held)
    assert [child.returncode for child in children] == [0] * 8
    assert len(answers) == 1
    assert runs(counter) == 1


# Says that it runs through one pipe, and waits at another for a word that never comes.
WAITS = (
    DATA_PY
    + """
    told = open({told!r}, "w")
    told.write("started\\n")
    told.flush()
    open({gate!r}).read()
"""
)


def test_a_killed_prepare_leaves_nothing_half_done_and_the_next_one_succeeds(
    tmp_path: Path,
) -> None:
    told, gate, cache = tmp_path / "told", tmp_path / "gate", tmp_path / "cache"
    os.mkfifo(told)
    os.mkfifo(gate)
    task = task_with(tmp_path, data_py=WAITS.format(told=str(told), gate=str(gate)))
    held = os.open(gate, os.O_RDWR)
    child = start_child(tmp_path)
    tell(child, "go")
    with told.open() as pipe:
        assert pipe.readline() == "started\n"
        os.kill(child.pid, signal.SIGKILL)
        child.communicate(timeout=60)
        assert pipe.read() == ""  # the end of the pipe: data.py has died with its parent
    os.close(held)
    assert is_prepared(task, "mini", cache) is None
    assert len(leftovers(cache)) == 1
    assert (
        prepare(task_with(tmp_path, data_py=DATA_PY), "mini", cache).public / "train.csv"
    ).exists()
    assert leftovers(cache) == []
