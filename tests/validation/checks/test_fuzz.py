"""Broken submissions: a strict evaluator refuses them all, a careless one is found out; other kinds
than csv."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mlab.core.task import Submission
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.csv_table import constants, read_table
from pytest_mlab.validation.finding import Finding, Unavailable
from pytest_mlab.validation.mutants import BINARY, mutants
from tests.suites.folders import edit
from tests.support.toy_suite import EVALUATOR
from tests.validation.tasks import STRICT, bench, borrowing, sound_task, the


def fuzzed(task: Path, like: Bench) -> Finding:
    """What the check says about a task that differs from ``like``'s in its evaluator."""
    with borrowing(like, task) as made:
        return the("fuzz").run(made)


def test_a_strict_evaluator_refuses_all(sound: Bench) -> None:
    found = the("fuzz").run(sound)
    assert found.status == "ok"
    verdicts = found.facts["verdicts"]
    assert len(verdicts) == 24
    assert {name for name, word in verdicts.items() if word == "scored"} == {
        "NaN in column label",
        "inf in column label",
        "lots in column label",
    }
    assert {name for name, word in verdicts.items() if word == "no_submission"} == {"missing"}
    assert "still whole, scored (NaN in column label" in found.reason


def test_a_careless_evaluator_is_found_out(
    sound: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_mlab.validation.checks.fuzz.PATIENCE", 0.5)
    found = fuzzed(sound_task(tmp_path / "guess", evaluator=EVALUATOR), sound)
    assert found.status == "fail"
    faults = " | ".join(found.facts["faults"])
    assert "duplicate id: scored 1 all the same" in faults
    assert "binary file: task_error: task guess: evaluator.py:" in faults
    assert "empty directory: task_error: task guess: evaluator.py:" in faults
    assert "symbolic link: scored 1 all the same" in faults
    assert "pipe: task_error: task guess: the evaluator did not end within" in faults
    assert found.reason.endswith(f"(and {len(found.facts['faults']) - 3} more of 24)")


def test_nothing_that_is_scored(sound: Bench, tmp_path: Path) -> None:
    lenient = STRICT.replace(
        "    truth =",
        "    if not (submission_dir / 'submission.csv').is_file():\n        return 0.0\n   "
        " truth =",
    )
    found = fuzzed(sound_task(tmp_path / "guess", evaluator=lenient), sound)
    assert "missing: scored 0 all the same" in found.facts["faults"]


def test_not_a_number(tmp_path: Path) -> None:
    """Where the reference hands in numbers, what is no number has to be refused."""
    strict = STRICT.replace("read_submission, text", "number, read_submission").replace(
        ": text", ": number"
    )
    task = sound_task(tmp_path / "guess", evaluator=strict)
    for script in ("env/train.py", "reference/train.py"):
        code = (task / script).read_text().replace('== "yes"', '== "1"')
        (task / script).write_text(code.replace('"no"', "0").replace('"yes"', "1"))
    edit(task / "data.py", '"yes" if x >= 40 else "no"', "int(x >= 40)")
    with bench(task) as made:
        assert the("fuzz").run(made).status == "ok"
        edit(task / "evaluator.py", "number", "float")
        edit(task / "evaluator.py", "read_answers, float, ", "read_answers, ")
        faults = the("fuzz").run(made).facts["faults"]
    assert [fault.partition(":")[0] for fault in faults] == [
        "NaN in column label",
        "inf in column label",
    ]


CSV_TOML = 'kind = "csv"\npath = "submission.csv"\ncolumns = ["id", "label"]'

SCRIPT = """\
from pytest_mlab.evaluation import InvalidSubmission, read_file


def evaluate(submission_dir, answers_dir):
    code = read_file(submission_dir / "train.py", max_mb=1)
    space = {}
    try:
        exec(code, space)
        return float(space["answer"]())
    except (Exception, SystemExit) as error:
        CATCH
"""


def script_task(
    folder: Path, catch: str = "raise InvalidSubmission(f'train.py: {error!r}') from None"
) -> Path:
    """The answer is what a function returns."""
    starter, better = (f"def answer():\n    return {score}\n# {'-' * 80}\n" for score in (0.6, 1.0))
    task = sound_task(
        folder, evaluator=SCRIPT.replace("CATCH", catch), train=starter, better_train=better
    )
    edit(task / "task.toml", CSV_TOML, 'kind = "script"\npath = "train.py"')
    return task


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(script_task(tmp_path_factory.mktemp("script") / "guess")) as made:
        yield made


def test_a_script(script: Bench) -> None:
    found = the("fuzz").run(script)
    assert found.status == "ok"
    assert len(found.facts["verdicts"]) == 11
    assert found.facts["verdicts"]["truncated file"] == "scored"
    order = the("order").run(script)
    assert (order.status, order.reason) == ("not_applicable", "a script has no rows")
    degenerate = the("degenerate").run(script)
    assert degenerate.facts["submissions"] == {
        "untouched workspace": 0.6,
        "nothing": "no_submission",
        "empty": "invalid_submission",
    }
    assert degenerate.reason.endswith("constant, shuffled: not applicable to a script")


def test_a_script_whose_failure_is_blamed_on_the_task(
    script: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each mutant of a script has a sandbox of its own: one is enough here.
    monkeypatch.setattr(
        "pytest_mlab.validation.checks.fuzz.mutants",
        lambda *of: (m for m in mutants(*of) if m.name == "a program that fails"),
    )
    found = fuzzed(script_task(tmp_path / "guess", "raise"), script)
    assert found.status == "fail"
    (fault,) = found.facts["faults"]
    assert fault.startswith("a program that fails: task_error")


DIRECTORY = """\
from pytest_mlab.evaluation import NoSubmission, read_file


def evaluate(submission_dir, answers_dir):
    model = submission_dir / "model"
    if model.is_symlink() or not model.is_dir():
        raise NoSubmission("model/ is missing")
    weights = read_file(model / "weights", max_mb=1)
    return PARSE
"""


def directory_task(folder: Path, parse: str) -> Path:
    starter, better = (
        "import os\nos.mkdir('model')\nopen('model/notes', 'w').write('n')\n"
        f"open('model/weights', 'w').write('{score}')\n"
        for score in ("0.60", "1.00")
    )
    task = sound_task(
        folder, evaluator=DIRECTORY.replace("PARSE", parse), train=starter, better_train=better
    )
    edit(task / "task.toml", CSV_TOML, 'kind = "directory"\npath = "model"')
    return task


def test_a_directory(tmp_path: Path) -> None:
    task = directory_task(tmp_path / "guess", "float(weights.isascii() and len(weights) == 4)")
    with bench(task) as made:
        found = the("fuzz").run(made)
        assert found.status == "ok"
        verdicts = found.facts["verdicts"]
        assert verdicts["weights missing"] == "no_submission"
        assert verdicts["weights empty"] == "invalid_submission"
        assert verdicts["notes missing"] == verdicts["weights binary"] == "scored"
        # One that does not check the content.
        found = fuzzed(directory_task(tmp_path / "careless" / "guess", "float(weights)"), made)
    assert found.status == "fail"
    assert [fault.partition(":")[0] for fault in found.facts["faults"]] == ["weights binary"]


def test_every_mutant_is_another_file(tmp_path: Path) -> None:
    """A mutant breaks its copy and never the submission, whose files it may share."""
    original = "id,label\na,1\nb,2\nc,1\n"
    seen = set()
    for number, mutant in enumerate(
        mutants(write(tmp_path / "valid", original), Submission("csv", "s.csv"))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        os.link(tmp_path / "valid" / "s.csv", folder / "s.csv")
        mutant.make(folder)
        assert (tmp_path / "valid" / "s.csv").read_text() == original, mutant.name
        place = folder / "s.csv"
        if place.is_file() and not place.is_symlink():
            assert place.read_bytes() != original.encode(), mutant.name
            seen.add(place.read_bytes())
        if mutant.name == "pipe":
            assert stat.S_ISFIFO(place.lstat().st_mode)
    assert BINARY in seen
    assert b"label,id\na,1\nb,2\nc,1\n" in seen
    assert b"id,label\nb,1\nb,2\nc,1\n" in seen
    assert b"id,label\na,NaN\nb,2\nc,1\n" in seen
    assert b"id,label\na,1\nb,2\n" in seen
    assert len(seen) == 19


def write(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "s.csv").write_text(text)
    return folder


def test_constants(tmp_path: Path) -> None:
    table = read_table(
        write(tmp_path / "valid", "n,id,w\n1,a,x\n3,b,y\n3,c,y\n") / "s.csv", ["id", "n", "w"]
    )
    assert {name: made.rows for name, made in constants(table)} == {
        "first value": (("1", "a", "x"), ("1", "b", "x"), ("1", "c", "x")),
        "most frequent value": (("3", "a", "y"), ("3", "b", "y"), ("3", "c", "y")),
    }
    numbers = read_table(write(tmp_path / "numbers", "id,n\na,1\nb,4\n") / "s.csv", [])
    assert dict(constants(numbers))["mean value"].rows == (("a", "2.5"), ("b", "2.5"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "no rows"), ("a,b\n1\n", "different lengths"), ("a,b\n1,1\n1,1\n", "no column of ids")],
)
def test_what_is_no_table(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(Unavailable, match=reason):
        read_table(write(tmp_path / "valid", text) / "s.csv", [])
