"""pytest's ini settings without pytest, for ``mlab plan``: it must plan what pytest would run."""

from __future__ import annotations

import configparser
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_mlab.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)


def read_ini(rootdir: Path) -> Callable[[str], Any]:
    """A function from the name of a setting to its value in the project's ini file, None when it is
    not set.

    Files are looked for in ``rootdir`` in pytest's order; the first that configures pytest counts.
    Raises ConfigError for a file that cannot be read."""
    section = (
        next(filter(lambda found: found is not None, map(_section, _present(rootdir))), None) or {}
    )
    return lambda dest: _value(dest, section.get(dest))


def _present(rootdir: Path) -> list[Path]:
    return [file for name in _FILES if (file := rootdir / name).is_file()]


def _section(file: Path) -> Mapping[str, Any] | None:
    try:
        if file.suffix == ".toml":
            return _toml(
                tomllib.loads(file.read_text(encoding="utf-8")), own=file.name != "pyproject.toml"
            )
        parser = configparser.RawConfigParser()
        parser.read(file, encoding="utf-8")
    except (tomllib.TOMLDecodeError, configparser.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from None
    section = "tool:pytest" if file.suffix == ".cfg" else "pytest"
    if parser.has_section(section):
        return dict(parser.items(section))
    return {} if file.name in ("pytest.ini", ".pytest.ini") else None


def _toml(data: Mapping[str, Any], *, own: bool) -> Mapping[str, Any] | None:
    if own:
        return dict(data.get("pytest", {}))
    tool = data.get("tool", {}).get("pytest")
    if tool is None:
        return None
    return dict(tool.get("ini_options", tool))


def _value(dest: str, raw: Any) -> Any:
    from pytest_mlab.planning.options import BY_FIELD

    if BY_FIELD[dest.removeprefix("mlab_")].kind == "list" and isinstance(raw, str):
        return shlex.split(raw)
    return raw or None if isinstance(raw, (str, list)) else raw
