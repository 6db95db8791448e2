"""The options that pytest was given: flags, and settings of the ini file in whatever type."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import pytest

from pytest_mlab.planning.options import BY_FIELD, MlabOptions, resolve

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LISTS = {option.dest for option in BY_FIELD.values() if option.kind == "list"}


def asked_of(config: pytest.Config) -> MlabOptions:
    """The checked options. Raises ConfigError."""
    return resolve(lambda dest: config.getoption(dest, None), lambda dest: setting(config, dest))


def setting(config: pytest.Config, dest: str) -> Any:
    """The value of the setting ``dest``, None when it is not there.

    pytest 9 reads ``[tool.pytest]`` and ``pytest.toml`` with TOML's types and refuses a value of
    any other type than the declared one: ``mlab_max_time = 3600``, ``mlab_fail_under = 0.5`` and
    ``mlab_agent = "baseline"`` would be errors. Such a value is taken as it stands in the file;
    the option's own check then decides."""
    try:
        return config.getini(dest)
    # TypeError in pytest 9.0, UsageError since 9.2.
    except (TypeError, pytest.UsageError):
        value = _tables(config).get(dest)
        overridden = any(
            one.partition("=")[0].strip() == dest for one in config.getoption("override_ini") or ()
        )
        if value is None or overridden:
            raise
        if dest in _LISTS and isinstance(value, str):
            return shlex.split(value)  # as pytest reads it in the other files
        return [value] if dest in _LISTS and not isinstance(value, list) else value


def _tables(config: pytest.Config) -> dict[str, Any]:
    """The settings of a TOML file with native types: ``[tool.pytest]`` of pyproject.toml,
    ``[pytest]`` of the others."""
    if config.inipath is None or config.inipath.suffix != ".toml":
        return {}
    content = tomllib.loads(config.inipath.read_text(encoding="utf-8"))
    if config.inipath.name == "pyproject.toml":
        content = content.get("tool", {})
    found: dict[str, Any] = content.get("pytest", {})
    return found
