"""A provider's usage figures, which may be missing or wrong, made into figures that limits can rely
on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_mlab.core.budget import Usage

MOST = 100_000_000
"""Tokens; a larger figure for one call is not believed (the longest contexts have 10 million)."""

_PROMPT = ("prompt_tokens", "input_tokens")
_COMPLETION = ("completion_tokens", "output_tokens")
_CACHED = ("cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens")
_WRITTEN = ("cache_creation_tokens", "cache_creation_input_tokens")
_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_MORE_DETAILS = ("completion_tokens_details", "output_tokens_details")
AS_REPORTED = "as_reported"
"""Where :mod:`pytest_mlab.models.answers` keeps the provider's own usage when it repairs one."""


@dataclass(frozen=True)
class Expected:
    """What is known here about a call: ``prompt`` and ``completion`` count its tokens, ``sent`` and
    ``received`` are the characters of its texts."""

    prompt: Callable[[], int]
    completion: Callable[[], int]
    sent: int = 0
    received: int = 0


@dataclass(frozen=True)
class Counted:
    """A call's usage. ``written`` are the prompt tokens that the provider put into its cache;
    ``remark`` says how ``usage`` differs from what the provider reported, '' when it does not."""

    usage: Usage
    written: int = 0
    remark: str = ""


def counted(reported: Mapping[str, Any], expected: Expected) -> Counted:
    """The usage that a provider ``reported``, as one that adds up.

    Figures that are not whole numbers from 0 to :data:`MOST` are not taken. What is missing, or far
    too small for the texts, is estimated; parts that exceed their whole are added to it. A
    correction never counts less than what was reported and can be believed."""
    own = reported.get(AS_REPORTED, reported)
    figures = _Figures(own if isinstance(own, Mapping) else {})
    remarks = figures.remarks
    prompt = figures.whole(_PROMPT)
    completion = figures.whole(_COMPLETION)
    cached = figures.whole(_CACHED, _DETAILS) or 0
    written = figures.whole(_WRITTEN, _DETAILS) or 0
    reasoning = figures.whole(("reasoning_tokens",), _MORE_DETAILS) or 0
    total = figures.whole(("total_tokens",)) or 0
    figures.check_others()

    # Some count what was cached beside the prompt. Added before the prompt is compared with its
    # text, of which the figure may be a small part then.
    if not prompt:
        prompt = _believed(prompt, expected.sent, expected.prompt, "prompt", remarks)
    if cached + written > prompt:
        remarks.append(f"{cached + written} cached tokens in a prompt of {prompt}")
        prompt += cached + written
    prompt = _believed(prompt, expected.sent, expected.prompt, "prompt", remarks)
    if completion is None or completion == 0:
        # Some count the answer only in the total.
        completion = max(completion or 0, total - prompt)
    completion = _believed(completion, expected.received, expected.completion, "answer", remarks)
    if reasoning > completion:
        remarks.append(f"{reasoning} reasoning tokens in an answer of {completion}")
        completion += reasoning
    if total > prompt + completion:
        remarks.append(f"a total of {total} for {prompt} + {completion}")
        completion = total - prompt
    usage = Usage(prompt, completion, cached, reasoning)
    if not remarks:
        return Counted(usage, written)
    fault = "the provider reports no usage"
    if figures.any:
        fault = f"the provider's usage does not add up: {'; '.join(remarks)}"
    counts = f"counted as {prompt} prompt and {completion} completion tokens"
    return Counted(usage, written, f"{fault}; {counts}")


def _believed(
    figure: int | None, characters: int, estimate: Callable[[], int], name: str, remarks: list[str]
) -> int:
    """``figure``, or the estimate where it is missing or much too small for the text."""
    found = figure or 0
    # Tokens have about 4 characters. Counting takes time, so only where the figure looks wrong.
    if found and found * 20 >= characters:
        return found
    counted_here = estimate()
    if counted_here <= 2 * found:
        return found
    remarks.append(f"{found or 'no'} tokens for the {name}, about {counted_here} are estimated")
    return counted_here


class _Figures:
    """Reads figures of a usage; ``remarks`` collects what it does not take."""

    def __init__(self, reported: Mapping[str, Any]) -> None:
        self._reported = reported
        self._seen: set[str] = set()
        self.remarks: list[str] = []
        self.any = False
        """Whether there is any figure above 0, or one that is not taken."""

    def whole(self, names: tuple[str, ...], details: tuple[str, ...] = ()) -> int | None:
        """The largest figure of one of ``names``, at the top or in one of ``details``; None when
        there is none. A number in another form (1.5, "12") counts, rounded up."""
        places = [(self._reported, ""), *self._details(details)]
        found: int | None = None
        for place, prefix in places:
            for name in names:
                self._seen.add(prefix + name)
                value = self._taken(prefix + name, place.get(name))
                if value is not None:
                    found = max(value, found or 0)
        return found

    def check_others(self) -> None:
        """Look at the figures that are not used here: the price may depend on them."""
        for prefix, place in (("", self._reported), *self._nested()):
            for name, value in place.items():
                if str(name).endswith("_tokens") and prefix + str(name) not in self._seen:
                    self._taken(prefix + str(name), value)

    def _details(self, names: tuple[str, ...]) -> Iterator[tuple[Mapping[str, Any], str]]:
        for name in names:
            value = self._reported.get(name)
            if isinstance(value, Mapping):
                yield value, f"{name}."
            elif value is not None and name not in self._seen:
                self._seen.add(name)
                self._taken(name, str(value))

    def _nested(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for name, value in self._reported.items():
            if isinstance(value, Mapping):
                yield f"{name}.", value

    def _taken(self, name: str, value: Any) -> int | None:
        if value is None:
            return None
        if type(value) is int and 0 <= value <= MOST:
            self.any = self.any or value > 0
            return value
        self.any = True
        self.remarks.append(f"{name} is {value!r:.40}")
        return _rounded(value)


def is_whole(value: Any) -> bool:
    """Whether ``value`` has the form of a figure (which may still be wrong)."""
    return value is None or type(value) is int


def _rounded(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return math.ceil(number) if 0 <= number <= MOST else None
