"""Settings of agents: what a class may declare, how texts become values, and what is said of
mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.agentfiles.args import parse_named
from pytest_mlab.agentfiles.loader import digest_now, load_agent, plan_agent, plan_agents
from pytest_mlab.agentfiles.settings import declared, make_agent
from pytest_mlab.core.plan import PlannedAgent
from pytest_mlab.errors import AgentLoadError, ConfigError

SOURCE = """\
from typing import Literal

from pydantic import BaseModel, Field, model_validator


class Settings(BaseModel, frozen=True, extra="forbid"):
    steps: int = Field(3, ge=1, description="how many")
    deep: bool = Field(False, description="whether to go deep")
    names: tuple[str, ...] = Field((), description="which ones")
    word: str = Field("a", description="what to say")
    limit: float | None = Field(None, description="how far")
    way: Literal["up", "down"] = Field("up", description="where to")
    first: int = 0
    last: int = 10

    @model_validator(mode="after")
    def in_order(self):
        if self.first > self.last:
            raise ValueError("first comes after last")
        return self


class Set:
    needs_model = False
    Settings = Settings

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()

    def run(self, env):
        pass
"""
PLAIN = "class Plain:\n    needs_model = False\n\n    def run(self, env):\n        pass\n"

Plan = Callable[..., PlannedAgent]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "set.py").write_text(SOURCE)
    (folder / "plain.py").write_text(PLAIN)
    return tmp_path


@pytest.mark.parametrize(
    ("arg", "value"),
    [
        ("steps=5", 5),
        ("deep=true", True),
        ("deep=yes", True),
        ("names=Read File,Write File", ["Read File", "Write File"]),
        ('names=["a, b"]', ["a, b"]),
        ("names=one", ["one"]),
        ("word=true", "true"),
        ("word=[1]", "[1]"),
        ("word=a=b", "a=b"),
        ("word=", ""),
        ("limit=2.5", 2.5),
        ("way=down", "down"),
    ],
)
def test_a_text_becomes_what_the_setting_takes(root: Path, arg: str, value: Any) -> None:
    [agent] = plan_agents(["set"], root, [arg])
    assert agent.settings == {arg.partition("=")[0]: value}


@pytest.mark.parametrize("arg", ["steps=3", "deep=off", "names=", "limit=null", "word=a"])
def test_what_equals_the_default_is_no_setting(root: Path, arg: str) -> None:
    assert plan_agents(["set"], root, [arg]) == (plan_agent("set", root),)


WRONG = [
    (
        "steps=many",
        (
            r"the agent set: steps=many: .*valid integer.*settings of set.*\n  steps = 3 \(int\):"
            r" how many\n"
        ),
    ),
    ("steps=0", r"steps=0: .*greater than or equal to 1"),
    ("way=left", r"way=left: .*'up' or 'down'"),
    ("stpes=4", r"the agent set: stpes=4: unknown setting 'stpes'; did you mean 'steps'\?"),
    ("first=11", r"the agent set: first=11: .*first comes after last"),
    ("other.steps=4", r"--mlab-agent-arg=other\.steps=4: unknown agent 'other'.*set"),
    ("=4", r"--mlab-agent-arg==4: write key=value"),
]


@pytest.mark.parametrize(("arg", "message"), WRONG, ids=[w[0] for w in WRONG])
def test_a_wrong_setting_names_agent_key_value_and_all_settings(
    root: Path, arg: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        plan_agents(["set"], root, [arg])


def test_settings_that_fit_only_together_are_judged_together(root: Path) -> None:
    [agent] = plan_agents(["set"], root, ["first=20", "last=30"])
    assert agent.settings == {"first": 20, "last": 30}


def test_an_agent_without_settings_says_so(root: Path) -> None:
    with pytest.raises(ConfigError, match=r"--mlab-agent-arg=x=1: .*plain"):
        plan_agents(["plain"], root, ["x=1"])
    with pytest.raises(
        ConfigError, match="the agent plain has no settings, found x=1; leave it out"
    ):
        plan_agents(["plain", "set"], root, ["plain.x=1"])


def test_which_agents_a_setting_reaches(root: Path) -> None:
    (root / "agents" / "second.py").write_text(SOURCE)
    agents = plan_agents(
        ["set", "second", "plain"], root, ["steps=5", "second.steps=6", "second.word=x"]
    )
    assert [dict(agent.settings) for agent in agents] == [
        {"steps": 5},
        {"steps": 6, "word": "x"},
        {},
    ]


def test_a_setting_given_twice(root: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"--mlab-agent-arg=steps=5 and --mlab-agent-arg=steps=6: give it once"
    ):
        plan_agents(["set"], root, ["steps=5", "steps=6"])


class TestVariants:
    def test_have_names_and_digests_of_their_own(self, root: Path) -> None:
        plain, deep = plan_agents(["set", "set[deep=true,names=a,b]"], root, ["steps=7"])
        assert (plain.name, plain.settings) == ("set", {"steps": 7})
        assert (deep.name, deep.settings) == (
            "set[deep=true,names=a,b]",
            {"steps": 7, "deep": True, "names": ["a", "b"]},
        )
        assert plain.ref == deep.ref
        assert plain.digest != deep.digest
        assert deep.said == 'steps=7, deep=true, names=["a", "b"]'

    def test_what_stands_in_brackets_wins(self, root: Path) -> None:
        [agent] = plan_agents(["set[steps=9]"], root, ["steps=7", "set.steps=8"])
        assert agent.settings == {"steps": 9}

    @pytest.mark.parametrize(
        "ref", ["set[deep]", "set[]", "set[deep=true,deep=false]", "set[other.deep=true]"]
    )
    def test_wrong_brackets_are_refused(self, root: Path, ref: str) -> None:
        with pytest.raises(ConfigError, match=r"--mlab-agent=set\["):
            plan_agents([ref], root)

    def test_a_command_line_may_hold_brackets(self) -> None:
        [arg] = parse_named("command:./run [a=1]").own
        assert (arg.key, arg.value) == ("command", "./run [a=1]")


class TestPlanned:
    def test_settings_are_part_of_the_digest(self, root: Path) -> None:
        plain, one, two = (
            plan_agents(["set"], root, args)[0] for args in ([], ["steps=5"], ["steps=6"])
        )
        assert len({plain.digest, one.digest, two.digest}) == 3
        assert [digest_now(agent, root) for agent in (plain, one, two)] == [
            plain.digest,
            one.digest,
            two.digest,
        ]
        (root / "agents" / "set.py").write_text(SOURCE + "# more\n")
        assert digest_now(one, root) != one.digest

    def test_the_agent_is_made_with_them(self, root: Path) -> None:
        [planned] = plan_agents(["set"], root, ["names=a,b", "limit=2"])
        made: Any = make_agent(load_agent(planned.ref, root), planned.settings)
        assert (made.settings.names, made.settings.limit, made.settings.steps) == (
            ("a", "b"),
            2.0,
            3,
        )

    def test_an_agent_without_settings_is_made_without(self, root: Path) -> None:
        assert type(make_agent(load_agent("plain", root), {})).__name__ == "Plain"


def test_what_is_declared(root: Path) -> None:
    shown = {s.name: (s.kind, s.default, s.description) for s in declared(load_agent("set", root))}
    assert shown["steps"] == ("int", "3", "how many")
    assert shown["names"] == ("tuple[str, ...]", "[]", "which ones")
    assert shown["limit"] == ("float | None", "null", "how far")
    assert declared(load_agent("plain", root)) == []


FAULTS = [
    (
        "no model",
        "    Settings = dict\n",
        r"Settings is <class 'dict'>; it has to be a class derived from pydantic",
    ),
    ("required", "    class Settings(BaseModel):\n        x: int\n", "no default for x"),
    (
        "constructor",
        "    class Settings(BaseModel):\n        x: int = 1\n",
        "constructor does not take them",
    ),
]


@pytest.mark.parametrize(("body", "message"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_faults_of_a_declaration_are_told_by_file_and_line(
    root: Path, body: str, message: str
) -> None:
    head = "from pydantic import BaseModel\n\nclass Bad:\n    needs_model = False\n"
    (root / "agents" / "bad.py").write_text(f"{head}{body}    def run(self, env): pass\n")
    with pytest.raises(AgentLoadError, match=rf"bad\.py:3: class Bad: .*{message}"):
        plan_agent("bad", root)
