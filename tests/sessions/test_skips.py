"""What is missing is a skip with the command that mends it, an error where that is asked for, and
never a green CI."""

from __future__ import annotations

import pytest

from tests.support.project import Project
from tests.support.toy_suite import write_toy_task


def needs_package(project: Project, task: str = "guess") -> None:
    write_toy_task(
        project.path / "task_suites" / "toy" / task, requirements=("no-such-package>=2",)
    )


def test_a_missing_package_is_a_skip_with_the_command(project: Project) -> None:
    needs_package(project)
    result = project.run("--mlab-agent=reference", "-rs", "-v")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(
        [
            "mlab::guess-reference SKIPPED*",
            "mlab::suite-reference SKIPPED*",
            "mlab::nothing-ran FAILED*",
            "MISSING: 1 of 1 planned trial did not run",
            "gate trial: INCOMPLETE",
            "NOTHING RAN: none of 1 planned trial shows what its agent can do; 1 not_run: *",
            "SKIPPED *: the task guess needs no-such-package>=2; to fix: python -m pip install"
            " 'no-such-package>=2'",
        ]
    )
    assert project.junit()["mlab::guess-reference"].status == "skipped"
    assert project.junit()["mlab::nothing-ran"].status == "failure"


def test_nothing_that_ran_can_be_allowed_and_is_said_under_every_gate(project: Project) -> None:
    needs_package(project)
    result = project.run("--mlab-agent=reference", "--mlab-gate=aggregate", "--mlab-allow-nothing")
    assert result.ret == 0
    assert dict(result.parseoutcomes()) == {"skipped": 3}
    result.stdout.fnmatch_lines(["NOTHING RAN: *"])
    result = project.run("--mlab-resume=run", "--mlab-gate=none", run_dir=False)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def needy_agent(project: Project) -> None:
    source = (
        'class Needy:\n    needs_model = False\n    requirements = ("no-such-package>=2",'
        ' "pytest>=8")\n'
    )
    project.agent("needy", source + "\n    def run(self, env):\n        import no_such_package\n")


def test_a_package_that_an_agent_lacks_is_a_skip_of_its_trials_only(project: Project) -> None:
    needy_agent(project)
    result = project.run("--mlab-agent=needy", "--mlab-agent=reference", "-rs")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "SKIPPED *: the agent needy needs no-such-package>=2; to fix: python -m pip install"
            " 'no-such-package>=2'"
        ]
    )
    assert project.result("guess/reference/1")["outcome"] == "success"
    assert project.summary()["missing"][0]["trial"] == "guess-needy-1"


def test_strict_makes_an_agent_s_missing_package_an_error(project: Project) -> None:
    needy_agent(project)
    result = project.run("--mlab-agent=needy", "--mlab-strict")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*the agent needy needs no-such-package>=2; to fix: * (--mlab-strict)"]
    )


def test_the_other_tasks_run(project: Project) -> None:
    needs_package(project, "third")
    result = project.run("--mlab-agent=reference", "--mlab-gate=none")
    assert result.parseoutcomes()["skipped"] == 2  # the trial, and the verdict about it
    assert project.result("guess/reference/1")["outcome"] == "success"
    assert project.summary()["missing"][0]["trial"] == "third-reference-1"


def test_strict_makes_it_an_error(project: Project) -> None:
    needs_package(project)
    result = project.run("--mlab-agent=reference", "--mlab-strict")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes()["errors"] == 1
    result.stdout.fnmatch_lines(
        ["*to fix: python -m pip install 'no-such-package>=2' (--mlab-strict)"]
    )


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_ci_job_with_nothing_left_to_run_fails(
    project: Project, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    needs_package(project)
    monkeypatch.setenv("CI", "true")
    result = project.run("--mlab-agent=reference", *workers)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(
        ["FAILED mlab::nothing-ran - NOTHING RAN: none of 1 planned trial shows what *"]
    )


def test_a_ci_job_with_something_left_passes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_package(project, "third")
    monkeypatch.setenv("CI", "true")
    assert project.run("--mlab-agent=reference").ret == 0


def test_a_missing_key_is_a_skip(project: Project) -> None:
    result = project.spawn("--mlab-model=gpt-4-turbo", "-rs")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(
        ["*gpt-4-turbo needs OPENAI_API_KEY; to fix: export OPENAI_API_KEY=<your key>"]
    )


def test_data_that_cannot_be_prepared_is_a_skip(project: Project) -> None:
    # The cache itself can be written: one that cannot is a usage error, before any trial.
    (project.path / "occupied").mkdir()
    (project.path / "occupied" / "data").write_text("no folder")
    result = project.run("--mlab-agent=reference", "-rs", "--mlab-cache-dir=occupied")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED, result.stdout.str()
    result.stdout.fnmatch_lines(
        ["SKIPPED *data of guess (mini) cannot be *: mlab prepare guess --data mini --suite toy*"]
    )
    assert project.summary()["missing"][0]["trial"] == "guess-reference-1"


def test_rules_that_nobody_accepted_are_a_skip_before_anything_is_fetched(project: Project) -> None:
    toml = project.path / "task_suites" / "toy" / "guess" / "task.toml"
    source = (
        'kind = "http"\nref = "http://127.0.0.1:9/data.zip"\nconsent = "http://127.0.0.1:9/rules"\n'
    )
    source += 'sha256 = "' + "0" * 64 + '"\nsize_mb = 1\nlicence = "own"\n'
    toml.write_text(toml.read_text().replace('kind = "generator"\n', source))
    result = project.run("--mlab-agent=reference", "-rs")
    result.stdout.fnmatch_lines(
        [
            "*rules that you must accept*mlab prepare guess --data mini --suite toy --accept-rules"
            " guess"
        ]
    )


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_what_is_going_to_be_downloaded_is_said_first(
    project: Project, workers: tuple[str, ...]
) -> None:
    for task in ("guess", "third"):
        folder = project.path / "task_suites" / "toy" / task
        toml = write_toy_task(folder) / "task.toml"
        source = f'kind = "http"\nref = "http://127.0.0.1:9/{task}.zip"\nsha256 = "{"0" * 64}"\n'
        source += 'size_mb = 170.5\nlicence = "CC0"\n'
        toml.write_text(toml.read_text().replace('kind = "generator"\n', source))
    result = project.run("--mlab-agent=reference", "-rs", "-k", "guess", *workers)
    said = [
        "mlab: guess downloads, unless a cache has it: http://127.0.0.1:9/guess.zip",
        "  (170.5 MB, licence: CC0)",
        "SKIPPED*downloading http://127.0.0.1:9/guess.zip failed (ConnectError*",
    ]
    result.stdout.fnmatch_lines(said)
    assert "third.zip" not in result.stdout.str()
