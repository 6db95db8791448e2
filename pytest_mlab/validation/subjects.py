"""Which tasks the words of a command line mean."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pytest_mlab.core.names import unknown
from pytest_mlab.errors import ConfigError
from pytest_mlab.suites.catalog import Catalog
from pytest_mlab.validation.bench import Subject


def subjects(words: Sequence[str], catalog: Catalog, default: str) -> list[Subject]:
    """What ``words`` mean (suites, tasks, ``suite/task``, folders of tasks), each once; none: the suite ``default``.

    Raises ConfigError.
    """
    found = [subject for word in words or [default] for subject in _of(word, catalog)]
    return list({(subject.suite, subject.name): subject for subject in found}.values())


def _of(word: str, catalog: Catalog) -> list[Subject]:
    if word in catalog.suites():
        return [_subject(catalog, word, name) for name in catalog.task_names(word)]
    suite, slash, task = word.rpartition("/")
    if slash and suite in catalog.suites() and task in catalog.task_names(suite):
        return [_subject(catalog, suite, task)]
    folder = Path(word)
    if slash and folder.is_dir():
        return _in_folder(folder.resolve())
    known = {suite: catalog.task_names(suite) for suite in catalog.suites()}
    having = [suite for suite, names in known.items() if word in names]
    if len(having) > 1:
        raise ConfigError(f"{word} is a task of several suites: say {' or '.join(f'{s}/{word}' for s in having)}")
    if not having:
        names = [*known, *(name for names in known.values() for name in names)]
        raise ConfigError(unknown("suite or task", word, names))
    return [_subject(catalog, having[0], word)]


def _subject(catalog: Catalog, suite: str, name: str) -> Subject:
    return Subject(name, suite, partial(catalog.task, name, suite))


def _in_folder(folder: Path) -> list[Subject]:
    """A task's folder, or a suite's."""
    from pytest_mlab.suites.loader import TASK_FILE, load_task

    if (folder / TASK_FILE).is_file():
        return [Subject(folder.name, folder.parent.name, partial(load_task, folder, folder.parent.name))]
    names = sorted(child.parent.name for child in folder.glob(f"*/{TASK_FILE}"))
    if not names:
        raise ConfigError(f"{folder} is no task and no suite: there is no {TASK_FILE} in it or one folder below")
    return [Subject(name, folder.name, partial(load_task, folder / name, folder.name)) for name in names]
