"""The leak scan: every way of giving answers away is seen, and a sound task gives no alarm."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_mlab.core.sandbox_api import Connection, Mount, SandboxSpec
from pytest_mlab.errors import SuiteError
from pytest_mlab.trial.workspace import Workspace
from pytest_mlab.validation.bench import Bench, LeakLimits
from pytest_mlab.validation.finding import Finding
from tests.support.toy_suite import DATA
from tests.validation.tasks import finding, settings, sound_task, subject, the

needs_bwrap = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bwrap is not installed: apt-get install bubblewrap"
)

WRITE_TEST = 'write(public / "test.csv", ["id", "x"], test)'


def with_data(folder: Path, *lines: str) -> Path:
    """A sound task whose data.py does something more."""
    return sound_task(folder, data=DATA + "".join(f"    {line}\n" for line in lines))


def leak(folder: Path, *lines: str, limits: LeakLimits | None = None) -> Finding:
    changes = {} if limits is None else {"leaks": limits}
    return finding("leaks", with_data(folder / "guess", *lines), **changes)


def test_a_sound_task_has_no_leak(sound: Bench) -> None:
    found = the("leaks").run(sound)
    assert (found.status, found.reason) == (
        "ok",
        (
            "1 column and 0 other files of answers, 4 visible files; "
            "the sandbox's view: not applicable, local hides nothing"
        ),
    )


LEAKS = [
    # joined by id, in another order, under another name and code
    (
        (
            'write(public / "more.csv", ["who", "n"], [(k, int(label(x) == "yes")) for k, x in'
            " reversed(test)])"
        ),
        "more.csv: n determines (100% of errors saved) label of answers/answers.csv, row by id",
    ),
    # the answers themselves among others
    (
        'write(public / "all.csv", ["id", "label"], [(k, label(x)) for k, x in train + test])',
        "all.csv: label equals label of answers/answers.csv, row by id",
    ),
    # several values stand for each answer
    (
        (
            'write(public / "hash.csv", ["id", "bucket"], [(k, (x >= 40) * 10 + x % 5) for k, x'
            " in test])"
        ),
        (
            "hash.csv: bucket determines (100% of errors saved) label of answers/answers.csv,"
            " row by id"
        ),
    ),
    # no ids: the place tells
    (
        '(public / "order.txt").write_text("\\n".join(str(x // 40 > 0) for k, x in test))',
        (
            "order.txt: line determines (100% of errors saved) label of answers/answers.csv,"
            " row by its place"
        ),
    ),
    (
        (
            '(public / "n.json").write_text(__import__("json").dumps([{"a": k, "b": label(x)}'
            " for k, x in test]))"
        ),
        "n.json: b equals label of answers/answers.csv, row by id",
    ),
    (
        ('(public / "m.json").write_text(__import__("json").dumps({k: x >= 40 for k, x in test}))'),
        ("m.json: value determines (100% of errors saved) label of answers/answers.csv, row by id"),
    ),
    (
        '__import__("numpy").save(public / "n.npy", [x >= 40 for k, x in test])',
        (
            "n.npy: value determines (100% of errors saved) label of answers/answers.csv, row"
            " by its place"
        ),
    ),
    (
        (
            '(public / "n.csv.gz").write_bytes(__import__("gzip").compress(("id,y\\n" +'
            ' "\\n".join(f"{k},{label(x)}" for k, x in test)).encode()))'
        ),
        "n.csv: y equals label of answers/answers.csv, row by id",
    ),
    (
        (
            '__import__("pyarrow.parquet").parquet.write_table(__import__("pyarrow").table({"k":'
            ' [k for k, x in test], "y": [x >= 40 for k, x in test]}), public / "n.parquet")'
        ),
        (
            "n.parquet:table.csv: y determines (100% of errors saved) label of"
            " answers/answers.csv, row by id"
        ),
    ),
    # opaque files: a run of answers as bytes
    (
        (
            '__import__("PIL.Image").Image.frombytes("L", (len(test), 1), bytes(int(x >= 40)'
            ' for k, x in test)).save(public / "n.png")'
        ),
        "n.png:pixels holds a run of label of answers/answers.csv",
    ),
    (
        (
            '(public / "n.pkl").write_bytes(__import__("pickle").dumps([int(x >= 40) for k, x'
            " in test]))"
        ),
        "n.pkl holds a run of label of answers/answers.csv",
    ),
    (
        '(public / "weights.bin").write_bytes(b"head" + bytes(int(x >= 40) for k, x in test))',
        "weights.bin holds a run of label of answers/answers.csv",
    ),
    (
        (
            '(public / "log.md").write_text("predicted " + " ".join(label(x) for k, x in test)'
            ' + " in the end")'
        ),
        "log.md holds a run of label of answers/answers.csv",
    ),
]


def test_leaks(tmp_path: Path) -> None:
    """All in one task, each in a file of its own."""
    found = leak(tmp_path, *(line for line, _ in LEAKS))
    assert found.status == "fail"
    assert sorted(found.facts["found"]) == sorted(reason for _, reason in LEAKS)


def test_what_was_not_looked_into_is_told(tmp_path: Path) -> None:
    lines = [f'(public / "{n}.jpg").write_bytes(b"\\xff\\xd8\\xff a picture")' for n in range(2)]
    found = leak(
        tmp_path, *lines, '(public / "a.zst").write_bytes(b"\\x28\\xb5\\x2f\\xfd something")'
    )
    assert found.status == "ok"
    assert found.reason.endswith("; not looked into: 2 x jpeg image (pixels: lossy), 1 x zstd file")
    assert found.facts["closed"] == {"jpeg image (pixels: lossy)": 2, "zstd file": 1}


def test_answers_among_the_starter_files(tmp_path: Path) -> None:
    task = with_data(tmp_path / "guess")
    lines = "".join(f"b{i},{'yes' if 7 * i % 100 >= 40 else 'no'}\n" for i in range(100))
    (task / "env" / "cache.csv").write_text("id,label\n" + lines)
    found = finding("leaks", task)
    assert (found.status, found.reason) == (
        "fail",
        "cache.csv: label equals label of answers/answers.csv, row by id",
    )


NUMBERS = """\
import random
import shutil


def prepare(raw, public, answers, variant):
    rng = random.Random(1)
    truth = [round(rng.uniform(1, 1000), 3) for _ in range(100)]
    lines = "".join(f"b{i},{y}\\n" for i, y in enumerate(truth))
    (answers / "answers.csv").write_text("id,label\\n" + lines)
    (public / "train.csv").write_text("id,x\\n")
    rows = "".join(f"b{i},{VISIBLE}\\n" for i, y in enumerate(truth))
    (public / "test.csv").write_text("id,x\\n" + rows)
"""


@pytest.mark.parametrize(
    ("visible", "status", "words"),
    [
        ("y", "fail", "test.csv: x equals label"),
        ("2.2 * y + 1", "fail", "test.csv: x has the order (rank correlation 1.0000) of label"),
        ("-y ** 3", "fail", "test.csv: x has the order (rank correlation 1.0000) of label"),
        (
            "truth[-i]",
            "fail",
            "test.csv: x has the values of label of answers/answers.csv in another order",
        ),
        ("y + rng.uniform(-150, 150)", "ok", ""),
    ],
)
def test_numbers(tmp_path: Path, visible: str, status: str, words: str) -> None:
    task = sound_task(tmp_path / "guess", data=NUMBERS.replace("VISIBLE", visible))
    found = finding("leaks", task)
    assert found.status == status
    assert words in found.reason


def test_the_rank_that_counts_can_be_set(tmp_path: Path) -> None:
    task = sound_task(
        tmp_path / "guess", data=NUMBERS.replace("VISIBLE", "y + rng.uniform(-150, 150)")
    )
    assert "rank correlation 0.9" in finding("leaks", task, leaks=LeakLimits(rank=0.9)).reason


def test_too_little_information_is_no_leak(tmp_path: Path) -> None:
    """A hundred labels have 97 bits."""
    line = 'write(public / "all.csv", ["id", "label"], [(k, label(x)) for k, x in train + test])'
    assert leak(tmp_path, line, limits=LeakLimits(bits=98)).status == "ok"


OPAQUE = """\
import random


def prepare(raw, public, answers, variant):
    rng = random.Random(1)
    masks = bytes(rng.randrange(256) for _ in range(5000))
    (answers / "masks.bin").write_bytes(masks)
    (public / "train.csv").write_text("id,x\\n")
    (public / "test.csv").write_text("id,x\\n")
    (public / "images.bin").write_bytes(SHOWN)
"""


@pytest.mark.parametrize(
    ("shown", "status"), [("b'head' + masks", "fail"), ("masks[:2000]", "ok"), ("b'x'", "ok")]
)
def test_files_without_columns(tmp_path: Path, shown: str, status: str) -> None:
    found = finding("leaks", sound_task(tmp_path / "guess", data=OPAQUE.replace("SHOWN", shown)))
    assert found.status == status
    if status == "fail":
        assert found.reason == "images.bin holds 16 of 16 pieces of answers/masks.bin"


def test_packing_hides_nothing(tmp_path: Path) -> None:
    data = OPAQUE.replace('(answers / "masks.bin").write_bytes(masks)', PACKED).replace(
        "SHOWN", "b'head' + masks"
    )
    found = finding("leaks", sound_task(tmp_path / "guess", data=data))
    assert (found.status, found.reason) == (
        "fail",
        "images.bin holds 16 of 16 pieces of answers/masks.bin",
    )


PACKED = "(answers / 'masks.bin.gz').write_bytes(__import__('gzip').compress(masks))"


def test_files_that_are_shared_by_the_tasks_own_word(tmp_path: Path) -> None:
    """A model that the evaluator times in its original form."""
    task = sound_task(tmp_path / "guess", data=OPAQUE.replace("SHOWN", "masks"))
    with pytest.raises(SuiteError, match="gives answers away"):
        finding("leaks", task)
    toml = (task / "task.toml").read_text()
    (task / "task.toml").write_text('shared = ["masks.*"]\n' + toml)
    found = finding("leaks", task)
    assert (found.status, found.reason.split(";")[1]) == ("ok", " shared: masks.*")
    (task / "task.toml").write_text('shared = ["mask.*", "masks.bin"]\n' + toml)
    assert finding("files", task).reason.endswith("shared: mask.* matches no file of the answers")


def test_a_column_that_does_not_count_is_no_answer(tmp_path: Path) -> None:
    """The month of a visit stands beside the answers, and in the public data too."""
    data = DATA.replace(
        'write(answers / "answers.csv", ["id", "label"], [(key, label(x)) for key, x in test])',
        'write(answers / "answers.csv", ["id", "month", "label"], [(k, x % 7, label(x)) for k, x in'
        ' test])\n    write(public / "months.csv", ["id", "month"], [(k, x % 7) for k, x in test])',
    )
    task = sound_task(tmp_path / "guess", data=data)
    text = (task / "evaluator.py").read_text()
    (task / "evaluator.py").write_text(
        text.replace(
            'columns={"label": text})\n    given',
            'columns={"label": text, "month": text})\n    given',
        ).replace("== label for key, label in", '== {"label": row["label"]} for key, row in')
    )
    assert finding("leaks", task).status == "ok"
    (task / "evaluator.py").write_text(
        (task / "evaluator.py")
        .read_text()
        .replace("sum(", "sum(int(row['month']) == int(key[1:]) * 7 % 100 % 7 and ")
    )
    assert finding("leaks", task).facts["found"] == [
        "months.csv: month equals month of answers/answers.csv, row by id"
    ]


class OpenBench(Bench):
    """A bench whose sandbox shows one thing too many."""

    shown: Path

    def open(self, workspace: Workspace) -> Connection:
        mounts = (*workspace.mounts, Mount(self.shown, "/mnt/shown"))
        resources, network = self.task.resources, self.settings.network
        return self.sandbox.open(
            SandboxSpec(workspace.root, "mlab-test-open", mounts, resources, network)
        )


@needs_bwrap
def test_answers_in_the_sandbox(tmp_path: Path) -> None:
    task = with_data(tmp_path / "guess")
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "notes.txt").write_text(
        ", ".join("yes" if 7 * i % 100 >= 40 else "no" for i in range(100))
    )
    made = OpenBench(subject(task), settings(sandbox="bubblewrap"))
    made.shown = shown
    with made:
        found = the("leaks").run(made)
    assert found.status == "fail"
    assert found.reason.startswith("/mnt/shown/notes.txt holds piece ")


@needs_bwrap
def test_the_sandbox_shows_no_answers(tmp_path: Path) -> None:
    found = finding("leaks", with_data(tmp_path / "guess"), sandbox="bubblewrap")
    assert (found.status, found.reason) == (
        "ok",
        "1 column and 0 other files of answers, 4 visible files",
    )
