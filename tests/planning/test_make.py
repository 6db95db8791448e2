"""From options to a plan: order, names that do not exist, what is missing, and runs that are
resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_mlab.core.plan import PlannedAgent
from pytest_mlab.core.trial import Outcome, TrialId, TrialResult
from pytest_mlab.errors import ConfigError, SuiteError
from pytest_mlab.planning.make import freeze, make_plan, narrow, order_trials, read_selection
from pytest_mlab.planning.options import NEWEST, MlabOptions
from pytest_mlab.store.rundir import RunDir
from tests.support.toy_suite import write_toy_suite, write_toy_task


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_toy_suite(tmp_path, tasks=("first", "second"))
    return tmp_path


@pytest.fixture
def options(tmp_path: Path) -> MlabOptions:
    return MlabOptions(
        agent=("baseline",), suite="toy", sandbox="local", repeats=2, cache_dir=tmp_path / "cache"
    )


def test_trials_go_repeat_by_repeat(project: Path, options: MlabOptions) -> None:
    plan = make_plan(replace(options, agent=("baseline", "reference")), project).plan
    assert [trial.name for trial in plan.trials] == [
        "first-baseline-1",
        "first-reference-1",
        "second-baseline-1",
        "second-reference-1",
        "first-baseline-2",
        "first-reference-2",
        "second-baseline-2",
        "second-reference-2",
    ]


def test_only_agents_that_need_a_model_are_crossed_with_the_models(
    project: Path, options: MlabOptions
) -> None:
    agents = (
        PlannedAgent("a", "a", "", needs_model=True),
        PlannedAgent("b", "b", "", needs_model=False),
    )
    tasks = make_plan(options, project).tasks.values()
    trials = order_trials(list(tasks)[:1], agents, ("m", "n"), 1)
    assert [(trial.agent, trial.model) for trial in trials] == [("a", "m"), ("a", "n"), ("b", "")]


def test_settings_hold_what_decides_a_trial(project: Path, options: MlabOptions) -> None:
    settings = make_plan(
        replace(options, max_steps=7, max_time=90.0, threshold=0.2), project
    ).plan.settings
    assert (settings.budget.max_steps, settings.budget.max_seconds, settings.threshold) == (
        7,
        90.0,
        0.2,
    )
    assert settings.sandbox == "local"
    assert settings.cache_dir == str(project / "cache")


def test_planning_writes_nothing(project: Path, options: MlabOptions) -> None:
    before = sorted(project.rglob("*"))
    make_plan(options, project)
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"suite": "toi"}, "unknown suite 'toi'.*did you mean 'toy'"),
        ({"agent": ("basline",)}, "unknown agent 'basline'.*did you mean 'baseline'"),
        ({"task": ("frist",)}, r"--mlab-task=frist: unknown task 'frist'; did you mean 'first'\?"),
        ({"sandbox": "bubblewrp"}, "'bubblewrp'; did you mean 'bubblewrap'"),
        ({"model": ("gpt-4-turbo",)}, "the agent baseline uses no model; leave --mlab-model out"),
        ({"agent": ()}, "the agent research needs a model; name one with --mlab-model"),
        (
            {"agent": (), "model": ("gpt-99-turbow",)},
            "no known provider serves a model named 'gpt-99-turbow'",
        ),
    ],
)
def test_names_that_do_not_exist(
    project: Path, options: MlabOptions, change: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_plan(replace(options, **change), project)  # type: ignore[arg-type]


def test_task_patterns_choose_and_leave_broken_tasks_unread(
    project: Path, options: MlabOptions
) -> None:
    (project / "task_suites" / "toy" / "second" / "task.toml").write_text("[task]\nname = 3\n")
    assert [
        task.name for task in make_plan(replace(options, task=("fir*",)), project).plan.tasks
    ] == ["first"]
    with pytest.raises(SuiteError, match=r"second/task\.toml"):
        make_plan(options, project)


def test_missing_package_blocks_its_task_only(project: Path, options: MlabOptions) -> None:
    write_toy_task(
        project / "task_suites" / "toy" / "third", requirements=("no-such-package>=2", "pytest>=8")
    )
    blocked = make_plan(options, project).blocked
    assert set(blocked) == {"third-baseline-1", "third-baseline-2"}
    assert blocked["third-baseline-1"].endswith(
        "to fix: python -m pip install 'no-such-package>=2'"
    )


def test_missing_data_variant_blocks(project: Path, options: MlabOptions) -> None:
    blocked = make_plan(replace(options, data="full"), project).blocked
    assert len(blocked) == 4
    assert (
        "no data variant full, only mini; to fix: --mlab-data=mini" in blocked["first-baseline-1"]
    )


def test_missing_key_blocks_agents_that_need_it(
    project: Path, options: MlabOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    both = ("baseline", "research")
    wanted = replace(
        options, agent=both, model=("gpt-4-turbo",), edit_model="gpt-4-turbo", repeats=1
    )
    assert make_plan(wanted, project).blocked == {
        f"{task}-research-gpt-4-turbo-1": (
            "the model gpt-4-turbo needs OPENAI_API_KEY; to fix: export OPENAI_API_KEY=<your key>"
        )
        for task in ("first", "second")
    }
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert not make_plan(wanted, project).blocked


def test_missing_gpu_blocks(
    project: Path, options: MlabOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = project / "task_suites" / "toy" / "first" / "task.toml"
    task.write_text(task.read_text().replace("[resources]\n", "[resources]\ngpus = 1\n"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert (
        "needs 1 GPU, and none is visible here; to fix: nvidia-smi"
        in make_plan(options, project).blocked["first-baseline-1"]
    )


def test_a_sandbox_that_does_not_work_blocks_everything(
    project: Path, options: MlabOptions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    planned = make_plan(replace(options, sandbox="bubblewrap"), project)
    assert planned.plan.settings.sandbox == "bubblewrap"
    assert len(planned.blocked) == 4
    assert "bubblewrap" in planned.blocked["first-baseline-1"]


def test_two_agents_of_one_name_are_refused(project: Path, options: MlabOptions) -> None:
    for folder in ("a", "b"):
        (project / folder).mkdir()
        (project / folder / "mine.py").write_text(
            "class Mine:\n    needs_model = False\n    def run(self, env):\n        pass\n"
        )
    with pytest.raises(ConfigError, match="two agents have the name 'mine'"):
        make_plan(replace(options, agent=("a/mine.py", "b/mine.py")), project)


def frozen(project: Path, options: MlabOptions) -> RunDir:
    planned = make_plan(options, project)
    return freeze(planned, options, project)


def test_freeze_writes_plan_and_identity(project: Path, options: MlabOptions) -> None:
    run = frozen(project, options)
    assert run.path == project / "reports" / run.plan.run_id
    assert RunDir.open(run.path).plan == run.plan
    assert run.identity["options"]["--mlab-agent"] == "baseline"
    assert run.identity["versions"]["python"]


def test_narrow_leaves_out_what_is_not_chosen(project: Path, options: MlabOptions) -> None:
    run = frozen(project, options)
    chosen = [trial for trial in run.plan.trials if trial.task == "second"]
    assert narrow(run, chosen).plan.trials == tuple(chosen)
    again = RunDir.open(run.path).plan
    assert again.trials == tuple(chosen)
    assert [task.name for task in again.tasks] == ["second"]


def test_selection_names_only_planned_trials(
    project: Path, options: MlabOptions, tmp_path: Path
) -> None:
    plan = make_plan(options, project).plan
    file = tmp_path / "selection.json"
    assert read_selection(file, plan) == {}
    file.write_text('{"t[first-baseline-1]": "first-baseline-1", "t[x]": "x"}')
    assert read_selection(file, plan) == {
        "t[first-baseline-1]": TrialId("first", "baseline", "", 1)
    }


def resumed(options: MlabOptions, name: str = NEWEST, **changes: object) -> MlabOptions:
    return replace(options, resume=name, **changes)  # type: ignore[arg-type]


def test_resume_finds_a_run_by_id_by_folder_and_the_newest(
    project: Path, options: MlabOptions
) -> None:
    run = frozen(project, options)
    for name in (run.plan.run_id, str(run.path), NEWEST):
        planned = make_plan(resumed(options, name), project)
        assert planned.resumed
        assert planned.plan == run.plan
        assert planned.path == run.path


def test_resume_needs_no_other_options(project: Path, options: MlabOptions) -> None:
    run = frozen(project, options)
    assert make_plan(MlabOptions(resume=run.plan.run_id), project).plan == run.plan


def test_newest_passes_over_runs_with_other_settings(project: Path, options: MlabOptions) -> None:
    wanted = frozen(project, replace(options, run_dir=project / "reports" / "2026-a"))
    frozen(project, replace(options, repeats=3, run_dir=project / "reports" / "2026-b"))
    assert make_plan(resumed(options), project).path == wanted.path


def test_resume_of_a_narrowed_run(project: Path, options: MlabOptions) -> None:
    run = frozen(project, options)
    run = narrow(run, run.plan.trials[:1])
    assert make_plan(resumed(options), project).plan.trials == run.plan.trials


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"repeats": 1}, "repeats was 2, is 1"),
        ({"agent": ("reference",)}, "it has the agent baseline"),
    ],
)
def test_resume_with_other_settings_is_refused(
    project: Path, options: MlabOptions, changes: dict[str, object], message: str
) -> None:
    run = frozen(project, options)
    with pytest.raises(ConfigError, match=f"other settings: {message}"):
        make_plan(resumed(options, run.plan.run_id, **changes), project)


def test_resume_of_nothing_says_what_there_is(project: Path, options: MlabOptions) -> None:
    with pytest.raises(ConfigError, match=r"no run to resume in .*reports; leave it out"):
        make_plan(resumed(options), project)
    run = frozen(project, options)
    with pytest.raises(
        ConfigError, match=f"--mlab-resume=tests: 'tests'.*{run.plan.run_id}.*equals sign"
    ):
        make_plan(resumed(options, "tests"), project)


def test_resume_refuses_a_task_that_has_changed(project: Path, options: MlabOptions) -> None:
    run = frozen(project, options)
    with (project / "task_suites" / "toy" / "first" / "evaluator.py").open("a") as file:
        file.write("# changed\n")
    with pytest.raises(ConfigError, match=r"the task first .* has changed since run"):
        make_plan(MlabOptions(resume=run.plan.run_id), project)


def test_resume_refuses_an_agent_that_has_changed(project: Path, options: MlabOptions) -> None:
    agent = project / "mine.py"
    agent.write_text(
        "class Mine:\n    needs_model = False\n    def run(self, env):\n        pass\n"
    )
    run = frozen(project, replace(options, agent=(str(agent),)))
    agent.write_text(
        "class Mine:\n    needs_model = False\n    def run(self, env):\n        return None\n"
    )
    with pytest.raises(ConfigError, match=r"the agent mine .* has changed since run"):
        make_plan(MlabOptions(resume=run.plan.run_id), project)


def test_finished_trials_need_nothing_any_more(project: Path, options: MlabOptions) -> None:
    write_toy_task(project / "task_suites" / "toy" / "third", requirements=("no-such-package",))
    run = frozen(project, options)
    done = TrialId("third", "baseline", "", 1)
    run.trial(done).write_result(TrialResult(done, Outcome.SUCCESS, "fine"))
    assert set(make_plan(MlabOptions(resume=run.plan.run_id), project).blocked) == {
        "third-baseline-2"
    }
