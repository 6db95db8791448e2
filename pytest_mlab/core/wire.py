"""Values that travel between processes: flat lists of names and plain builtins.

A value that execnet cannot serialize, such as a numpy float, ends a whole pytest-xdist session, the
other workers' results included. So all values pass :func:`to_wire`, which refuses such a value in
the process that made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Union

from pytest_mlab.core.trial import TrialResult
from pytest_mlab.errors import WireError

Builtin = Union[str, bool, int, float, None]

_PLAIN = (str, bool, int, float, type(None))


def to_wire(values: Mapping[str, object]) -> list[tuple[str, Builtin]]:
    """``values`` as pairs, in their order. Raises WireError unless every value is exactly a str,
    bool, int, float or None (subclasses included: numpy's numbers and enum members are refused).

    Lone surrogates, which no encoder accepts, become their escape (``\\udc80``), in names and in
    values."""
    return [(_name(key), _plain(key, value)) for key, value in values.items()]


def from_wire(pairs: Iterable[tuple[str, Builtin]]) -> dict[str, Builtin]:
    """The mapping again. Raises WireError for a duplicate name."""
    values: dict[str, Builtin] = {}
    for key, value in pairs:
        if key in values:
            raise WireError(f"{key!r} came twice: {values[key]!r} and {value!r}")
        values[key] = value
    return values


def trial_properties(result: TrialResult, trace_path: str) -> list[tuple[str, Builtin]]:
    """A trial's result as properties of its test report, in JUnit and between workers.

    Unknown values (no score, unknown price) are left out: a property is either true or absent.
    ``trace_path`` is where trace.jsonl is, relative to where the run was started."""
    ledger = result.ledger
    values: dict[str, object] = {
        "mlab.task": result.id.task,
        "mlab.agent": result.id.agent,
        "mlab.model": result.id.model or None,
        "mlab.repeat": result.id.repeat,
        "mlab.outcome": result.outcome.value,
        "mlab.reason": result.reason or None,
        "mlab.score": result.score,
        "mlab.baseline": result.baseline,
        "mlab.needed": result.needed,
        "mlab.improvement": result.improvement,
        "mlab.within_noise": result.within_noise,
        "mlab.ended_by": None if result.ended_by is None else result.ended_by.value,
        "mlab.steps": ledger.steps,
        "mlab.seconds": ledger.seconds,
        "mlab.waited_seconds": ledger.waited,
        "mlab.evaluation_seconds": result.evaluation_seconds,
        "mlab.model_calls": ledger.model_calls,
        "mlab.prompt_tokens": ledger.usage.prompt_tokens,
        "mlab.completion_tokens": ledger.usage.completion_tokens,
        "mlab.cost_usd": ledger.known_cost,
        "mlab.data": result.data or None,
        "mlab.data_digest": result.data_digest or None,
        "mlab.sandbox": result.sandbox or None,
        "mlab.trace": trace_path or None,
    }
    return to_wire({name: value for name, value in values.items() if value is not None})


def _name(key: object) -> str:
    if type(key) is not str:
        raise WireError(f"the name {key!r} is {_type(key)}; a name that travels must be a str")
    return _text(key)


def _plain(key: str, value: object) -> Builtin:
    if type(value) is str:
        return _text(value)
    if type(value) in _PLAIN:
        return value  # type: ignore[return-value]  # one of the exact types
    raise WireError(
        f"{key!r} is {value!r} of type {_type(value)}; only str, bool, int, float and None travel"
        " between processes: convert it first (float(x), str(x), x.value)"
    )


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _type(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
