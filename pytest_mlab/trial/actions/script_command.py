"""The command that Execute Script runs: a Python or shell script of the workspace, with its
arguments."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from pytest_mlab.trial.actions.base import ActionContext, ActionError
from pytest_mlab.trial.workspace import PathRefused

# Many shell scripts are written for bash without saying so. A small image may have only sh.
_SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash "$0" "$@"; fi; exec sh "$0" "$@"'
_SHELL_LINE = re.compile(rb"#![^\n]*\b(?:ba|da|k|z)?sh\b")
_STARTERS = ("python", "python3", "bash", "sh", "-u")
_LOOKED_AT = 5000
"""Names of the workspace that are compared with one that does not exist."""


class ScriptCommand(NamedTuple):
    """``name`` of the script and the words that run it."""

    name: str
    argv: list[str]


def script_command(context: ActionContext, name: str, arguments: str) -> ScriptCommand:
    """The command for the script ``name``, which may be followed by its arguments. Raises
    ActionError, PathRefused."""
    if arguments and not _is_file(context, name) and _is_file(context, f"{name} {arguments}"):
        name, arguments = f"{name} {arguments}", ""  # a name with spaces, entered by a person
    name, words = _found(context, name)
    words += _words(arguments)
    rel = context.workspace.resolve(name).rel
    # An interpreter would take a name that begins with - for an option.
    script = rel if not rel.startswith("-") else f"./{rel}"
    ending = os.path.splitext(rel)[1].lower()
    if ending == ".ipynb":
        raise ActionError(_notebook(rel))
    if ending in (".sh", ".bash") or (ending != ".py" and _says_shell(context, name)):
        return ScriptCommand(name, ["sh", "-c", _SHELL, script, *words])
    # -u: what was printed before a kill is not lost in a buffer.
    return ScriptCommand(name, [context.connection.python, "-u", script, *words])


def _found(context: ActionContext, name: str) -> tuple[str, list[str]]:
    """The script's name and the arguments behind it: ``train.py --epochs 3``, ``python a.py``."""
    if _is_file(context, name):
        return name, []
    try:
        words = shlex.split(name)
    except ValueError:
        words = []
    while len(words) > 1 and words[0] in _STARTERS:
        del words[0]
    if words and words[0] != name and _is_file(context, words[0]):
        return words[0], words[1:]
    context.workspace.resolve(name)  # says what is wrong with a path that leads out
    raise ActionError(
        f"{name} does not exist or is not a file{_near(context, name)}; List Files shows what there"
        " is"
    )


def _is_file(context: ActionContext, name: str) -> bool:
    try:
        return context.workspace.resolve(name).path.is_file()
    except PathRefused:
        return False


def _words(arguments: str) -> list[str]:
    if "\0" in arguments:
        raise ActionError("the arguments have a zero byte, which no program can be given")
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise ActionError(
            f"the arguments {arguments!r:.200} cannot be split into words ({error}); quote them as"
            " in a shell"
        ) from None


def _says_shell(context: ActionContext, name: str) -> bool:
    return _SHELL_LINE.match(context.workspace.read(name, 100)) is not None


def _notebook(rel: str) -> str:
    target = f"{os.path.splitext(rel)[0]}.py"
    code = (
        f"import json; cells = json.load(open({rel!r}))['cells']; open({target!r}, 'w').write("
        "'\\n'.join(''.join(c['source']) + '\\n' for c in cells if c['cell_type'] == 'code'))"
    )
    return (
        f"{rel} is a notebook, which cannot be run as a script. The Python REPL writes its code to"
        f" a script: {code}"
    )


def _near(context: ActionContext, name: str) -> str:
    """The scripts with a name like ``name``, as a question; '' for none."""
    base = os.path.basename(name.rstrip("/"))
    paths = list(_scripts(context))
    near = [path for path in paths if os.path.basename(path) == base]
    near += difflib.get_close_matches(name, [p for p in paths if p not in near], n=3)
    return f" (near it: {', '.join(near[:3])})" if near else ""


def _scripts(context: ActionContext) -> Iterator[str]:
    root, count = os.fspath(context.workspace.root), 0
    for folder, _, files in os.walk(root):
        for file in sorted(files):
            count += 1
            if count > _LOOKED_AT:
                return
            if file.endswith((".py", ".sh", ".bash", ".ipynb")):
                yield os.path.relpath(os.path.join(folder, file), root)
