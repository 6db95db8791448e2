"""The pytest plugin: every hook of pytest, each a few lines that call the module for it.

Imported in every session of every project that has pytest-mlab installed, so nothing heavy is
imported here, and nothing happens until a model, an agent or a run to resume is named."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from pytest_mlab.errors import ConfigError
from pytest_mlab.planning.options import TABLE, add_flags
from pytest_mlab.plugin import collect, hookspecs
from pytest_mlab.plugin.fixture import mlab_trial  # noqa: F401 - pytest finds it by its name
from pytest_mlab.plugin.ini import asked_of
from pytest_mlab.plugin.refusals import refuse_loop
from pytest_mlab.plugin.scheduler import IdleItem, append_idle
from pytest_mlab.plugin.stash import OPTIONS, RUN

if TYPE_CHECKING:
    from pytest_mlab.planning.options import MlabOptions


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Make the hooks ``pytest_mlab_*`` known."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """One flag and one ini setting for each row of the table."""
    group = parser.getgroup("mlab", "machine-learning tasks as tests for agents (pytest-mlab)")
    add_flags(group.addoption)
    for option in TABLE:
        # No default here: None tells resolve() that nothing was given. ini help is no format
        # string, so argparse's %% is a plain % there.
        parser.addini(option.dest, option.help.replace("%%", "%"), type=option.ini, default=None)


# A wrapper, and the first one: before the wrapper of pytest's capture decides what to capture.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """``--mlab-debug`` implies ``-s``: a debugger needs the terminal."""
    if getattr(early_config.known_args_namespace, "mlab_debug", False):
        early_config.known_args_namespace.capture = "no"
    return (yield)


# tryfirst: before xdist's loop, which never comes to the hooks below in this process.
@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Refuse to run trials in a loop."""
    try:
        refuse_loop(config)
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None


# tryfirst: before xdist decides from collectonly whether to start workers, and before JUnit's
# plugin makes its writer from xmlpath.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Check the options, once; make the markers known."""
    try:
        options = asked_of(config)
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[OPTIONS] = options
    if options.debug:
        config.option.capture = "no"  # as load_initial_conftests() has made it
    if options.plan:
        from pytest_mlab.plugin.plan_only import collect_only

        collect_only(config)
    collect.register_markers(config)
    if options.active:
        from pytest_mlab.plugin.junitfile import want_junit

        want_junit(config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Freeze the plan before anything is collected and before workers start."""
    options: MlabOptions = session.config.stash[OPTIONS]
    if options.active:
        from pytest_mlab.plugin.start import start

        start(session, options)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """What is going to run, in a line or two."""
    run = config.stash.get(RUN, None)
    if run is None:
        return []
    from pytest_mlab.plugin.announce import header

    return header(run)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Add the built-in suite's tests when no path was given."""
    report = yield
    collect.add_suite(collector, report, collector.config.stash.get(RUN, None))
    return report


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item for each trial of the plan."""
    collect.generate(metafunc, metafunc.config.stash.get(RUN, None))


# trylast: the idle item has to stay the last one, after -k, -m and plugins that sort. The scheduler
# knows it by that place.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Deselect; under xdist, end the list with the idle item."""
    run = config.stash.get(RUN, None)
    collect.select(config, items, run)
    if run is not None:
        append_idle(session, items)


# tryfirst: pytest takes the first answer, and no other plugin may run or rerun the idle item.
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """The idle item runs nothing and reports nothing."""
    return True if isinstance(item, IdleItem) else None


# tryfirst: else pytest's own plugin calls a report with ``wasxfail`` an expected failure.
@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Trials below their target have a category of their own where they are not failures."""
    return collect.status(report)
