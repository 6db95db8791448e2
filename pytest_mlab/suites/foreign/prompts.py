"""What a prepare.py asks at a prompt, found without running it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

_ADDRESS = re.compile(r"https?://[^\s;,)\"']+")


def rules_of(folder: Path) -> str:
    """The address of the rules that scripts/prepare.py asks about, else where it asks; '' when it
    asks nothing."""
    file = folder / "scripts" / "prepare.py"
    if not file.is_file() or (folder / "scripts" / "prepared").exists():
        return ""
    try:
        # Bytes: the file may declare an encoding of its own.
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return ""  # running the file shows the error
    questions = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_prompt(node)]
    if not questions:
        return ""
    texts = _constants(tree)
    asked = " ".join(_text(part, texts) for node in questions for part in node.args)
    found = _ADDRESS.search(asked)
    return found[0] if found else f"{file} (it asks in line {questions[0].lineno})"


def _is_prompt(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "input"


def _constants(tree: ast.Module) -> dict[str, str]:
    """Texts that names of the module stand for."""
    found = {}
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            found.update(
                {
                    target.id: node.value.value
                    for target in node.targets
                    if isinstance(target, ast.Name)
                }
            )
    return found


def _text(node: ast.AST, names: dict[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, names)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, names) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left, names) + _text(node.right, names)
    return ""
