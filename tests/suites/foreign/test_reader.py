"""Folders in MLAgentBench's own format become ordinary tasks; what the format leaves out is asked
for in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.core.task import Direction, Task
from pytest_mlab.data.prepare import Prepared, prepare, refused_rules
from pytest_mlab.errors import ConfigError, DataUnavailable, SuiteError
from pytest_mlab.evaluation.main import judge
from pytest_mlab.suites.catalog import Catalog
from pytest_mlab.suites.foreign.facts import KNOWN, is_placeholder
from pytest_mlab.suites.foreign.imports import missing_imports
from pytest_mlab.suites.foreign.reader import load_foreign, origin_of
from tests.suites.folders import toy_task
from tests.support.foreign_suite import PREPARE, PROBLEM, STARTER, files_below, foreign_task

ASKS = (
    'name = "rules"\ninput(f"Consent at https://example.org/{name}/data; press a key")\n' + PREPARE
)
ASKS_BEHIND = (
    'print("Download 2 GB? (y/N)")\nimport builtins\nassert builtins.input() == "y"\n' + PREPARE
)


def load(folder: Path, **files: str | None) -> Task:
    foreign_task(
        folder,
        {name.replace("__", "/").replace("_DOT_", "."): text for name, text in files.items()},
    )
    return load_foreign(folder, "bench", folder.parent.parent / "cache")


def ready(task: Task, tmp_path: Path, *consent: str) -> Prepared:
    return prepare(task, "mini", tmp_path / "cache", consent=consent)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bench" / "guess"


# --- what is read ---


def test_a_folder_is_read_as_a_task_and_stays_as_it_is(folder: Path, tmp_path: Path) -> None:
    foreign_task(folder)
    before = files_below(folder)
    task = load_foreign(folder, "bench", tmp_path / "cache")
    ready(task, tmp_path)
    assert files_below(folder) == before
    assert (task.name, task.suite, task.modality, task.starter_script) == (
        "guess",
        "bench",
        "tabular",
        "train.py",
    )
    assert task.metric.name == "accuracy"
    assert task.read_only == ("test.csv",)
    baseline = task.variants["mini"].baseline
    assert baseline is not None
    assert (baseline.mean, baseline.n) == (0.4, 2)


def test_the_description_is_the_problem_with_metric_and_direction(folder: Path) -> None:
    assert (
        load(folder).description
        == f"{PROBLEM}\n\nYour final files are scored by this metric: accuracy; higher is better.\n"
    )


def test_a_change_of_the_folder_changes_the_task(folder: Path, tmp_path: Path) -> None:
    task = load(folder)
    assert load_foreign(folder, "bench", tmp_path / "cache").digest == task.digest
    (folder / "scripts" / "eval.py").write_text("def get_score(folder):\n    return 1.0\n")
    assert load_foreign(folder, "bench", tmp_path / "cache").digest != task.digest


def test_names_are_made_fit(folder: Path) -> None:
    assert load(folder.parent / "My_Task").name == "my-task"


def test_requirements_are_taken_from_the_lines_that_are_some(folder: Path) -> None:
    text = "numpy>=1.21  # arrays\n-r other.txt\n\n# comment\ngit+https://example.org/x\nsix\n"
    foreign_task(folder, {"scripts/requirements.txt": text})
    assert load_foreign(folder, "bench", folder.parent.parent / "cache").requirements == (
        "numpy>=1.21",
        "six",
    )


def test_the_starter_script_is_the_only_one_there_is(folder: Path) -> None:
    foreign_task(
        folder,
        {"env/train.py": None, "env/go.py": STARTER, "mlab.toml": 'direction = "maximize"\n'},
    )
    assert load_foreign(folder, "bench", folder.parent.parent / "cache").starter_script == "go.py"


def test_which_of_two_scripts_is_the_starter_is_asked(folder: Path) -> None:
    foreign_task(
        folder,
        {
            "env/train.py": None,
            "env/a.py": "",
            "env/b.py": "",
            "mlab.toml": 'direction = "maximize"\n',
        },
    )
    with pytest.raises(
        SuiteError, match=r'\(a\.py, b\.py\)\? Add starter_script = "<name>" to .*mlab\.toml'
    ):
        load_foreign(folder, "bench", folder.parent.parent / "cache")


# --- metric, direction, baseline ---


def test_an_unknown_name_without_mlab_toml_is_told_the_five_lines(folder: Path) -> None:
    foreign_task(folder, {"mlab.toml": None})
    with pytest.raises(SuiteError) as caught:
        load_foreign(folder, "bench", folder.parent.parent / "cache")
    text = str(caught.value)
    assert str(folder / "mlab.toml") in text
    lines = [line.split("=")[0].strip() for line in text.splitlines()[1:]]
    assert lines == ["metric", "direction", "baseline", "modality", "starter_script"]


@pytest.mark.parametrize(
    ("name", "direction", "baseline"),
    [
        ("vectorization", "minimize", 6.1742),
        ("imdb", "maximize", 0.5),
        ("spaceship-titanic", "maximize", 0.5),
        ("ogbn-arxiv", "maximize", 0.3134),
        ("house-price", "minimize", None),
        ("CLRS", "maximize", None),
    ],
)
def test_the_authors_own_tasks_are_known(
    folder: Path, name: str, direction: str, baseline: float | None
) -> None:
    task = load(folder.parent / name, mlab_DOT_toml=None)
    assert task.metric.direction == Direction(direction)
    found = task.variants["mini"].baseline
    assert (found.mean if found else None) == baseline


def test_the_table_has_thirteen_names_and_no_placeholder() -> None:
    assert len(KNOWN) == 13
    assert not any(
        known.baseline is not None and is_placeholder(known.baseline) for known in KNOWN.values()
    )


def test_mlab_toml_wins_over_the_table(folder: Path) -> None:
    task = load(folder.parent / "vectorization", mlab_DOT_toml="baseline = 2.5\n")
    baseline = task.variants["mini"].baseline
    assert baseline is not None
    assert (baseline.mean, task.metric.direction) == (2.5, Direction.MINIMIZE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('direction = "maximize"\nbaseline = 1e10\n', r"baseline: 1e\+10 found, a placeholder"),
        ('direction = "maximize"\nbaseline = [1e-10]\n', "baseline: 1e-10 found, a placeholder"),
        ('direction = "maximize"\nbaseline = 0.0\n', "add threshold"),
        ('direction = "up"\n', r'mlab\.toml:1: direction: "up" found, must be one of'),
        ('dirction = "maximize"\n', r"mlab\.toml:1: dirction: unknown key; nearest: direction"),
        ("direction =\n", r"mlab\.toml:1: not valid TOML"),
        (
            'direction = "maximize"\nrequirements = ["numpy <"]\n',
            r"requirements: 'numpy <' found, must be a requirement",
        ),
    ],
)
def test_what_is_wrong_in_mlab_toml_is_told(folder: Path, text: str, message: str) -> None:
    foreign_task(folder, {"mlab.toml": text})
    with pytest.raises(SuiteError, match=message):
        load_foreign(folder, "bench", folder.parent.parent / "cache")


# --- data ---


def test_what_prepare_makes_is_public_and_scripts_are_not(folder: Path, tmp_path: Path) -> None:
    data = ready(load(folder), tmp_path)
    assert set(data.files) == {"test.csv"}
    answers = {name for name in files_below(data.answers) if name.startswith("scripts/")}
    assert {"scripts/answer.csv", "scripts/eval.py", "scripts/count.txt"} <= answers


def test_prepare_runs_once(folder: Path, tmp_path: Path) -> None:
    task = load(folder)
    first, second = ready(task, tmp_path), ready(task, tmp_path)
    assert first.digest == second.digest
    assert (second.answers / "scripts" / "count.txt").read_text() == "once\n"


def test_without_prepare_the_data_are_what_lies_there(folder: Path, tmp_path: Path) -> None:
    foreign_task(
        folder,
        {
            "scripts/prepare.py": None,
            "env/test.csv": "id\nt1\n",
            "scripts/answer.csv": "id,label\nt1,no\n",
        },
    )
    task = load_foreign(folder, "bench", tmp_path / "cache")
    assert not (task.folder / "env" / "test.csv").exists()
    assert set(ready(task, tmp_path).files) == {"test.csv"}


def test_a_checkout_that_is_prepared_is_not_prepared_again(folder: Path, tmp_path: Path) -> None:
    foreign_task(
        folder, {"scripts/prepare.py": "raise SystemExit('again')\n", "scripts/prepared": "success"}
    )
    ready(load_foreign(folder, "bench", tmp_path / "cache"), tmp_path)


def test_without_a_list_all_files_of_env_are_the_agents(folder: Path, tmp_path: Path) -> None:
    foreign_task(folder, {"scripts/read_only_files.txt": None, "env/notes.txt": "hints"})
    task = load_foreign(folder, "bench", tmp_path / "cache")
    assert task.read_only == ()
    assert (task.folder / "env" / "notes.txt").is_file()
    assert set(ready(task, tmp_path).files) == {"test.csv"}


def test_read_only_data_that_prepare_changes_are_the_changed_ones(
    folder: Path, tmp_path: Path
) -> None:
    foreign_task(folder, {"env/test.csv": "before"})
    data = ready(load_foreign(folder, "bench", tmp_path / "cache"), tmp_path)
    assert (data.public / "test.csv").read_text().startswith("id\nt0\n")


def test_starter_files_that_prepare_changes_are_an_error(folder: Path, tmp_path: Path) -> None:
    foreign_task(folder, {"env/test.csv": "before", "scripts/read_only_files.txt": None})
    with pytest.raises(
        SuiteError, match=r"(?s)prepare\.py changes env/test\.csv.*read_only_files\.txt"
    ):
        ready(load_foreign(folder, "bench", tmp_path / "cache"), tmp_path)


def test_a_failing_prepare_is_shown_with_its_status(folder: Path, tmp_path: Path) -> None:
    foreign_task(folder, {"scripts/prepare.py": "import sys\nprint('no disk')\nsys.exit(3)\n"})
    with pytest.raises(SuiteError, match=r"(?s)no disk.*prepare\.py ended with status 3"):
        ready(load_foreign(folder, "bench", tmp_path / "cache"), tmp_path)


def test_a_package_that_prepare_lacks_is_named(folder: Path, tmp_path: Path) -> None:
    foreign_task(folder, {"scripts/prepare.py": "import no_such_package_here\n"})
    with pytest.raises(DataUnavailable, match="No module named 'no_such_package_here'"):
        ready(load_foreign(folder, "bench", tmp_path / "cache"), tmp_path)


# --- prompts ---


def test_a_prompt_is_not_answered_without_consent(folder: Path, tmp_path: Path) -> None:
    foreign_task(folder, {"scripts/prepare.py": ASKS})
    task = load_foreign(folder, "bench", tmp_path / "cache")
    refusal = refused_rules(task, "mini", tmp_path / "cache", ())
    assert refusal is not None
    assert "https://example.org/rules/data" in str(refusal)
    assert f"--suite {folder.parent}" in refusal.fix
    assert "--accept-rules guess" in refusal.fix
    with pytest.raises(DataUnavailable, match=r"prepare\.py asks you"):
        ready(task, tmp_path)


@pytest.mark.parametrize("source", [ASKS, ASKS_BEHIND])
def test_a_prompt_is_answered_with_consent(folder: Path, tmp_path: Path, source: str) -> None:
    foreign_task(folder, {"scripts/prepare.py": source})
    assert set(
        ready(load_foreign(folder, "bench", tmp_path / "cache"), tmp_path, "guess").files
    ) == {"test.csv"}


def test_a_prompt_that_nobody_foresaw_does_not_hang(folder: Path, tmp_path: Path) -> None:
    foreign_task(folder, {"scripts/prepare.py": ASKS_BEHIND})
    with pytest.raises(
        SuiteError, match=r"(?s)waits at a prompt: Download 2 GB\? \(y/N\).*--accept-rules"
    ):
        ready(load_foreign(folder, "bench", tmp_path / "cache"), tmp_path)


# --- suites ---


def test_a_suite_is_named_by_its_path(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign_task(folder)
    foreign_task(folder.parent / "tool", {"scripts/eval.py": None})
    (folder.parent / "tasks.json").write_text("{}")
    catalog = Catalog(tmp_path, tmp_path / "cache")
    assert catalog.suite(str(folder.parent)).names == ("guess",)
    assert catalog.suite("./bench").task("guess").suite == "bench"
    monkeypatch.chdir(tmp_path)
    assert [task.name for task in catalog.suite("./bench").tasks()] == ["guess"]


def test_a_suite_of_the_project_may_hold_such_folders(tmp_path: Path) -> None:
    foreign_task(tmp_path / "task_suites" / "mine" / "guess")
    assert Catalog(tmp_path, tmp_path / "cache").suite("mine").task("guess").suite == "mine"


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        ("./nowhere", "there is no such folder"),
        ("./bench/guess", "is one task"),
        ("./bench/guess/env", "holds no task"),
    ],
)
def test_a_path_that_is_no_suite_is_told_why(
    folder: Path, tmp_path: Path, suite: str, message: str
) -> None:
    foreign_task(folder)
    with pytest.raises(ConfigError, match=message):
        Catalog(tmp_path, tmp_path / "cache").suite(suite).tasks()


def test_a_broken_folder_spoils_only_itself(folder: Path, tmp_path: Path) -> None:
    foreign_task(folder)
    foreign_task(folder.parent / "odd", {"mlab.toml": None})
    catalog = Catalog(tmp_path, tmp_path / "cache")
    assert catalog.suite("./bench").task("guess").name == "guess"
    with pytest.raises(SuiteError, match="'odd'"):
        catalog.suite("./bench").task("odd")
    guess, odd = catalog.suite("./bench").tasks()
    assert guess.fault == ""
    assert "'odd'" in odd.fault
    assert origin_of(odd) == folder.parent / "odd"
    assert odd.digest == catalog.suite("./bench").tasks(["odd"])[0].digest
    (folder.parent / "odd" / "mlab.toml").write_text('direction = "maximize"\n')
    assert catalog.suite("./bench").tasks()[1].fault == ""


def test_folders_that_are_no_tasks_are_told_with_what_they_lack(
    folder: Path, tmp_path: Path
) -> None:
    foreign_task(folder.parent / "Guess")
    foreign_task(folder)
    foreign_task(
        folder.parent / "tool", {"scripts/eval.py": None, "scripts/research_problem.txt": None}
    )
    foreign_task(folder.parent / "bare", {"env/train.py": None})
    toy_task(folder.parent, "ours")
    (toy_task(folder.parent, "draft") / "task.toml").unlink()
    (folder.parent / "notes").mkdir()
    (folder.parent / "_old").mkdir()
    catalog = Catalog(tmp_path, tmp_path / "cache")
    assert catalog.suite("./bench").names == ("guess", "ours")
    assert catalog.suite("./bench").left_out == {
        "bare": "no env/",
        "draft": "no task.toml",
        "guess": "Guess has the same name, guess",
        "tool": "no scripts/research_problem.txt and no scripts/eval.py",
    }


def test_a_folder_of_none_but_incomplete_tasks_says_what_they_lack(
    folder: Path, tmp_path: Path
) -> None:
    foreign_task(folder, {"scripts/eval.py": None})
    with pytest.raises(ConfigError, match=r"holds no task: .*; guess has no scripts/eval\.py"):
        Catalog(tmp_path, tmp_path / "cache").suite("./bench").tasks()


@pytest.mark.parametrize(
    "changed", [{"mlab.toml": "direction =\n"}, {"scripts/read_only_files.txt": "/etc/*\n"}]
)
def test_whatever_is_wrong_with_a_folder_is_its_fault_alone(
    folder: Path, tmp_path: Path, changed: dict[str, str | None]
) -> None:
    foreign_task(folder)
    foreign_task(folder.parent / "odd", changed)
    assert [
        bool(task.fault) for task in Catalog(tmp_path, tmp_path / "cache").suite("./bench").tasks()
    ] == [False, True]


# --- what has to be installed ---


def test_requirements_may_be_said_in_mlab_toml(folder: Path) -> None:
    foreign_task(folder, {"scripts/requirements.txt": "six\n"})
    (folder / "mlab.toml").write_text(
        'direction = "maximize"\nrequirements = ["numpy<2.4", "six"]\n'
    )
    assert load_foreign(folder, "bench", folder.parent.parent / "cache").requirements == (
        "six",
        "numpy<2.4",
    )


EVAL_IMPORTS = """\
import os, sys, no_such_a
from no_such_b.c import d
from train import GUESS
import own
if sys.argv:
    import no_such_f
try:
    import no_such_e
except ImportError:
    no_such_e = None


def get_score(folder):
    import no_such_g
"""


def test_imports_that_are_not_installed_are_found_without_running_anything(folder: Path) -> None:
    foreign_task(
        folder,
        {
            "scripts/eval.py": EVAL_IMPORTS,
            "env/own.py": "",
            "env/train.py": "import sklearn_extra_no, absl\n" + STARTER,
        },
    )
    found = missing_imports(folder, "train.py")
    assert found == {
        "no_such_a": "scripts/eval.py",
        "no_such_b": "scripts/eval.py",
        "sklearn_extra_no": "env/train.py",
        "absl-py": "env/train.py",
    }


def test_a_prepare_that_has_run_need_not_run_again(folder: Path) -> None:
    foreign_task(folder, {"scripts/prepare.py": "import no_such_a\n"})
    assert missing_imports(folder, "train.py") == {"no_such_a": "scripts/prepare.py"}
    (folder / "scripts" / "prepared").touch()
    assert missing_imports(folder, "train.py") == {}


def test_code_that_is_no_python_is_left_for_who_runs_it(folder: Path) -> None:
    foreign_task(folder, {"scripts/eval.py": "import no_such_a\nprint 1\n"})
    assert missing_imports(folder, "train.py") == {}


# --- evaluation ---


def test_the_evaluator_is_an_ordinary_one(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = load(folder)
    data = ready(task, tmp_path)
    for name in ("submission", "scratch"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "scratch")
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    monkeypatch.setattr("sys.argv", ["main.py"])
    found = judge(task.folder / "evaluator.py", tmp_path / "submission", data.answers)
    assert (found["verdict"], found["reason"]) == ("no_submission", "submission.csv is missing")
