"""The commands of README and docs/ do what they say, in a project that has what they name: `mlab`
lines are run, `pytest` lines are parsed by pytest itself and planned."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.errors import MlabError
from pytest_mlab.planning.make import freeze, make_plan
from pytest_mlab.planning.options import MlabOptions, resolve
from pytest_mlab.trial.runner import TrialRunner
from tests.support.foreign_suite import foreign_task
from tests.support.toy_suite import write_toy_suite
from tests.test_readme import PAGES, block, commands

AGENT = """\
from pytest_mlab import Agent


class {name}(Agent):
    needs_model = True

    def run(self, env):
        print("working")
"""
MODELS = """\
[models.local]
model = "openai/local"

[models.gpt-4-turbo]
model = "openai/gpt-4-turbo"

[models.gpt-4o]
model = "openai/gpt-4o"
"""
RUN = "20261130-233523-4fdb"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that the pages name: suites, agents, models, and the run ``RUN`` of `greedy` and
    `reference`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MLAB_CACHE_DIR", str(tmp_path / "cache"))
    builtin = ("house-price", "imdb", "spaceship-titanic")
    for suite, tasks in (
        ("mlagentbench", builtin),
        ("mine", ("spam",)),
        ("my-suite", ("my-task",)),
        ("toy", ("house-price",)),
    ):
        write_toy_suite(tmp_path, suite=suite, tasks=tasks)
    for toml in (tmp_path / "task_suites").rglob("task.toml"):
        text = toml.read_text(encoding="utf-8")
        data = text[text.index("[[data.mini.source]]") :]
        toml.write_text(f"{text}\n{data.replace('data.mini', 'data.full')}", encoding="utf-8")
    foreign_task(tmp_path / "path" / "to" / "benchmarks" / "house-price")
    for agent, name in {
        "agents/greedy.py": "Greedy",
        "my/agent.py": "Careful",
        "my_package/agents.py": "Careful",
    }.items():
        (tmp_path / agent).parent.mkdir(exist_ok=True)
        (tmp_path / agent).write_text(AGENT.format(name=name), encoding="utf-8")
    (tmp_path / "my_package" / "__init__.py").touch()
    (tmp_path / "careful.py").write_text(block("your-agent.md", "class Careful"), encoding="utf-8")
    for program in ("main.py", "my_agent.sh"):
        (tmp_path / program).touch(mode=0o755)
    (tmp_path / "lib").mkdir()
    (tmp_path / "mlab-models.toml").write_text(MODELS, encoding="utf-8")
    return tmp_path


def unique(program: str) -> list[list[str]]:
    """The command lines of all pages, each once, without lines of prose and of diagrams."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for line, words in commands(page):
            if words[0] == program and not re.search(r"^pytest (is|worker) |COMMAND", line):
                found.setdefault(" ".join(words), words[1:])
    return list(found.values())


def test_every_pytest_line_is_parsed_and_planned(
    project: Path, request: pytest.FixtureRequest
) -> None:
    lines = unique("pytest")
    errors = [(words, refusal(words, request.config, project)) for words in lines]
    wrong = [(words, error) for words, error in errors if error]
    assert not wrong, "\n".join(map(str, wrong))
    assert len(lines) > 20


def refusal(words: list[str], config: pytest.Config, project: Path) -> str:
    """Why pytest does not take the line, or no plan can be made of it; '' when all is well."""
    try:
        options = parsed(words, config)
        if not (options.resume or options.replay):
            make_plan(options, project, probe=False)
    except (MlabError, pytest.UsageError) as error:
        return str(error)
    return ""


def parsed(words: list[str], config: pytest.Config) -> MlabOptions:
    """Parsed with the options of the plugins that the running pytest has."""
    known, others = config._parser.parse_known_and_unknown_args(words, argparse.Namespace())
    if others:
        raise pytest.UsageError(f"unknown: {others}")
    return resolve(lambda dest: getattr(known, dest, None))


def test_every_mlab_line_runs(project: Path, request: pytest.FixtureRequest) -> None:
    wrong = []
    ran = 0
    finished_run(project, request.config)
    for words in unique("mlab"):
        words = [word.replace("<run-id>", RUN).replace("TASK", "house-price") for word in words]
        if words[0] == "plan":
            continue
        if words[0] == "validate" and "--only" not in words:
            words += ["--only", "schema"]  # the other checks take a minute for each task
        if words[0] == "measure":
            words += ["--runs", "1"]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main(words)
        ran += 1
        if status not in ((0, 1) if words[0] == "report" else (0,)):  # 1: the gate is not passed
            wrong.append((words, status, out.getvalue()[-300:], err.getvalue()[-300:]))
    assert not wrong, "\n".join(map(str, wrong))
    assert ran > 20


def finished_run(project: Path, config: pytest.Config) -> None:
    """The run ``RUN``, of an agent that prints and of the reference solution."""
    words = [
        "--mlab-task=house-price",
        "--mlab-agent=greedy",
        "--mlab-agent=reference",
        "--mlab-model=openai/gpt-4o-mini",
        "--mlab-repeats=3",
        "--mlab-sandbox=local",
        f"--mlab-run-dir=reports/{RUN}",
    ]
    options = parsed(words, config)
    run = freeze(make_plan(options, project, probe=False), options, project)
    with TrialRunner(run.path) as trials:
        for trial in run.plan.trials:
            if trial.name in ("house-price-greedy-openai-gpt-4o-mini-1", "house-price-reference-3"):
                trials.run(trial)
