"""What broke in a script, told in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_mlab.core.crashes import LONGEST, crash_line


def output_of(tmp_path: Path, **files: str) -> str:
    for name, source in files.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr


def test_the_exception_and_the_place_of_the_programs_own(tmp_path: Path) -> None:
    helper = "import json\n\n\ndef load(text):\n    return json.loads(text)\n"
    output = output_of(tmp_path, train="import helper\nhelper.load('{')\n", helper=helper)
    assert crash_line(output).startswith(
        "helper.py:5: json.decoder.JSONDecodeError: Expecting property name"
    )


def test_of_an_exception_with_a_cause_it_is_the_last(tmp_path: Path) -> None:
    source = (
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('odd') from"
        " error\n"
    )
    assert crash_line(output_of(tmp_path, train=source)) == "train.py:4: ValueError: odd"


def test_a_syntax_error_is_one_too(tmp_path: Path) -> None:
    assert (
        crash_line(output_of(tmp_path, train="print(\n"))
        == "train.py:1: SyntaxError: '(' was never closed"
    )


@pytest.mark.parametrize("output", ["", "Killed\n", 'a line that says File "x", line 3\n'])
def test_no_traceback_no_line(output: str) -> None:
    assert crash_line(output) == ""


def test_a_long_message_is_cut() -> None:
    found = crash_line('  File "train.py", line 1, in <module>\nValueError: ' + "word " * 1000)
    assert len(found) <= LONGEST
    assert found.startswith("train.py:1: ValueError: word")
