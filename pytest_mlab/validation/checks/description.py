"""Check: the description tells an agent of everything it finds and everything it must hand in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from pytest_mlab.suites.folder import files_of
from pytest_mlab.suites.foreign.reader import origin_of
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.finding import Finding, fail, not_applicable, ok

_ALL_READ_ONLY = "all of them are read-only"


class Description:
    """A file counts as named by its path, its name, or a folder above it (``images/``)."""

    name = "description"
    about = "the description names all files, read-only ones, and columns"

    def run(self, bench: Bench) -> Finding:
        """Compare description.md with the workspace and with task.toml."""
        task = bench.task
        if origin_of(task):
            return not_applicable("the text is research_problem.txt as it was published")
        text = _spelled_out(task.description)
        files = [*files_of(task.folder / "env"), *bench.prepared.files]
        protected = [
            name
            for name in files
            if any(fnmatchcase(name, pattern.removeprefix("./")) for pattern in task.read_only)
        ]
        faults = [
            *(f"{name} is not named" for name in _not_named(files, text)),
            *(
                f"{name} is not said to be read-only"
                for name in _not_named(protected, _about_read_only(task.description))
            ),
        ]
        if task.submission.path not in text:
            faults.append(f"the submission {task.submission.path} is not named")
        faults += [
            f"the column {column} of the submission is not named"
            for column in task.submission.columns
            if column not in text
        ]
        if faults:
            more = f" (and {len(faults) - 3} more)" if len(faults) > 3 else ""
            return fail("; ".join(faults[:3]) + more, faults=faults)
        return ok(f"{len(files)} files, {len(protected)} of them read-only, and the submission")


def _spelled_out(description: str) -> str:
    """The text on one line, with lists in braces written out: ``{a,b}.csv`` as ``a.csv b.csv``."""
    text = " ".join(description.split())
    for found in re.finditer(r"(\S*)\{([\w,]+)\}(\S*)", text):
        text += "".join(f" {found[1]}{part}{found[3]}" for part in found[2].split(","))
    return text


def _about_read_only(description: str) -> str:
    """The paragraphs and list items that say "read-only"; all of the text where one says that
    everything is."""
    parts = re.split(r"\n[-*] |\n\s*\n", description)
    about = [part for part in parts if "read-only" in part.lower()]
    if any(_ALL_READ_ONLY in " ".join(part.lower().split()) for part in about):
        return _spelled_out(description)
    return _spelled_out("\n\n".join(about))


def _not_named(files: Iterable[str], text: str) -> Iterator[str]:
    for path in files:
        parts = path.split("/")
        folders = ["/".join(parts[:end]) + "/" for end in range(1, len(parts))]
        if not any(place in text for place in (path, parts[-1], *folders)):
            yield path
