"""Read Output: what an observation left out is within reach."""

from __future__ import annotations

import re

import pytest

from pytest_mlab.trial.actions.base import SHOWN
from tests.trial.conftest import MakeTrial

CODE = b"""
for k in range(9000):
    print(f"\\rworking on it\\rline number {k}")
"""
WHOLE = "".join(f"line number {k}\n" for k in range(9000))


def test_all_of_a_long_output_can_be_read(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a.py": CODE})
    seen = trial.do("Execute Script", script_name="a.py")
    start = int(re.findall(r"step_number 1, start_character (\d+)", seen.text)[0])
    read, at = "", 1
    while at:
        part = trial.do("Read Output", step_number=1, start_character=at)
        assert part.ok
        assert len(part.text) <= SHOWN
        head, _, text = part.text.partition("\n\n")
        read += text
        more = re.search(r"go on with start_character (\d+)", head)
        at = int(more[1]) if more else 0
    assert read == WHOLE
    left_out = trial.do("Read Output", step_number=1, start_character=start).text
    assert left_out.startswith(f"Characters {start} to ")
    assert left_out.partition("\n\n")[2] == WHOLE[start - 1 :][: len(left_out.partition("\n\n")[2])]
    lines = trial.do("Read Output", step_number=1, start_character=1, containing="r 777").text
    assert lines.endswith(
        ":\n\nline number 777\n" + "".join(f"line number {k}\n" for k in range(7770, 7780))
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"step_number": 2, "start_character": 1}, "more output than was shown: 1)"),
        ({"step_number": 1, "start_character": 0}, "count from 1"),
        ({"step_number": 1, "start_character": 10**9}, "so there is none from 1000000000 on"),
    ],
)
def test_what_is_not_there_is_said(make_trial: MakeTrial, args: dict[str, int], said: str) -> None:
    trial = make_trial()
    trial.do("Python REPL", command="print('x' * 40000)")
    seen = trial.do("Read Output", **args)
    assert not seen.ok
    assert said in seen.text
    none = trial.do("Read Output", step_number=1, start_character=1, containing="y")
    assert none.text == "There is nothing in the lines with 'y' in the output of step 1."
