"""Competitions and data sets of Kaggle, through the kagglehub package and its cache."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.sources.base import (
    Options,
    announce,
    place_file,
    prepare_command,
    require_consent,
    require_packages,
    rules_word,
    size_text,
)
from pytest_mlab.errors import DataUnavailable
from pytest_mlab.lib.digests import walk

TOKEN_PAGE = "https://www.kaggle.com/settings/api"


def fetch(source: Source, task: Task, into: Path, options: Options) -> None:
    """Put the files of a competition or data set into ``into``. Raises DataUnavailable.

    What kagglehub has in its cache is taken from there, without an account and without the network.
    """
    require_packages(task, options, "kagglehub")
    import kagglehub

    kind, _, handle = source.ref.partition("/")
    require_consent(source, task, options)
    announce(f"fetching {source.ref} from Kaggle ({size_text(source)})", options)
    download = (
        kagglehub.competition_download if kind == "competitions" else kagglehub.dataset_download
    )
    with _as_unavailable(source, task, options), _quiet(options):
        place = Path(download(handle))
    for name, entry in walk(place):
        place_file(Path(entry.path), into / name)


@contextmanager
def _as_unavailable(source: Source, task: Task, options: Options) -> Iterator[None]:
    """Errors of kagglehub as DataUnavailable, with the way out."""
    from kagglehub import exceptions

    again = prepare_command(task, options, accept=rules_word(source, task))
    where = f"data of {task.name}: {source.ref}"
    try:
        yield
    except exceptions.UnauthenticatedError:
        raise DataUnavailable(
            f"{where} needs a Kaggle account; create a token at {TOKEN_PAGE}",
            fix=f"KAGGLE_USERNAME=<name> KAGGLE_KEY=<key> {again}",
        ) from None
    except exceptions.KaggleApiHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if error.response is not None:
            error.response.close()  # kagglehub leaves it open
        if status in (401, 403):
            raise DataUnavailable(
                f"Kaggle refuses {source.ref} ({status}): accept the rules with your account at"
                f" {source.consent} and check the token ({TOKEN_PAGE})",
                fix=f"KAGGLE_USERNAME=<name> KAGGLE_KEY=<key> {again}",
            ) from None
        raise DataUnavailable(f"{where}: Kaggle answers {status}", fix=again) from None
    except (
        exceptions.DataCorruptionError,
        exceptions.CredentialError,
        ValueError,
        OSError,
    ) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataUnavailable(f"{where} could not be fetched: {reason}", fix=again) from None


@contextmanager
def _quiet(options: Options) -> Iterator[None]:
    """Keep kagglehub's own messages from the terminal unless progress is asked for."""
    logger = logging.getLogger("kagglehub")
    level = logger.level
    if not options.progress:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
