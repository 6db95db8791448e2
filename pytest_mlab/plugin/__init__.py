"""The pytest plugin. Only this package and ``pytest_mlab.testing`` import pytest.

The entry point names this package, so that ``-p pytest_mlab.plugin`` works too; the hooks are in
``hooks.py``."""

from pytest_mlab.plugin.hooks import *  # noqa: F403 - pytest finds the hooks by their names
