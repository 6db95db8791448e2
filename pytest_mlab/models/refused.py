"""Parameters that a provider refuses for a model: recognised in its error, left out of further
requests where they may be, and said."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pytest_mlab.errors import BadRequestError, ModelError, ProviderError
from pytest_mlab.models.parameters import EVERYWHERE

ANSWER = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""The two names of the limit of an answer. A provider that refuses one takes the other."""

_NEEDED = EVERYWHERE | {"response_format", "api_key"}
"""Parameters without which an answer would not be what was asked for, or without which the provider
is not reached at all. Any other is left out where it is refused: the model cannot be asked with it,
and the remark says so."""

_OTHER_NAMES = {
    "stop": ("stop_sequences", "stopSequences"),
    "top_p": ("topP",),
    "top_k": ("topK",),
    "tool_choice": ("toolConfig", "toolChoice"),
    "parallel_tool_calls": ("disable_parallel_tool_use",),
    "presence_penalty": ("presencePenalty",),
    "frequency_penalty": ("frequencyPenalty",),
    "reasoning_effort": ("reasoning.effort", "effort", "thinking"),
    "max_tokens": ("max_completion_tokens",),
    "response_format": ("json_schema", "output_format", "responseSchema", "response_schema"),
}
"""How providers call what litellm takes by OpenAI's names."""

_REFUSAL = re.compile(
    r"unsupported|(?:not|n't|no longer)(?: currently| yet)? (?:be )?"
    r"(?:support|allow|permit|accept|recogni[sz]e|available|used|known|enabled)"
    r"|unrecogni[sz]ed|unexpected|unknown|unavailable|deprecated|extra_forbidden"
    r"|extra (?:inputs|fields|parameters)|must be (?:unset|omitted|removed)|may only be set"
    r"|cannot (?:both )?be (?:specified|set|combined|used)|please remove|no endpoints found",
    re.IGNORECASE,
)
_COMMON = frozenset({"stop", "seed", "user", "store", "effort", "thinking", "n", "metadata"})
"""Names that are ordinary words: they count only where they stand as names."""
_AS_NAME = (
    r"""(?:["'`\[]{name}["'`\]]|(?:^|[;\s(]){name}:\s|\.{name}:"""
    r"""|(?:param(?:eter)?s?|arguments?|fields?|property|supplied|model|supports?){mark}{name}\b)"""
)
_WHERE = 600


class SharedRefusals(Protocol):
    """What the workers of a run know about refused parameters
    (:class:`pytest_mlab.store.shared.Shared`)."""

    def refused(self, model: str) -> Iterable[str]:
        """The parameters that the provider refuses for ``model``."""
        ...

    def refuse(self, model: str, parameter: str) -> None:
        """The provider refuses ``parameter`` for ``model``."""
        ...


@dataclass
class Refusals:
    """The refused parameters of each model. Those that other workers have found are read once for
    each model, by which time the first trials have found them."""

    shared: SharedRefusals | None = None
    _known: dict[str, set[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, model: str) -> frozenset[str]:
        """The names, by litellm."""
        with self._lock:
            return frozenset(self._found(model))

    def add(self, model: str, parameter: str) -> None:
        """Remember it, for the run's other workers as well."""
        with self._lock:
            self._found(model).add(parameter)
        if self.shared is not None:
            self.shared.refuse(model, parameter)

    def _found(self, model: str) -> set[str]:
        if model not in self._known:
            self._known[model] = set(self.shared.refused(model) if self.shared else ())
        return self._known[model]


def refused_parameter(error: ModelError, sent: Iterable[str]) -> str:
    """The one of the parameters ``sent`` (litellm's names) that a provider's error refuses, or ''.
    Faulty values of a parameter, and faults of the conversation, are not refusals."""
    # 404 is OpenRouter's status when no provider behind it takes a parameter.
    if type(error) not in (BadRequestError, ProviderError):
        return ""
    words = str(error)[:_WHERE]
    if not _REFUSAL.search(words):
        return ""
    places: list[tuple[int, int, str]] = []
    # Whether tools are refused is decided by pytest_mlab.models.tool_refusals.
    for parameter in set(sent) - {"tools"}:
        for name in (parameter, *_OTHER_NAMES.get(parameter, ())):
            # The longest name at a place: max_tokens is a part of others.
            places += [(m.start(), -len(name), parameter) for m in _pattern(name).finditer(words)]
    if not places:
        return ""
    # "`temperature` and `top_p` cannot both be specified": the second one goes.
    both = re.search(r"cannot both be|use only one", words, re.IGNORECASE)
    return (max(places) if both else min(places))[2]


def _pattern(name: str) -> re.Pattern[str]:
    escaped = re.escape(name)
    if name in _COMMON:
        return re.compile(
            _AS_NAME.replace("{mark}", r"""\W{1,4}(?:the )?""").replace("{name}", escaped)
        )
    return re.compile(rf"(?<![\w.]){escaped}(?!\w)|(?<=body\.){escaped}(?!\w)")


def may_be_left_out(parameter: str, own: Mapping[str, Any]) -> bool:
    """Whether a request may go without it: not when the user's settings, ``own``, give it."""
    return parameter not in own and parameter not in _NEEDED


def without(params: Mapping[str, Any], refused: Iterable[str]) -> tuple[dict[str, Any], str]:
    """``params`` without those that are refused, and the remark about it ('' when there is nothing
    to say). The limit of an answer goes out by its other name, unless that is refused too."""
    left, names = dict(params), set(refused)
    remarks = []
    for parameter in sorted(names & params.keys()):
        value = left.pop(parameter)
        if parameter in ANSWER and ANSWER[parameter] not in names:
            left.setdefault(ANSWER[parameter], value)
        else:
            effect = _EFFECTS.get(parameter, "")
            remarks.append(f"{parameter} was left out, since the model does not take it{effect}")
    return left, "; ".join(remarks)


_EFFECTS = {
    "stop": " (the answer is cut here)",
    "tool_choice": " (an answer may come without a call)",
    "temperature": " (the provider's own temperature counts)",
    "response_format": " (the answer may not follow the schema)",
}


def advice(model: str, parameter: str, value: Any, own: Mapping[str, Any]) -> str:
    """What the user can do about a refused parameter that may not be left out."""
    if parameter in own:
        return (
            f"; to fix: take {parameter} = {value!r:.60} out of the settings of this model"
            f' ([models."{model}"] in mlab-models.toml, or --mlab-model-arg)'
        )
    return (
        f"; to fix: use a model that takes {parameter}, or write additional_drop_params ="
        f' ["{parameter}"] under [models."{model}"] in mlab-models.toml'
    )
