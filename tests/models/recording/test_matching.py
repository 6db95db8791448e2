"""Whether two requests are the same, what must not matter, and how a difference reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, ModelRequest, ToolCall
from pytest_mlab.models.recording.matching import SCREEN, comparable, difference, without_volatile

REQUEST = ModelRequest(
    "m", (Message("system", "Be brief."), Message("user", "Say a.\nSay b.")), temperature=0.5
)


def lines(changed: ModelRequest, recorded: ModelRequest = REQUEST) -> list[str]:
    return difference(comparable(recorded, str), comparable(changed, str))


def prompt(text: str) -> ModelRequest:
    return replace(REQUEST, messages=(Message("user", text),))


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("took 1.2 s", "took 13.75 s"),
        ("took 12ms/step", "took 9ms/step"),
        ("ran for 1 min 3.4 seconds", "ran for 59 s"),
        ("done in 2m 3s.", "done in 4 sec."),
        ("after 0.5 hours", "after 1.25 h"),
        ("2024-05-06 07:08:09,123 INFO", "2026-11-12T10:11:12.5Z INFO"),
        ("[07:08:09] step", "[23:59:59.25] step"),
        ("5/10 [00:12<00:30,  8.31it/s]", "5/10 [00:02<00:03,  81.3it/s]"),
        ("speed 1200 tokens/s", "speed 900.5 tokens/s"),
        ('File "/tmp/tmpab12cd34/x.py"', 'File "/tmp/pytest-of-me/y.py"'),
        ("<object at 0x7f3a5c001230>", "<object at 0x5581e0>"),
        ("[pid 1234] began", "[pid 99] began"),
        (
            "[... 5012 bytes left out; all 40512 bytes are kept as",
            "[... 5013 bytes left out; all 40513 bytes are kept as",
        ),
    ],
)
def test_what_varies_from_run_to_run_does_not_matter(one: str, another: str) -> None:
    assert without_volatile(one) == without_volatile(another)
    assert comparable(prompt(one), str) == comparable(prompt(another), str)


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("accuracy 0.71", "accuracy 0.72"),
        ("epoch 5", "epoch 6"),
        ("x[10:20]", "x[10:30]"),
        ("50 steps", "40 steps"),
        ("5h", "4h"),
        ("1000 rows", "1001 rows"),
        ("print('a')", "print('b')"),
        ("lr=1e-3", "lr=1e-4"),
        ("resnet50s", "resnet18s"),
    ],
)
def test_everything_else_does(one: str, another: str) -> None:
    assert comparable(prompt(one), str) != comparable(prompt(another), str)


TOOL = ActionSpec("Read File", "Reads.", {"type": "object"})


@pytest.mark.parametrize(
    ("changed", "title"),
    [
        (replace(REQUEST, model="n"), "model"),
        (replace(REQUEST, temperature=0.25), "parameters"),
        (replace(REQUEST, stop=("x",)), "parameters"),
        (replace(REQUEST, schema={"type": "object"}), "parameters"),
        (replace(REQUEST, tools=(TOOL,)), "tools"),
        (
            replace(REQUEST, messages=(Message("system", "Be long."), REQUEST.messages[1])),
            "message 1 (system)",
        ),
        (
            replace(
                REQUEST,
                messages=(REQUEST.messages[0], replace(REQUEST.messages[1], role="assistant")),
            ),
            "message 2 (user)",
        ),
        (
            replace(
                REQUEST,
                messages=(
                    REQUEST.messages[0],
                    replace(REQUEST.messages[1], tool_calls=(ToolCall("1", "x", "{}"),)),
                ),
            ),
            "message 2 (user)",
        ),
    ],
)
def test_a_difference_names_its_part(changed: ModelRequest, title: str) -> None:
    assert lines(changed)[0].startswith(f"{title} ")


def test_of_reasoning_the_words_matter_and_no_signature() -> None:
    def saying(thinking: str, signature: str) -> ModelRequest:
        block = {"type": "thinking", "thinking": thinking, "signature": signature}
        return replace(REQUEST, messages=(Message("assistant", "x", reasoning=(block,)),))

    assert lines(saying("hm", "a"), saying("hm", "b")) == []
    assert lines(saying("hm", "a"), saying("oh", "a")) != []


def test_what_bounds_a_call_in_time_is_no_difference() -> None:
    assert lines(replace(REQUEST, timeout=1.0, deadline=5.0)) == []


def test_a_changed_line_is_shown_between_its_neighbours() -> None:
    text = "\n".join(f"line {n} of the prompt" for n in range(1, 30))
    found = lines(prompt(text.replace("line 15", "verse 15")), prompt(text))
    assert found == [
        "message 1 (user) (- recorded, + now):",
        "@@ line 13",
        " line 13 of the prompt",
        " line 14 of the prompt",
        "-line 15 of the prompt",
        "+verse 15 of the prompt",
        " line 16 of the prompt",
        " line 17 of the prompt",
    ]


def test_of_a_long_line_the_part_that_differs_is_shown() -> None:
    begin = "words " * 100
    found = lines(prompt(f"{begin}old end"), prompt(f"{begin}new end"))
    assert [line[:5] for line in found[2:]] == ["-... ", "+... "]
    assert found[2].endswith("new end")
    assert found[3].endswith("old end")
    assert max(map(len, found)) <= 80


def test_messages_that_are_new_or_gone_are_shown() -> None:
    more = replace(REQUEST, messages=(*REQUEST.messages, Message("user", "And now?")))
    assert lines(more) == ["message 3 (user) is there now and was not recorded:", "+And now?"]
    assert lines(REQUEST, more) == [
        "message 3 (user) was recorded and is not there now:",
        "-And now?",
    ]


def test_a_large_difference_is_cut_to_a_screen() -> None:
    found = lines(
        prompt("\n".join(f"a{n}" for n in range(100))),
        prompt("\n".join(f"b{n}" for n in range(100))),
    )
    assert len(found) == SCREEN
    assert found[-1].endswith("more lines that differ")
