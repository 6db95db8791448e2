"""The hooks ``pytest_mlab_*``, implemented in a project's conftest.py."""

from __future__ import annotations

import json

import pytest

from tests.support.project import Project

# Each process notes its hook calls in a file of its own.
NOTING = """\
import json
import os


def note(**values):
    with open(f"calls-{os.getpid()}.jsonl", "a") as file:
        file.write(json.dumps(values) + "\\n")


def pytest_mlab_trial_started(item, trial_id, started):
    note(hook="started", item=item.name, trial=trial_id.name, steps=started.budget.max_steps)


def pytest_mlab_step_done(item, trial_id, step):
    note(hook="step", trial=trial_id.name, index=step.index, action=step.action, ok=step.ok)


def pytest_mlab_trial_finished(item, trial):
    note(hook="finished", trial=trial.id.name, outcome=trial.outcome.value, score=trial.score)


def pytest_mlab_run_summarised(config, summary, run_dir):
    written = json.loads((run_dir / "summary.json").read_text())
    note(hook="summarised", same=json.loads(json.dumps(summary)) == written)


def pytest_mlab_terminal_lines(summary):
    return [f"of {summary['planned']} trials", "\\x1b[2J is escaped"]
"""


def calls(project: Project) -> dict[str, list[dict[str, object]]]:
    """The noted calls by process."""
    return {
        file.name: [json.loads(line) for line in file.read_text().splitlines()]
        for file in project.path.glob("calls-*.jsonl")
    }


def conftest(project: Project, source: str) -> None:
    (project.path / "conftest.py").write_text(source, encoding="utf-8")


def of_trial(repeat: int) -> list[dict[str, object]]:
    """The calls for one trial of the reference solution, in their order."""
    name = f"guess-reference-{repeat}"
    steps = enumerate(("Write File", "Execute Script", "Final Answer"), 1)
    return [
        {"hook": "started", "item": f"test_beats_baseline[{name}]", "trial": name, "steps": 50},
        *(
            {"hook": "step", "trial": name, "index": index, "action": action, "ok": True}
            for index, action in steps
        ),
        {"hook": "finished", "trial": name, "outcome": "success", "score": 1.0},
    ]


def test_every_hook_is_called_once_and_in_order(project: Project) -> None:
    conftest(project, NOTING)
    result = project.run("--mlab-agent=reference")
    assert result.ret == 0
    ((own),) = calls(project).values()
    assert own == [*of_trial(1), {"hook": "summarised", "same": True}]
    result.stdout.fnmatch_lines(
        ["gate trial: passed", "of 1 trials", r"\x1b[[]2J is escaped", "wrote *"]
    )


def test_with_workers_trials_are_called_there_and_the_run_on_the_controller(
    project: Project,
) -> None:
    conftest(project, NOTING)
    assert project.run("--mlab-agent=reference", "--mlab-repeats=3", "-n", "2").ret == 0
    found = calls(project)
    assert len(found) == 3
    controllers = [own for own in found.values() if own[0]["hook"] == "summarised"]
    assert controllers == [[{"hook": "summarised", "same": True}]]
    in_workers = [call for own in found.values() if own not in controllers for call in own]
    for repeat in (1, 2, 3):
        name = f"guess-reference-{repeat}"
        assert [call for call in in_workers if call["trial"] == name] == of_trial(repeat)


def test_a_stored_result_is_not_announced_again(project: Project) -> None:
    conftest(project, NOTING)
    name = project.tests(
        "def test_one(mlab_trial):\n    pass\n\n\ndef test_two(mlab_trial):\n    pass\n"
    )
    assert project.run("--mlab-agent=reference", name).ret == 0
    (own,) = calls(project).values()
    assert [call["hook"] for call in own].count("finished") == 1


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_trial_hook_that_raises_is_an_error_that_names_its_plugin(
    project: Project, workers: str
) -> None:
    conftest(
        project,
        "def pytest_mlab_step_done(step):\n    raise KeyError('mine')\n\n\n"
        "def pytest_mlab_trial_finished(trial):\n    import pytest\n    pytest.fail('no')\n",
    )
    result = project.run("--mlab-agent=reference", "--mlab-gate=none", "-n", workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes()["errors"] == 1
    result.stdout.fnmatch_lines(
        [
            "*conftest.py: its hook pytest_mlab_step_done raised KeyError: 'mine'"
            " (*conftest.py:2) (3 times)",
            "*conftest.py: its hook pytest_mlab_trial_finished raised Failed: no (*conftest.py:7)",
        ]
    )
    assert project.result("guess/reference/1")["outcome"] == "success"
    assert project.summary()["missing"] == []


def test_a_plugin_without_a_name_is_named_by_its_class(project: Project) -> None:
    conftest(
        project,
        "class Broken:\n    def pytest_mlab_trial_started(self):\n        raise ValueError(1)\n\n\n"
        "def pytest_configure(config):\n    config.pluginmanager.register(Broken())\n",
    )
    result = project.run("--mlab-agent=reference")
    result.stdout.fnmatch_lines(
        ["the plugin Broken: its hook pytest_mlab_trial_started raised ValueError: 1 *"]
    )


@pytest.mark.parametrize("hook", ["run_summarised", "terminal_lines"])
def test_a_run_hook_that_raises_fails_the_session_and_loses_no_report(
    project: Project, hook: str
) -> None:
    conftest(project, f"def pytest_mlab_{hook}(summary):\n    raise ValueError('mine')\n")
    result = project.run("--mlab-agent=reference")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = " ".join(result.stdout.str().split())
    assert f"conftest.py: its hook pytest_mlab_{hook} raised ValueError: mine" in text
    assert project.summary()["gate"]["passed"]
    assert "gate trial: passed" in text


FIGURE = """\
from pytest_mlab.core.figure import Figure


def pytest_mlab_figures():
    return [Figure("longest", "longest trial", longest)]


def longest(results):
    return max(result.ledger.steps for result in results)
"""


def test_a_figure_of_ones_own_is_in_every_report(project: Project) -> None:
    conftest(project, FIGURE)
    result = project.run("--mlab-agent=reference")
    assert result.ret == 0, result.stdout.str()
    (subject,) = project.summary()["subjects"]
    assert subject["figures"] == subject["tasks"][0]["figures"] == {"longest": 3}
    assert project.junit()["mlab::guess-reference"].properties["mlab.longest"] == "3"
    assert project.junit_suite()["mlab.reference.longest"] == "3"
    assert "longest trial" in result.stdout.str()
    assert "longest trial" in (project.run_dir / "report.md").read_text(encoding="utf-8")


def test_a_figure_whose_name_is_taken_is_a_usage_error(project: Project) -> None:
    conftest(project, FIGURE.replace('"longest"', '"steps"'))
    result = project.run("--mlab-agent=reference")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "figure steps" in result.stderr.str()
    assert not project.run_dir.exists()


def test_a_figure_that_cannot_be_computed_fails_the_session_and_spares_the_others(
    project: Project,
) -> None:
    conftest(project, FIGURE.replace("max(", "1 / 0 + max("))
    result = project.run("--mlab-agent=reference")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "ZeroDivisionError" in " ".join(result.stdout.str().split())
    assert project.summary()["gate"]["passed"]


def test_a_hook_may_end_the_session(project: Project) -> None:
    conftest(
        project,
        "import pytest\n\n\ndef pytest_mlab_trial_finished(trial):\n    pytest.exit('enough', 7)\n",
    )
    result = project.run("--mlab-agent=reference", "--mlab-repeats=2")
    assert result.ret == 7
    assert project.result("guess/reference/1")["outcome"] == "success"
    assert len(project.summary()["missing"]) == 1


def test_an_unknown_hook_is_an_error_of_pytest(project: Project) -> None:
    conftest(project, "def pytest_mlab_step_done(stepp):\n    pass\n")
    assert project.run("--mlab-agent=reference").ret != 0
    assert not project.run_dir.exists()


def test_nothing_is_read_for_hooks_that_nobody_has(pytester: pytest.Pytester) -> None:
    from pytest_mlab.plugin.trial_hooks import TrialHooks

    config = pytester.parseconfig()
    assert not TrialHooks(config.hook).wants_events

    class Watching:
        def pytest_mlab_step_done(self) -> None:
            raise NotImplementedError

    config.pluginmanager.register(Watching())
    assert TrialHooks(config.hook).wants_events
