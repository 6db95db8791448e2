"""Names that people mistype: what exists, nearest match first."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher


def nearest_first(word: str, names: Iterable[str]) -> list[str]:
    """``names`` ordered by likeness to ``word``, the most alike first; equally alike ones by
    name."""
    return sorted(
        names, key=lambda name: (-SequenceMatcher(None, word.lower(), name.lower()).ratio(), name)
    )


def unknown(kind: str, word: str, names: Iterable[str]) -> str:
    """``unknown task 'huose-price'; did you mean 'house-price'? tasks: house-price, cifar10``.

    The question is asked only when the nearest name is alike enough to be meant.
    """
    ordered = nearest_first(word, names)
    if not ordered:
        return f"unknown {kind} {word!r}; there are no {kind}s"
    alike = SequenceMatcher(None, word.lower(), ordered[0].lower()).ratio() >= 0.6
    question = f" did you mean {ordered[0]!r}?" if alike else ""
    return f"unknown {kind} {word!r};{question} {kind}s: {', '.join(ordered)}"
