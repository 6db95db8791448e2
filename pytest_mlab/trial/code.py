"""The code in a model's answer, for agents."""

from __future__ import annotations

import ast

from pytest_mlab.trial.actions.answers import unfenced


def extract_code(answer: str) -> str:
    """The code in a model's ``answer``: what its code block holds, without the words around; an
    answer without a block is code as it stands. Ends in a line break, unless it is empty.

    Of several blocks the longest that is Python counts, else the longest."""
    return unfenced(answer, fits=_is_python)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    # A NUL is a ValueError, and what is nested too deeply one of the others.
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
