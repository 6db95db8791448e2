"""Files of a data set or model on the Hugging Face hub, at one revision, through huggingface_hub
and its cache."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
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
    unavailable,
)
from pytest_mlab.data.sources.download import unreached
from pytest_mlab.errors import DataUnavailable, SuiteError
from pytest_mlab.lib.digests import sha256_of

REF = re.compile(
    r"(datasets|models)/([\w.-]+(?:/[\w.-]+)?)@([0-9a-f]{40})(?::([^,:\s]+(?:,[^,:\s]+)*))?"
)
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Reference:
    """``datasets/<owner>/<name>@<commit>:<path>,<path>`` taken apart; a path may be a pattern."""

    kind: str
    repository: str
    revision: str
    paths: tuple[str, ...] = ()  # none means every file

    @property
    def exact(self) -> bool:
        """Every path names one file."""
        return bool(self.paths) and not any(_WILD.search(path) for path in self.paths)


def parse_ref(ref: str) -> Reference:
    """Raises ValueError."""
    found = REF.fullmatch(ref)
    if not found:
        raise ValueError(ref)
    paths = tuple(found[4].split(",")) if found[4] else ()
    return Reference(found[1].removesuffix("s"), found[2], found[3], paths)


class HuggingFace(SourceKind):
    """``ref``: ``datasets/<owner>/<name>@<commit>:<path>,<path>``, or ``models/...``."""

    name = "huggingface"
    host = "huggingface.co"

    def problems(self, source: Source, folder: Path) -> Iterator[tuple[str, str]]:
        yield from super().problems(source, folder)
        found = REF.fullmatch(source.ref)
        if not found:
            yield (
                "ref",
                f'"{source.ref}" found, must be "datasets/<owner>/<name>@<commit>:<path>,<path>" or'
                ' "models/..." with the 40 digits of a commit and paths, patterns or none',
            )
        elif source.sha256 and not re.fullmatch(r"[^,*?\[]+", found[4] or ""):
            yield "sha256", "only a source of kind huggingface that names one file has a sha256"

    def fetch(self, source: Source, task: Task, into: Path, options: Options) -> None:
        """Put the files into ``into`` under their paths in the repository. Raises DataUnavailable,
        SuiteError.

        When the hub's cache has every file that the source names, no connection is made."""
        require_packages(task, options, "huggingface_hub", "httpx")
        self.require_consent(source, task, options)
        reference = parse_ref(source.ref)
        files = _cached(reference) or _downloaded(reference, source, task, options)
        _check(files, reference, source, task, options)
        for name, file in files.items():
            place_file(file, into / name)


def _cached(reference: Reference) -> dict[str, Path]:
    """All files of an exact reference when the hub's cache has all of them; else none."""
    from huggingface_hub import try_to_load_from_cache

    if not reference.exact:
        return {}
    files = {}
    for path in reference.paths:
        found = try_to_load_from_cache(
            reference.repository, path, revision=reference.revision, repo_type=reference.kind
        )
        # The hub's cache answers None for an unknown file, and a marker for one known not to exist.
        if not isinstance(found, str):
            return {}
        # The hub's cache has relative links to blobs; a hard link of one would dangle elsewhere.
        files[path] = Path(found).resolve()
    return files


def _downloaded(
    reference: Reference, source: Source, task: Task, options: Options
) -> dict[str, Path]:
    """The files that the reference names, from the hub. An interrupted download goes on where it
    was cut."""
    from huggingface_hub import constants, snapshot_download

    # Without a server, the hub's own client retries for half a minute: fail at once instead.
    if not constants.HF_HUB_OFFLINE and (reason := unreached(constants.ENDPOINT)):
        raise unavailable(f"{source.ref} could not be fetched: {reason}", task, options)
    announce(f"fetching {source.ref} from Hugging Face ({size_text(source)})", options)
    with _as_unavailable(source, task, options), _bars(options):
        place = Path(
            snapshot_download(
                reference.repository,
                repo_type=reference.kind,
                revision=reference.revision,
                allow_patterns=list(reference.paths) or None,
            )
        )
    names = {
        path.relative_to(place).as_posix(): path for path in place.rglob("*") if path.is_file()
    }
    patterns = reference.paths or ("*",)
    return {
        name: path.resolve()
        for name, path in sorted(names.items())
        if any(fnmatchcase(name, p) for p in patterns)
    }


def _check(
    files: dict[str, Path], reference: Reference, source: Source, task: Task, options: Options
) -> None:
    """Every path of the reference brought a file, and the one with a sha256 is the right one."""
    for path in reference.paths or ("*",):
        if not any(fnmatchcase(name, path) for name in files):
            raise SuiteError(
                f"{task.name}: {source.ref}: the repository has no file {path!r} at this revision"
            )
    for name, file in files.items() if source.sha256 else ():
        if (found := sha256_of(file)) != source.sha256:
            raise DataUnavailable(
                f"data of {task.name}: {name} in the Hugging Face cache is not the expected file:"
                f" sha256 {found}, expected {source.sha256}; remove {file}",
                fix=prepare_command(task, options),
            )


@contextmanager
def _as_unavailable(source: Source, task: Task, options: Options) -> Iterator[None]:
    """Errors of the hub as DataUnavailable, with the way out."""
    from huggingface_hub import errors

    where = f"data of {task.name}: {source.ref}"
    again = prepare_command(task, options, accept=task.name if source.consent else "")
    try:
        yield
    except errors.RepositoryNotFoundError:  # also raised for gated and private ones
        raise DataUnavailable(
            f"{where}: Hugging Face has no such repository, or shows it only to accounts that"
            " accepted its terms",
            fix=f"HF_TOKEN=<token> {again}",
        ) from None
    except errors.RevisionNotFoundError:
        raise SuiteError(f"{where}: Hugging Face has no such revision") from None
    except (errors.HTTPError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataUnavailable(f"{where} could not be fetched: {reason}", fix=again) from None


@contextmanager
def _bars(options: Options) -> Iterator[None]:
    """Progress bars on a terminal where progress is asked for, and nothing elsewhere."""
    from huggingface_hub.utils import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    quiet = not (options.progress and sys.stderr.isatty())
    # The bars are global to the process: only what is changed here is changed back.
    restore = quiet and not are_progress_bars_disabled()
    if quiet:
        logger.setLevel(logging.ERROR)
    if restore:
        disable_progress_bars()
    try:
        yield
    finally:
        logger.setLevel(level)
        if restore:
            enable_progress_bars()
