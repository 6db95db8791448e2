"""How agents are found, named, loaded and refused."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_mlab.agentfiles.loader import known_agents, load_agent, plan_agent
from pytest_mlab.errors import AgentLoadError, ConfigError

GOOD = """\
class Good:
    needs_model = False

    def run(self, env):
        pass
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file below the rootdir and returns its path."""

    def write_file(name: str, text: str = GOOD) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


@pytest.fixture
def builtins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the folder of built-in agents."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    monkeypatch.setattr("pytest_mlab.agentfiles.loader.builtin", lambda kind: folder)
    monkeypatch.setattr("pytest_mlab.lib.locate.builtin", lambda kind: folder)
    return folder


class TestFound:
    def test_by_name_in_the_user_s_project_first(
        self, write: Write, builtins: Path, tmp_path: Path
    ) -> None:
        (builtins / "mine.py").write_text(GOOD.replace("Good", "Shipped"))
        (builtins / "other.py").write_text(GOOD.replace("Good", "Other"))
        write("agents/mine.py")
        assert load_agent("mine", tmp_path).__name__ == "Good"
        assert load_agent("other", tmp_path).__name__ == "Other"
        assert known_agents(tmp_path) == ("mine", "other")

    @pytest.mark.parametrize("ref", ["two-words", "two_words"])
    def test_by_name_with_dashes(self, write: Write, tmp_path: Path, ref: str) -> None:
        write("agents/two_words.py")
        assert plan_agent(ref, tmp_path).name == "two-words"

    @pytest.mark.parametrize("ref", ["sub/x.py", "sub/x.py:Good", "./sub/x.py"])
    def test_by_file(
        self, write: Write, tmp_path: Path, ref: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write("sub/x.py")
        assert load_agent(ref, tmp_path).__name__ == "Good"
        monkeypatch.chdir(tmp_path / "sub")
        assert load_agent("x.py", Path("/nowhere")).__name__ == "Good"

    def test_by_module(self, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "path", list(sys.path))
        write("own_package_x/__init__.py", "")
        write("own_package_x/mod.py")
        assert load_agent("own_package_x.mod:Good", tmp_path).__name__ == "Good"
        planned = plan_agent("own_package_x.mod:Good", tmp_path)
        assert (planned.name, planned.ref) == ("good", "own_package_x.mod:Good")
        assert len(planned.digest) == 64

    def test_by_entry_point(
        self, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "path", list(sys.path))
        write("offered_y.py")
        point = importlib.metadata.EntryPoint("offered", "offered_y:Good", "pytest_mlab.agents")
        monkeypatch.setattr("pytest_mlab.agentfiles.loader.entry_points", lambda group: [point])
        assert load_agent("offered", tmp_path).__name__ == "Good"
        assert "offered" in known_agents(tmp_path)

    def test_a_plan_s_reference_leads_there_from_anywhere(
        self, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = write("agents/mine.py")
        planned = plan_agent("mine", tmp_path)
        assert (planned.name, planned.ref, planned.needs_model) == ("mine", f"{file}:Good", False)
        monkeypatch.chdir("/")
        assert load_agent(planned.ref, Path("/")) is load_agent("mine", tmp_path)

    def test_two_classes_of_a_file_have_two_names(self, write: Write, tmp_path: Path) -> None:
        write("x.py", GOOD + GOOD.replace("Good", "Better"))
        assert plan_agent(f"{tmp_path}/x.py:Better", tmp_path).name == "x-better"
        assert plan_agent(f"{tmp_path}/x.py:Good", tmp_path).name == "x-good"


class TestFilesBeside:
    def test_are_imported_relatively(self, write: Write, tmp_path: Path) -> None:
        write("agents/mine.py", "from .mine_parts import WORD\n" + GOOD)
        write("agents/mine_parts.py", "WORD = 'one'\n")
        module = sys.modules[load_agent("mine", tmp_path).__module__]
        assert module.WORD == "one"
        assert "mine-parts" not in known_agents(tmp_path)

    def test_equal_names_in_two_folders_do_not_meet(self, write: Write, tmp_path: Path) -> None:
        for folder in ("a", "b"):
            write(f"{folder}/agent.py", "from .parts import WORD\n" + GOOD)
            write(f"{folder}/parts.py", f"WORD = {folder!r}\n")
        words = [
            sys.modules[load_agent(f"{tmp_path}/{f}/agent.py", tmp_path).__module__].WORD
            for f in ("a", "b")
        ]
        assert words == ["a", "b"]

    def test_a_built_in_agent_may_be_derived_from(
        self, write: Write, builtins: Path, tmp_path: Path
    ) -> None:
        (builtins / "basis.py").write_text(GOOD)
        write("agents/mine.py", "from .basis import Good\n\n\nclass Mine(Good):\n    pass\n")
        assert load_agent("mine", tmp_path).__mro__[1].__name__ == "Good"
        assert known_agents(tmp_path) == ("basis", "mine")

    def test_an_absolute_import_of_one_gets_a_hint(self, write: Write, tmp_path: Path) -> None:
        write("agents/mine.py", "import my_parts_z\n" + GOOD)
        write("agents/my_parts_z.py", "")
        with pytest.raises(AgentLoadError, match=r"mine\.py:1: .*from \.my_parts_z import"):
            load_agent("mine", tmp_path)


class TestDigest:
    @pytest.mark.parametrize(
        "changed", ["mine.py", "mine_prompt.md", "parts.py", "parts_words.txt"]
    )
    def test_changes_with_every_file_of_the_agent(
        self, write: Write, tmp_path: Path, changed: str
    ) -> None:
        write("agents/mine.py", "from . import parts\n" + GOOD)
        for name in (
            "mine_prompt.md",
            "parts.py",
            "parts_words.txt",
            "other.py",
            "other_prompt.md",
        ):
            write(f"agents/{name}", "# one\n")
        before = plan_agent("mine", tmp_path).digest
        write("agents/other.py", "# two\n")
        write("agents/other_prompt.md", "# two\n")
        assert plan_agent("mine", tmp_path).digest == before
        path = tmp_path / "agents" / changed
        path.write_text(path.read_text() + "# more\n")
        assert plan_agent("mine", tmp_path).digest != before

    def test_does_not_depend_on_where_the_file_is(self, write: Write, tmp_path: Path) -> None:
        write("a/x.py")
        write("b/x.py")
        one, two = (plan_agent(f"{tmp_path}/{folder}/x.py", tmp_path) for folder in ("a", "b"))
        assert one.digest == two.digest


def body(text: str) -> str:
    return "class Bad:\n" + text


REFUSED = [
    ("syntax", "class Bad\n", r"bad\.py:1: syntax error"),
    (
        "import",
        "import json\nimport no_such_module_q\n",
        r"bad\.py:2: .*ModuleNotFoundError.*no_such_module_q",
    ),
    (
        "raises",
        "x = 1\n\n\ndef f():\n    raise ValueError('boom')\n\n\nf()\n",
        r"bad\.py:5: .*ValueError: boom",
    ),
    ("exits", "import sys\nsys.exit(3)\n", r"bad\.py:2: .*SystemExit: 3"),
    ("nothing", "x = 1\n", r"bad\.py: no class with a method run"),
    (
        "two",
        GOOD + GOOD.replace("Good", "Alike"),
        r"more than one agent: Alike, Good; .*AGENT = Alike",
    ),
    ("no class", "AGENT = 3\n", r"AGENT is int 3, not a class"),
    (
        "no run",
        body("    needs_model = True\n\n\nAGENT = Bad\n"),
        r"bad\.py:1: class Bad has no method run",
    ),
    (
        "run",
        body("    needs_model = True\n    def run(self):\n        pass\n"),
        r"bad\.py:1: .*run\(self, env\)",
    ),
    ("run is no method", body("    run = 3\n"), r"bad\.py:1: .*has int 3 in place of run"),
    (
        "generator",
        body("    needs_model = True\n    def run(self, env):\n        yield\n"),
        r"bad\.py:3: run of Bad has a yield",
    ),
    (
        "async generator",
        body("    needs_model = True\n\n    async def run(self, env):\n        yield\n"),
        r"bad\.py:4: run of Bad has a yield",
    ),
    (
        "model",
        "\n\n" + body("    def run(self, env):\n        pass\n"),
        r"bad\.py:3: .*\n    needs_model = True",
    ),
    (
        "model type",
        body("    needs_model = 1\n    def run(self, env): pass\n"),
        r"needs_model = True",
    ),
    (
        "constructor",
        body(
            "    needs_model = True\n    def __init__(self, x): pass\n    def run(self, env):"
            " pass\n"
        ),
        r"bad\.py:1: .*constructor must work without arguments.*'x'",
    ),
    (
        "requirements",
        GOOD + "    requirements = 'x>=1'\n",
        r"bad\.py:1: .*requirements are 'x>=1'; write a tuple",
    ),
    ("requirement", GOOD + "    requirements = ('x>>1',)\n", r"bad\.py:1: .*hold 'x>>1'"),
    ("interactive", GOOD + "    interactive = 'yes'\n", r"bad\.py:1: .*interactive is 'yes'"),
]


@pytest.mark.parametrize(("text", "message"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_is_wrong_is_named_with_file_and_line(
    write: Write, tmp_path: Path, text: str, message: str
) -> None:
    write("bad.py", text)
    with pytest.raises(AgentLoadError, match=message):
        load_agent(f"{tmp_path}/bad.py", tmp_path)


def test_what_an_agent_needs_is_in_the_plan(write: Write, tmp_path: Path) -> None:
    write(
        "agents/mine.py",
        GOOD + "    requirements = ('no-such-package>=2',)\n    interactive = True\n",
    )
    planned = plan_agent("mine", tmp_path)
    assert (planned.requirements, planned.interactive) == (("no-such-package>=2",), True)
    write("agents/other.py")
    planned = plan_agent("other", tmp_path)
    assert (planned.requirements, planned.interactive) == ((), False)


def test_a_class_that_is_not_there(write: Write, tmp_path: Path) -> None:
    write("x.py")
    with pytest.raises(AgentLoadError, match=r"x\.py: no class 'Godo' there; .*: Good"):
        load_agent(f"{tmp_path}/x.py:Godo", tmp_path)


def test_agent_names_the_class_among_many(write: Write, tmp_path: Path) -> None:
    write("agents/x.py", GOOD + GOOD.replace("Good", "Other") + "AGENT = Other\n")
    assert load_agent("x", tmp_path).__name__ == "Other"


def test_an_unknown_name_gets_the_nearest_and_all(
    write: Write, builtins: Path, tmp_path: Path
) -> None:
    write("agents/research.py")
    write("agents/react.py")
    with pytest.raises(ConfigError, match=r"'reserach'; did you mean 'research'\?.*react"):
        load_agent("reserach", tmp_path)


def test_an_unknown_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'no/such\.py' does not exist; looked for .* and "):
        load_agent("no/such.py", tmp_path)


def test_a_broken_file_is_still_listed(write: Write, tmp_path: Path) -> None:
    write("agents/broken.py", "class\n")
    assert "broken" in known_agents(tmp_path)
    with pytest.raises(AgentLoadError, match=r"broken\.py:1: syntax error"):
        load_agent("broken", tmp_path)
