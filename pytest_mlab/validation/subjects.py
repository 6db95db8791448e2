"""Which tasks the words of a command line mean."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.suggest import unknown
from pytest_mlab.suites.catalog import Catalog
from pytest_mlab.validation.bench import Subject


def subjects(words: Sequence[str], catalog: Catalog, default: str, cache: Path) -> list[Subject]:
    """What ``words`` mean (suites, tasks, ``suite/task``, folders of tasks), each once; none: the
    suite ``default``.

    Tasks in MLAgentBench's format are read by way of ``cache``. Raises ConfigError.
    """
    found = [subject for word in words or [default] for subject in _of(word, catalog, cache)]
    return list({(subject.suite, subject.name): subject for subject in found}.values())


def _of(word: str, catalog: Catalog, cache: Path) -> list[Subject]:
    if word in catalog.suites():
        return [_subject(catalog, word, name) for name in catalog.suite(word).names]
    suite, slash, task = word.rpartition("/")
    if slash and suite in catalog.suites() and task in catalog.suite(suite).names:
        return [_subject(catalog, suite, task)]
    folder = Path(word)
    if slash and folder.is_dir():
        return _in_folder(folder.resolve(), cache)
    known = {suite: catalog.suite(suite).names for suite in catalog.suites()}
    having = [suite for suite, names in known.items() if word in names]
    if len(having) > 1:
        raise ConfigError(
            f"{word} is a task of several suites: say {' or '.join(f'{s}/{word}' for s in having)}"
        )
    if not having:
        names = [*known, *(name for names in known.values() for name in names)]
        raise ConfigError(unknown("suite or task", word, names))
    return [_subject(catalog, having[0], word)]


def _subject(catalog: Catalog, suite: str, name: str) -> Subject:
    return Subject(name, suite, partial(catalog.suite(suite).task, name))


def _in_folder(folder: Path, cache: Path) -> list[Subject]:
    """A task's folder, or a suite's: of our own format or MLAgentBench's. Raises ConfigError for
    neither."""
    from pytest_mlab.suites.foreign.reader import is_foreign, load_task_of, name_of
    from pytest_mlab.suites.loader import TASK_FILE
    from pytest_mlab.suites.suite import Suite, lacking

    if (folder / TASK_FILE).is_file():
        found, suite = {folder.name: folder}, folder.parent.name
    elif is_foreign(folder):
        found, suite = {name_of(folder): folder}, folder.parent.name
    else:
        found, suite = dict(Suite.scan(folder).folders), folder.name
    if not found:
        near = {folder.name: lacking(folder), **Suite.scan(folder).left_out}
        others = "".join(f"; {name} has {why}" for name, why in near.items() if why)
        raise ConfigError(
            f"{folder} is neither a task nor a suite: in it and one folder below there is neither a"
            f" {TASK_FILE} nor MLAgentBench's env/, scripts/research_problem.txt and"
            f" scripts/eval.py{others}"
        )
    return [
        Subject(name, suite, partial(load_task_of, place, suite, cache))
        for name, place in found.items()
    ]
