"""How failures reach a user: mistakes as usage errors, failed hooks with their plugin."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pluggy
import pytest

from pytest_mlab.errors import MlabError
from pytest_mlab.plugin.trial import nearby


class HookFailed(MlabError):
    """A hook ``pytest_mlab_*`` of a plugin or conftest.py raised an exception."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn an error that a user can fix into pytest's usage error: exit status 4, no traceback."""
    try:
        yield
    except MlabError as error:
        raise pytest.UsageError(str(error)) from None


def call(hook: pluggy.HookCaller, **arguments: object) -> Any:
    """Call a hook of users; return what pluggy returns.

    Raises HookFailed for an exception, and for ``pytest.fail`` and ``pytest.skip``;
    ``pytest.exit`` and interrupts pass."""
    try:
        return hook(**arguments)
    # pytest.exit is an Exception, which the next clause would catch; pytest.fail and pytest.skip
    # are BaseExceptions, so it names them.
    except pytest.exit.Exception:
        raise
    # The hooks are users' code, which may raise anything.
    except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
        raise HookFailed(_explain(hook, error)) from error


def _explain(hook: pluggy.HookCaller, error: BaseException) -> str:
    """Name the plugin whose function the exception came through, the last one called."""
    implementations = {
        implementation.function.__code__: implementation for implementation in hook.get_hookimpls()
    }
    plugin, place = "a plugin", ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        # Most frames are those of pluggy and of helpers; only the code of a hook function tells
        # whose it is.
        if implementation := implementations.get(frame.f_code):
            plugin = _name(implementation)
            place = f" ({nearby(Path(frame.f_code.co_filename))}:{line})"
    return f"{plugin}: its hook {hook.name} raised {type(error).__name__}: {error}{place}"


def _name(implementation: pluggy.HookImpl) -> str:
    # A plugin that was registered without a name has its id in place of one.
    if implementation.plugin_name.isdigit():
        return f"the plugin {type(implementation.plugin).__qualname__}"
    return f"the plugin {nearby(Path(implementation.plugin_name))}"
