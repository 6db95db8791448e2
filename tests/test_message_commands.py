"""The commands that messages of the package print are commands that mlab and pytest take."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import pytest_mlab
from pytest_mlab.cli import COMMANDS

PACKAGE = Path(pytest_mlab.__file__).parent
COMMAND = re.compile(r"(?:^|[\s(`:])((?:mlab [a-z]+\b(?!:)|pytest --)[^;,()`\n]*)")
PROSE = re.compile(r" lists .*|\[.*\]")


def texts(tree: ast.Module) -> Iterator[str]:
    """All texts but docstrings; what an f-string puts in becomes ``mini``, a word that is a
    data variant as well."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as doc):
                skipped.add(id(doc))
            case ast.JoinedStr(values=values):
                skipped |= set(map(id, values))
                parts = (v.value if isinstance(v, ast.Constant) else "mini" for v in values)
                yield "".join(map(str, parts))
            case ast.Constant(value=str(text)) if id(node) not in skipped:
                yield text


def printed() -> list[tuple[str, list[str]]]:
    """The commands in the texts of all modules, in words, with the file."""
    return [
        (file.name, shlex.split(PROSE.sub("", line)))
        for file in sorted(PACKAGE.rglob("*.py"))
        for text in texts(ast.parse(file.read_text(encoding="utf-8")))
        for line in COMMAND.findall(text)
        if not line.startswith("mlab mini")  # the name of any command
    ]


def test_commands_in_messages_are_parsed(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed()
    wrong = [(file, words) for file, words in lines if not is_taken(words, request.config)]
    assert not wrong, capsys.readouterr().err
    assert len(lines) > 15


def is_taken(words: list[str], config: pytest.Config) -> bool:
    if words[0] == "pytest":
        _, others = config._parser.parse_known_and_unknown_args(words[1:], argparse.Namespace())
        return not others
    if words[1] not in COMMANDS:
        return False
    command = import_module(COMMANDS[words[1]])
    parser = argparse.ArgumentParser(exit_on_error=False)
    command.add_arguments(parser)
    if words[2:] == [] or getattr(command, "PASSES_ON", False):
        return True  # named, without what it is given
    try:
        parser.parse_intermixed_args(words[2:])
    except (argparse.ArgumentError, SystemExit):
        return False
    return True
