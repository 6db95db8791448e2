"""Values that travel between processes: flat lists of names and plain builtins.

A value that execnet cannot serialize, such as a numpy float, ends a whole pytest-xdist session, the
other workers' results included. So all values pass :func:`to_wire`, which refuses such a value in
the process that made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Union

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


def _name(key: object) -> str:
    if type(key) is not str:
        raise WireError(f"the name {key!r} is {_type(key)}; a name that travels must be a str")
    return _text(key)


def _plain(key: str, value: object) -> Builtin:
    if type(value) is str:
        return _text(value)
    # isinstance() would let subclasses pass, such as numpy.float64, which is a float.
    if type(value) in _PLAIN:
        return value  # type: ignore[return-value]  # one of the exact types
    raise WireError(
        f"{key!r} is {value!r} of type {_type(value)}; only str, bool, int, float and None travel"
        " between processes: convert it first (float(x), str(x), x.value)"
    )


def _text(text: str) -> str:
    # Lone surrogates come from file names that are not UTF-8. Their escapes stay readable.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _type(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
