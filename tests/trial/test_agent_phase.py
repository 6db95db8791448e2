"""The pieces that a trial is composed of, each alone."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_mlab.core.sandbox_api import Connection, Execution
from pytest_mlab.core.task import Task
from pytest_mlab.core.trial import EndedBy, Outcome
from pytest_mlab.errors import (
    AgentLoadError,
    AuthError,
    BadRequestError,
    BudgetExhausted,
    ConfigError,
    RequirementMissing,
    SandboxError,
    StoreError,
    TrialOver,
)
from pytest_mlab.sandboxes import make
from pytest_mlab.suites.loader import load_task
from pytest_mlab.trial.agent_phase import before_it_began, describe, part_of
from pytest_mlab.trial.outcome import AgentPart
from pytest_mlab.trial.packages import check_packages
from pytest_mlab.trial.runner import last_words, remove_workspace
from tests.support.toy_suite import write_toy_task

# --- how an agent's part ended ---


@pytest.mark.parametrize(
    ("error", "submitted", "exhausted", "part"),
    [
        (None, True, None, AgentPart(EndedBy.SUBMITTED)),
        (None, True, "steps", AgentPart(EndedBy.SUBMITTED)),
        (None, False, None, AgentPart(EndedBy.RETURNED)),
        (None, False, "seconds", AgentPart(EndedBy.SECONDS)),
        (TrialOver("over"), True, None, AgentPart(EndedBy.SUBMITTED)),
        (BudgetExhausted("over", limit="steps"), False, "steps", AgentPart(EndedBy.STEPS)),
        (BudgetExhausted("over", limit="tokens"), False, None, AgentPart(EndedBy.TOKENS)),
        (BudgetExhausted("over", limit="cost"), False, None, AgentPart(EndedBy.COST)),
        (
            AuthError("401"),
            False,
            None,
            AgentPart(EndedBy.ERROR, Outcome.PROVIDER_ERROR, "AuthError: 401"),
        ),
        (SandboxError("gone"), False, None, AgentPart(EndedBy.ERROR, Outcome.INFRA_ERROR, "gone")),
        (
            StoreError("disk full"),
            False,
            None,
            AgentPart(EndedBy.ERROR, Outcome.INFRA_ERROR, "disk full"),
        ),
        (
            BadRequestError("400"),
            False,
            None,
            AgentPart(EndedBy.ERROR, Outcome.AGENT_ERROR, "the agent raised BadRequestError: 400"),
        ),
        (
            KeyboardInterrupt(),
            False,
            None,
            AgentPart(EndedBy.ERROR, Outcome.AGENT_ERROR, "the agent raised KeyboardInterrupt"),
        ),
    ],
)
def test_part_of(
    error: BaseException | None, submitted: bool, exhausted: str | None, part: AgentPart
) -> None:
    assert part_of(error, submitted=submitted, exhausted=exhausted) == part


def test_before_it_began() -> None:
    assert before_it_began(AgentLoadError("x.py:3")).outcome is Outcome.AGENT_ERROR
    assert before_it_began(ConfigError("no sandbox")).outcome is Outcome.INFRA_ERROR


def test_long_messages_are_cut_and_put_on_one_line() -> None:
    assert describe(ValueError("a\n  b")) == "ValueError: a b"
    assert len(describe(ValueError("x" * 9999))) < 600


# --- packages in the sandbox's Python ---


@dataclass
class Inside:
    """A connection whose Python answers with ``output``."""

    output: bytes
    python: str = "/usr/bin/python3"
    asked: tuple[str, ...] = ()

    def execute(self, argv: list[str], **_: Any) -> Execution:
        self.asked = tuple(argv[4:])
        return Execution(0, self.output, len(self.output), 0.1)


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return load_task(write_toy_task(tmp_path_factory.mktemp("t") / "guess"), "toy")


def ask(task: Task, inside: Inside, *requirements: str) -> None:
    sandbox = make("local" if inside.python == sys.executable else "docker")
    check_packages(replace(task, requirements=requirements), sandbox, cast(Connection, inside))


def test_packages_that_are_there(task: Task) -> None:
    inside = Inside(json.dumps({"numpy": "2.0.1", "torch": "2.13.0+cpu"}).encode())
    ask(task, inside, "numpy>=1.26", "torch", "tomli; python_version < '3'")
    assert inside.asked == ("numpy", "torch")


def test_what_else_is_installed_is_found_too(task: Task) -> None:
    inside = Inside(json.dumps({"python": "3.12.1", "numpy": "2.0.1"}).encode())
    connection = cast(Connection, inside)
    found = check_packages(task, make("docker"), connection, also=["numpy", "torch"])
    assert found == {"python": "3.12.1", "numpy": "2.0.1"}
    own = check_packages(task, make("local"), connection, also=["pytest", "scikit-learn", "absent"])
    names = ("pytest", "scikit-learn")
    assert own == {"python": platform.python_version(), **{n: metadata.version(n) for n in names}}


def test_no_process_for_a_task_without_requirements(task: Task) -> None:
    inside = Inside(b"")
    ask(task, inside)
    assert inside.asked == ()


def test_no_process_where_the_python_is_the_harness_own(task: Task) -> None:
    inside = Inside(b"", python=sys.executable)
    ask(task, inside, "pytest>=8")
    assert inside.asked == ()
    with pytest.raises(
        RequirementMissing, match=r"pytest .*to fix: .* -m pip install 'pytest>=9999'"
    ):
        ask(task, inside, "pytest>=9999")


def test_a_package_from_outside_the_installation_is_not_seen_inside(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "elsewhere_pkg-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere-pkg\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert metadata.version("elsewhere-pkg") == "1.0"
    with pytest.raises(RequirementMissing, match="elsewhere-pkg is not installed"):
        ask(task, Inside(b"", python=sys.executable), "elsewhere-pkg")


@pytest.mark.parametrize(
    ("found", "said"), [({}, "numpy is not installed"), ({"numpy": "1.0"}, "numpy 1.0")]
)
def test_packages_that_are_missing(task: Task, found: dict[str, str], said: str) -> None:
    with pytest.raises(RequirementMissing, match=said) as error:
        ask(task, Inside(json.dumps(found).encode()), "numpy>=1.26")
    assert error.value.fix == "in the image: /usr/bin/python3 -m pip install 'numpy>=1.26'"


@pytest.mark.parametrize("output", [b"", b"Traceback: no", b"[1]", b'{"numpy": 3}'])
def test_answers_that_make_no_sense(task: Task, output: bytes) -> None:
    with pytest.raises(SandboxError, match="does not say which packages it has"):
        ask(task, Inside(output), "numpy")


# --- small things ---


def test_last_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_words(log) == ""
    log.write_text("first\n  last  \n\n")
    assert last_words(log) == "last"


def test_last_words_of_a_crash_are_its_place(tmp_path: Path) -> None:
    log = tmp_path / "log"
    dump = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call first):\n"
        '  File "/usr/lib/python3/ctypes/__init__.py", line 519 in string_at\n'
        '  File "/home/me/agents/mine.py", line 16 in run\n'
        '  File "/site-packages/pytest_mlab/trial/agent_phase.py", line 160 in run_agent\n'
        '  File "/usr/lib/python3/runpy.py", line 3 in <module>\n\n'
        "Extension modules: numpy.random, scipy.special (total: 2)\n"
    )
    log.write_text(f"it said this\n{dump}")
    assert last_words(log) == "mine.py:16 in run"
    log.write_text("Fatal Python error: none of ours\n")
    assert last_words(log) == "Fatal Python error: none of ours"


def test_workspace_with_locked_folders_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    (folder / "locked").mkdir(parents=True)
    (folder / "locked" / "file").touch()
    (folder / "link").symlink_to(tmp_path)
    (folder / "locked").chmod(0)
    folder.chmod(0)
    remove_workspace(folder)
    remove_workspace(folder)
    assert not folder.exists()
    assert tmp_path.is_dir()
