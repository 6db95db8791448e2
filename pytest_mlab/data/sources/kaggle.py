"""Competitions and data sets of Kaggle, through the kagglehub package and its cache."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_mlab.core.task import Source, Task
from pytest_mlab.data.sources.base import (
    Options,
    SourceKind,
    announce,
    place_file,
    prepare_command,
    require_packages,
    size_text,
)
from pytest_mlab.errors import DataUnavailable
from pytest_mlab.lib.digests import walk

TOKEN_PAGE = "https://www.kaggle.com/settings/api"
_REF = re.compile(r"competitions/[\w-]+|datasets/[\w-]+/[\w-]+(/versions/[1-9]\d*)?")


class Kaggle(SourceKind):
    """``ref``: ``competitions/<slug>`` or ``datasets/<owner>/<slug>``."""

    name = "kaggle"
    host = "www.kaggle.com"

    def problems(self, source: Source, folder: Path) -> Iterator[tuple[str, str]]:
        yield from super().problems(source, folder)
        if not _REF.fullmatch(source.ref):
            yield (
                "ref",
                f'"{source.ref}" found, must be "competitions/<slug>" or'
                ' "datasets/<owner>/<slug>[/versions/<n>]"',
            )
        if not source.consent:
            yield (
                "consent",
                "a source of kind kaggle needs the address of the rules that a user must have"
                " accepted",
            )

    def rules_word(self, source: Source, task: Task) -> str:
        """The slug of the competition or data set."""
        return source.ref.split("/versions/")[0].split("/")[-1]

    def fetch(self, source: Source, task: Task, into: Path, options: Options) -> None:
        """Put the files of a competition or data set into ``into``. Raises DataUnavailable.

        Files in kagglehub's cache need neither an account nor the network."""
        require_packages(task, options, "kagglehub")
        import kagglehub

        kind, _, handle = source.ref.partition("/")
        self.require_consent(source, task, options)
        announce(f"fetching {source.ref} from Kaggle ({size_text(source)})", options)
        download = (
            kagglehub.competition_download if kind == "competitions" else kagglehub.dataset_download
        )
        with _as_unavailable(source, task, options, self.rules_word(source, task)), _quiet(options):
            place = Path(download(handle))
        # The files stay in kagglehub's cache, where a later preparation finds them: not moved.
        for name, entry in walk(place):
            place_file(Path(entry.path), into / name)


@contextmanager
def _as_unavailable(source: Source, task: Task, options: Options, word: str) -> Iterator[None]:
    """Errors of kagglehub as DataUnavailable, with the way out."""
    from kagglehub import exceptions

    again = prepare_command(task, options, accept=word)
    where = f"data of {task.name}: {source.ref}"
    try:
        yield
    except exceptions.UnauthenticatedError:
        raise DataUnavailable(
            f"{where} needs a Kaggle account; create a token at {TOKEN_PAGE}",
            fix=f"KAGGLE_USERNAME=<name> KAGGLE_KEY=<key> {again}",
        ) from None
    except exceptions.KaggleApiHTTPError as error:
        # A Response of requests is false for a refusal, so it is compared with None.
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
