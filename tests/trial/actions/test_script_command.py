"""Which command Execute Script runs."""

from __future__ import annotations

import json

import pytest

from pytest_mlab.core.actions import Observation
from tests.trial.conftest import MakeTrial

ARGS = b"import sys\nprint(sys.argv)"
NOTEBOOK = json.dumps(
    {"cells": [{"cell_type": "code", "source": ["x = 1\n", "print(x)"]}, {"cell_type": "markdown"}]}
).encode()


@pytest.mark.parametrize(
    ("given", "argv"),
    [
        ({"script_name": "a.py"}, ["a.py"]),
        ({"script_name": "a.py", "arguments": ""}, ["a.py"]),
        ({"script_name": "a.py", "arguments": None}, ["a.py"]),
        ({"script_name": "a.py", "arguments": "--epochs 3 'a b' *.csv"},
         ["a.py", "--epochs", "3", "a b", "*.csv"]),
        ({"script_name": "a.py --epochs 3"}, ["a.py", "--epochs", "3"]),
        ({"script_name": "a.py ../../x", "arguments": "y"}, ["a.py", "../../x", "y"]),
        ({"script_name": "python -u a.py x"}, ["a.py", "x"]),
        ({"script_name": "./a.py"}, ["a.py"]),
        ({"script_name": "my dir/my script.py", "arguments": "x"}, ["my dir/my script.py", "x"]),
        ({"script_name": "'my dir/my script.py' x"}, ["my dir/my script.py", "x"]),
        ({"script_name": "my", "arguments": "dir/my script.py"}, ["my dir/my script.py"]),
        ({"script_name": "-c.py", "arguments": "-v"}, ["./-c.py", "-v"]),
    ],
)  # fmt: skip
def test_arguments(make_trial: MakeTrial, given: dict[str, str], argv: list[str]) -> None:
    trial = make_trial(env={"a.py": ARGS, "my dir/my script.py": ARGS, "-c.py": ARGS})
    seen = trial.do("Execute Script", **given)
    assert seen.ok, seen.text
    assert seen.text.endswith(f"ran to its end. Its output:\n{argv}\n")


@pytest.mark.parametrize("name", ["run.sh", "run", "my run.sh"])
def test_shell_scripts_are_run_by_a_shell(make_trial: MakeTrial, name: str) -> None:
    code = b'#!/usr/bin/env bash\nset -o pipefail\nx=(1 2)\necho "$1 ${x[1]} $0"\n'
    seen = make_trial(env={name: code}).do("Execute Script", script_name=name, arguments="'a b'")
    assert seen.text == f"{name} ran to its end. Its output:\na b 2 {name}\n"


def refused(seen: Observation) -> str:
    assert not seen.ok
    return seen.text


def test_a_notebook_is_refused_with_the_way_out(make_trial: MakeTrial) -> None:
    trial = make_trial(env={"a.ipynb": NOTEBOOK})
    said = refused(trial.do("Execute Script", script_name="a.ipynb"))
    assert said.startswith("Execute Script: a.ipynb is a notebook")
    assert trial.do("Python REPL", command=said.partition("script: ")[2]).ok
    assert trial.do("Execute Script", script_name="a.py").text.endswith("output:\n1\n")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"script_name": "train.py"}, "not a file (near it: src/train.py"),
        ({"script_name": "src/trian.py"}, "(near it: src/train.py)"),
        ({"script_name": "src"}, "src does not exist or is not a file"),
        ({"script_name": "../x.py"}, "leads out of the workspace"),
        ({"script_name": "../../x.py --y"}, "leads out of the workspace"),
        ({"script_name": "src/train.py", "arguments": "'a"}, "No closing quotation"),
        ({"script_name": "src/train.py", "arguments": "\0"}, "zero byte"),
    ],
)
def test_what_cannot_be_run_is_said(
    make_trial: MakeTrial, given: dict[str, str], said: str
) -> None:
    assert said in refused(make_trial(env={"src/train.py": b""}).do("Execute Script", **given))
