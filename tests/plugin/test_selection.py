"""Which trials are planned, collected and run."""

from __future__ import annotations

import pytest

from tests.support.project import Project
from tests.support.toy_suite import write_toy_suite

IDS = [
    "task_suites/test_toy.py::test_beats_baseline[guess-baseline-1]",
    "task_suites/test_toy.py::test_beats_baseline[other-baseline-1]",
    "task_suites/test_toy.py::test_beats_baseline[guess-baseline-2]",
    "task_suites/test_toy.py::test_beats_baseline[other-baseline-2]",
]


@pytest.fixture(autouse=True)
def _two_tasks(project: Project) -> None:
    write_toy_suite(project.path, tasks=("guess", "other"))


def collected(project: Project, *args: str) -> list[str]:
    result = project.run("--collect-only", "-q", "--mlab-agent=baseline", "--mlab-repeats=2", *args)
    return [line for line in result.outlines if "::" in line]


def test_a_suite_without_a_test_file_is_collected_under_a_stable_id(project: Project) -> None:
    assert collected(project) == IDS


def test_a_suites_own_test_file_is_collected(project: Project) -> None:
    file = project.path / "task_suites" / "test_toy.py"
    file.write_text("def test_mine(mlab_trial):\n    pass\n")
    assert collected(project) == [one.replace("test_beats_baseline", "test_mine") for one in IDS]


def test_collecting_writes_nothing(project: Project) -> None:
    before = sorted(project.path.rglob("*"))
    collected(project)
    assert sorted(project.path.rglob("*")) == before


def test_the_built_in_suite_has_ids_that_do_not_depend_on_where_it_is_installed(
    project: Project,
) -> None:
    found = collected(
        project, "--mlab-suite=mlagentbench", "--mlab-task=house-price", "--mlab-repeats=1"
    )
    assert found == [
        "task_suites/test_mlagentbench.py::test_beats_baseline[house-price-baseline-1]"
    ]


def test_ordinary_tests_are_left_out_unless_a_path_names_them(project: Project) -> None:
    name = project.tests("def test_plain():\n    pass\n\n\ndef test_trial(mlab_trial):\n    pass\n")
    (project.path / "pytest.ini").write_text(f"[pytest]\ntestpaths = {name}\n")
    assert collected(project) == IDS
    assert len(collected(project, name)) == 1 + 4


@pytest.mark.parametrize(
    ("args", "indices"),
    [
        (["-k", "guess"], [0, 2]),
        (["-m", "tabular"], [0, 1, 2, 3]),
        (["-m", "mlab(task='other')"], [1, 3]),
        (["-m", "mlab(repeat=2) and not mlab_gpu and not mlab_slow"], [2, 3]),
        (["--mlab-task=oth*"], [1, 3]),
    ],
)
def test_selections(project: Project, args: list[str], indices: list[int]) -> None:
    assert collected(project, *args) == [IDS[i] for i in indices]


def test_strict_markers_accept_ours(project: Project) -> None:
    toml = project.path / "task_suites" / "toy" / "guess" / "task.toml"
    toml.write_text(
        toml.read_text().replace('modality = "tabular"', 'modality = "smell"\nslow = true')
    )
    assert collected(project, "--strict-markers", "-m", "smell and mlab_slow") == [IDS[0], IDS[2]]


def test_the_plan_holds_only_what_is_selected(project: Project) -> None:
    result = project.run("--mlab-agent=reference", "--mlab-repeats=2", "-k", "other")
    assert result.ret == 0
    assert project.plan() == ["other-reference-1", "other-reference-2"]
    assert [row["task"] for row in project.summary()["subjects"][0]["tasks"]] == ["other"]


@pytest.mark.parametrize("args", [("-k", "gues_"), ("-m", "image"), ("-k", "gues_", "-n", "1")])
def test_nothing_selected_is_a_usage_error_and_leaves_no_run(
    project: Project, args: tuple[str, ...]
) -> None:
    result = project.run("--mlab-agent=baseline", *args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: no trial is selected by {args[0]} *: guess, other;*"])
    assert not project.run_dir.exists()


def test_a_path_without_trials_beside_a_run_is_only_that_path(project: Project) -> None:
    name = project.tests("def test_plain():\n    pass\n")
    result = project.run("--mlab-agent=baseline", name)
    result.assert_outcomes(passed=1)
    assert not project.run_dir.exists()


def test_a_broken_test_file_is_reported_as_such(project: Project) -> None:
    name = project.tests("import no_such_module\n")
    result = project.run("--mlab-agent=baseline", name)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*ModuleNotFoundError*"])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--mlab-agent=basline"], "*unknown agent 'basline'; did you mean 'baseline'?*"),
        (
            ["--mlab-agent=baseline", "--mlab-suite=toi"],
            "*unknown suite 'toi'; did you mean 'toy'?*",
        ),
        (
            ["--mlab-agent=baseline", "--mlab-task=gess"],
            "*unknown task 'gess'; did you mean 'guess'?*",
        ),
        (
            ["--mlab-agent=baseline", "--mlab-gate=agregate"],
            "*--mlab-gate=agregate: allowed: aggregate, *",
        ),
        (["--mlab-agent=baseline", "--mlab-sandbox=docer"], "*'docer'*docker*"),
        (
            ["--mlab-agent=research"],
            "*the agent research needs a model; name one with --mlab-model*",
        ),
    ],
)
def test_what_does_not_exist_is_a_usage_error(
    project: Project, args: list[str], message: str
) -> None:
    result = project.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
    assert not project.run_dir.exists()


def test_an_unknown_provider_is_a_usage_error(project: Project) -> None:
    result = project.spawn("--mlab-model=opnai/x")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unknown provider 'opnai'*openai/x*"])


def test_a_broken_task_names_file_and_key(project: Project) -> None:
    toml = project.path / "task_suites" / "toy" / "guess" / "task.toml"
    toml.write_text(toml.read_text().replace('direction = "maximize"', 'direction = "up"'))
    result = project.run("--mlab-agent=baseline")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*guess/task.toml*direction*"])


def test_ini_settings_count(project: Project) -> None:
    (project.path / "pytest.ini").write_text(
        "[pytest]\nmlab_agent = baseline reference\nmlab_task = other\n"
    )
    result = project.run("--collect-only", "-q")
    assert [line for line in result.outlines if "::" in line] == [
        "task_suites/test_toy.py::test_beats_baseline[other-baseline-1]",
        "task_suites/test_toy.py::test_beats_baseline[other-reference-1]",
    ]


def test_a_used_run_directory_is_refused(project: Project) -> None:
    project.run_dir.mkdir()
    (project.run_dir / "mine.txt").write_text("")
    result = project.run("--mlab-agent=baseline")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*is not empty*"])
    assert (project.run_dir / "mine.txt").exists()


def test_the_header_says_what_is_going_to_run(project: Project) -> None:
    result = project.run("--collect-only", "--mlab-agent=baseline", "--mlab-repeats=3")
    result.stdout.fnmatch_lines(
        ["mlab: baseline; 2 tasks x 3 repeats = 6 trials", "mlab: 50 steps, 1m a trial;*local*"]
    )


def test_collecting_only_does_not_import_litellm(project: Project) -> None:
    (project.path / "conftest.py").write_text(
        "import sys\n\ndef pytest_unconfigure():\n    print('litellm:', 'litellm' in sys.modules)\n"
    )
    result = project.spawn("--mlab-model=openai/any", "--collect-only", "-q")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*[[]guess-research-openai-any-1[]]", "litellm: False"])
