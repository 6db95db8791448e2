"""What a person reads when a trial fails."""

from __future__ import annotations

from tests.support.project import Project


def test_short_text_without_a_traceback(project: Project) -> None:
    result = project.run("--mlab-agent=baseline")
    text = result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "below_threshold: *",
            "  score 0.4, baseline 0.4, needed: better than 0.44",
            "  used * of 50 steps, *",
            "  trace run/trials/guess/baseline/1/trace.jsonl",
            "  see   mlab show run guess-baseline-1",
        ]
    )
    assert "def test_beats_baseline" not in text
    assert "Traceback" not in text
    assert "assert mlab_trial.beats_baseline" not in text


def test_invalid_submission_says_what_is_wrong_with_it(project: Project) -> None:
    train = project.path / "task_suites" / "toy" / "guess" / "env" / "train.py"
    train.write_text("open('submission.csv', 'w').write('id,wrong\\n')\n")
    project.run("--mlab-agent=baseline").stdout.fnmatch_lines(
        ["invalid_submission: *needs the columns id and label*"]
    )
    assert (
        "needs the columns id and label"
        in project.junit()["task_suites.test_toy::test_beats_baseline[guess-baseline-1]"].text
    )


def test_a_users_own_assertion_keeps_its_introspection_and_gets_the_facts(project: Project) -> None:
    name = project.tests("def test_fast(mlab_trial):\n    assert mlab_trial.steps < 1\n")
    project.run("--mlab-agent=baseline", name).stdout.fnmatch_lines(
        [
            ">*assert mlab_trial.steps < 1*",
            "E * where * = <trial guess-baseline-1: below_threshold>.steps",
            "*- mlab -*",
            "below_threshold: *",
        ]
    )


def test_a_mistake_in_a_test_keeps_its_traceback(project: Project) -> None:
    name = project.tests("def test_it(mlab_trial):\n    raise ValueError('mine')\n")
    project.run("--mlab-agent=baseline", name).stdout.fnmatch_lines(["E * ValueError: mine"])


def test_an_agent_that_raises_is_named(project: Project) -> None:
    project.agent(
        "clumsy",
        "class Clumsy:\n    needs_model = False\n    def run(self, env):\n        raise"
        " RuntimeError('oops')\n",
    )
    project.run("--mlab-agent=clumsy").stdout.fnmatch_lines(["agent_error: *oops*"])
