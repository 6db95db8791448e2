"""The dialogue of the human agent, with a person whose entries are scripted; the terminal itself is
in another test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.human import SHORT, WIDTH, HumanAgent, HumanSettings
from pytest_mlab.core.actions import Action, Observation
from pytest_mlab.core.budget import Budget
from pytest_mlab.errors import BudgetExhausted, ConfigError
from pytest_mlab.trial.actions import definitions
from tests.support.fake_environment import FakeEnvironment, FakeModel

EOF_, CTRL_C = EOFError(), KeyboardInterrupt()


@dataclass
class ScriptedPerson:
    """Enters lines (or raises what stands in their place) and remembers what they were shown."""

    entries: list[Any]
    editor: Callable[[str], str] | None = None
    shown: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    interrupts: bool = False

    def tell(self, text: str) -> None:
        self.shown.append(text)

    def ask(self, prompt: str) -> str:
        self.prompts.append(prompt)
        entry = self.entries.pop(0)
        if isinstance(entry, BaseException):
            raise entry
        return str(entry)

    def held(self) -> Any:
        return nullcontext()

    @contextmanager
    def interrupting(self, stop: Callable[[], None]) -> Iterator[None]:
        if self.interrupts:
            stop()
        yield

    @property
    def has_editor(self) -> bool:
        return self.editor is not None

    def edit(self, text: str, name: str) -> str:
        assert self.editor is not None
        return self.editor(text)

    @property
    def said(self) -> str:
        """All that they were shown."""
        return "\n".join(self.shown)


class World(FakeEnvironment):
    """With the real actions' specs."""

    @property
    def actions(self) -> Any:
        return {name: definition.spec for name, definition in definitions().items()}

    def _observe(self, action: Action) -> Observation:
        if action.name == "Final Answer":
            return Observation("submitted", done=True)
        answer = self.react(action)
        return Observation(answer) if isinstance(answer, str) else answer


def played(
    *entries: Any, react: Any = lambda action: f"did {action.name}", steps: int = 9, **person: Any
) -> World:
    found = World(FakeModel(), react, budget=Budget(max_steps=steps))
    found.somebody = ScriptedPerson([*entries], **person)
    HumanAgent(HumanSettings(shown_lines=6)).run(found)
    return found


def person(env: FakeEnvironment) -> ScriptedPerson:
    assert isinstance(env.somebody, ScriptedPerson)
    return env.somebody


def did(env: FakeEnvironment) -> list[tuple[str, dict[str, Any]]]:
    return [(action.name, dict(action.args)) for action in env.executed]


RUN = ("Execute Script", {"script_name": "train.py"})
END = ("Final Answer", {"final_answer": "done"})


@pytest.mark.parametrize(
    "entered",
    [
        "r train.py",
        "7 train.py",
        "Execute Script train.py",
        "execute script  train.py",
        'r "train.py"',
    ],
)
def test_an_action_by_short_form_number_or_name(entered: str) -> None:
    assert did(played(entered, "submit done")) == [RUN, END]


@pytest.mark.parametrize(
    ("entered", "name", "arguments"),
    [
        ("ls", "List Files", {"dir_path": "."}),
        ("ls data", "List Files", {"dir_path": "data"}),
        ("cp a.py b.py", "Copy File", {"source": "a.py", "destination": "b.py"}),
        ("cp 'a b.py' b.py", "Copy File", {"source": "a b.py", "destination": "b.py"}),
        ("lines t.py 1 20", "Inspect Script Lines",
         {"script_name": "t.py", "start_line_number": "1", "end_line_number": "20"}),
        ("r t.py --epochs 3", "Execute Script",
         {"script_name": "t.py", "arguments": "--epochs 3"}),
        ("py print(1 + 1)", "Python REPL", {"command": "print(1 + 1)"}),
        (
            "w a.txt one line 'of text'",
            "Write File",
            {"file_name": "a.txt", "content": "one line 'of text'"},
        ),
        ("Request Help what now?", "Request Help", {"request": "what now?"}),
    ],
)  # fmt: skip
def test_arguments_in_the_line(entered: str, name: str, arguments: dict[str, str]) -> None:
    assert did(played(entered, "submit done"))[0] == (name, arguments)


def test_what_is_missing_is_asked_for() -> None:
    env = played("cp", "a.py", "b.py", "submit", "good work")
    assert did(env) == [
        ("Copy File", {"source": "a.py", "destination": "b.py"}),
        ("Final Answer", {"final_answer": "good work"}),
    ]
    assert person(env).prompts[1] == "source (the file to copy): "


@pytest.mark.parametrize("end", [".", EOF_], ids=["dot", "ctrl-D"])
def test_content_comes_line_by_line(end: Any) -> None:
    env = played("w train.py", "import os", "", "print(1)", end, "submit done")
    assert did(env)[0] == (
        "Write File",
        {"file_name": "train.py", "content": "import os\n\nprint(1)\n"},
    )


def test_content_from_the_editor() -> None:
    env = played("w train.py", "e", "submit done", editor=lambda text: text + "print(2)\n")
    assert did(env)[0][1]["content"] == "print(2)\n"


def test_a_file_is_changed_in_the_editor() -> None:
    env = played(
        "e train.py",
        "submit done",
        react=lambda action: "old\n",
        editor=lambda text: text + "new\n",
    )
    assert did(env)[:2] == [
        ("Read File", {"file_name": "train.py"}),
        ("Write File", {"file_name": "train.py", "content": "old\nnew\n"}),
    ]


def test_a_file_that_the_editor_left_alone_is_not_written() -> None:
    env = played("e train.py", "submit done", editor=lambda text: text)
    assert [name for name, _ in did(env)] == ["Read File", "Final Answer"]


@pytest.mark.parametrize(
    "seen", [Observation("Read File: a.py is a binary file", ok=False), Observation("caf\ufffd")]
)
def test_what_an_editor_would_damage_is_not_opened(seen: Observation) -> None:
    env = played("e a.py", "submit done", react=lambda _: seen, editor=lambda text: text + "x")
    assert [name for name, _ in did(env)] == ["Read File", "Final Answer"]


def test_without_an_editor_it_says_so() -> None:
    env = played("e train.py", "submit done")
    assert "EDITOR" in person(env).said
    assert did(env) == [END]


def test_an_editor_that_fails_ends_nothing() -> None:
    def fails(text: str) -> str:
        raise ConfigError("the editor 'vi' failed")

    env = played("e train.py", "submit done", editor=fails)
    assert "(the editor 'vi' failed)" in person(env).said
    assert did(env)[-1] == END


@pytest.mark.parametrize("given_up", [EOF_, CTRL_C], ids=["ctrl-D", "ctrl-C"])
def test_an_action_can_be_dropped_before_it_is_done(given_up: BaseException) -> None:
    env = played("cp", given_up, "submit done")
    assert did(env) == [END]
    assert "(dropped: Copy File)" in person(env).said


def test_ctrl_c_drops_what_is_typed_and_nothing_else() -> None:
    env = played(CTRL_C, "r train.py", CTRL_C, "submit done")
    assert did(env) == [RUN, END]


def test_ctrl_c_stops_what_runs() -> None:
    env = played("r train.py", "submit done", interrupts=True)
    assert env.cancelled == 2


@pytest.mark.parametrize(
    ("answers", "steps"),
    [
        (["s"], ["Final Answer"]),
        (["e"], []),
        ([EOF_], []),
        (["no", "r train.py", EOF_, "e"], ["Execute Script"]),
        ([CTRL_C, EOF_, "e"], []),
    ],
    ids=["submit", "leave", "again", "go on", "changed my mind"],
)
def test_ctrl_d_asks_what_it_is_meant_to_do(answers: list[Any], steps: list[str]) -> None:
    env = played(EOF_, *answers)
    assert [name for name, _ in did(env)] == steps
    assert person(env).entries == []


def test_going_back() -> None:
    env = played("r a.py", "r b.py", "back", "back 0", "back 7", "back x", "submit done")
    assert env.restored == [1, 0]
    said = person(env).said
    assert "what it was after step 1" in said
    assert "what it was at the start" in said
    assert "there was no step 7; the last one is 2" in said


def test_an_unknown_action_is_refused_and_is_not_a_step() -> None:
    env = played("dance", "help", "", "more", "submit done")
    assert did(env) == [END]
    assert "'dance'" in person(env).said
    assert "(nothing was done yet)" in person(env).said


def test_long_observations_are_cut_and_shown_whole_on_demand() -> None:
    text = "\n".join(f"epoch {n}" for n in range(20))
    env = played("r train.py", "more", "submit done", react=lambda action: text)
    shown = next(text for text in person(env).shown if text.startswith("--- step 1"))
    assert shown.splitlines() == [
        "--- step 1: Execute Script", "epoch 0", "epoch 1", "epoch 2", "epoch 3",
        "[... 14 lines more; `more` shows them ...]", "epoch 18", "epoch 19",
    ]  # fmt: skip
    assert text in person(env).shown


def test_errors_and_exit_statuses_are_told() -> None:
    env = played(
        "r train.py", "submit done", react=lambda action: Observation("no", ok=False, exit_status=3)
    )
    assert "--- step 1: Execute Script, exit status 3, error\nno" in person(env).shown


def test_the_end_of_the_budget_is_told_and_passes() -> None:
    env = World(FakeModel(), budget=Budget(max_steps=1))
    env.somebody = ScriptedPerson(["r train.py", "r train.py"])
    with pytest.raises(BudgetExhausted):
        HumanAgent().run(env)
    assert "scored as it is" in person(env).shown[-1]


def test_everything_fits_80_columns() -> None:
    env = World(
        FakeModel(),
        task_description="- " + "a long point of a list " * 9,
        budget=Budget(max_steps=9),
    )
    env.somebody = ScriptedPerson(["r train.py", EOF_, "e"])
    HumanAgent().run(env)
    shown = [
        line for text in [*person(env).shown, *person(env).prompts] for line in text.split("\n")
    ]
    assert max(map(len, shown)) <= WIDTH
    assert "\n  a list a long point" in person(env).said, "continued under its text"


def test_the_task_s_paragraphs_are_filled_anew() -> None:
    kept = "\n\n| a | b |\n|---|---|\n\n```\nx = 1\ny = 2\n```"
    text = f"# Title\n\nOne line that is\nbroken.\n- a point\n  of a list\n- another{kept}"
    env = World(FakeModel(), task_description=text)
    env.somebody = ScriptedPerson([EOF_, "e"])
    HumanAgent().run(env)
    assert (
        person(env).shown[1]
        == f"# Title\n\nOne line that is broken.\n- a point of a list\n- another{kept}"
    )


def test_the_help_names_every_action_and_each_number_works() -> None:
    env = played("help", "submit done")
    for name in definitions():
        assert name in " ".join(person(env).said.split())
    assert set(SHORT.values()) <= set(definitions())
    for number, (short, name) in enumerate(SHORT.items(), 1):
        assert f"{number:>2} or {short:<7}{name}" in person(env).said
