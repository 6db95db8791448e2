"""The manifest of prepared data: every file with size, time and sha256, and one digest of all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_mlab.errors import SuiteError
from pytest_mlab.lib.digests import digest_of, sha256_of, walk

MANIFEST_FORMAT = 1


@dataclass(frozen=True)
class FileFact:
    """A prepared file."""

    sha256: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Manifest:
    """The files of ``public/`` and ``answers/`` by relative path."""

    public: Mapping[str, FileFact]
    answers: Mapping[str, FileFact]

    @property
    def digest(self) -> str:
        """One sha256 over paths and contents of all files, the same wherever they were prepared."""
        parts = {f"public/{name}": fact.sha256 for name, fact in self.public.items()}
        return digest_of(
            parts | {f"answers/{name}": fact.sha256 for name, fact in self.answers.items()}
        )


def take(folder: Path) -> Manifest:
    """The manifest of the files below ``folder``. Raises SuiteError for anything but regular files
    and folders."""
    return Manifest(_facts(folder / "public"), _facts(folder / "answers"))


def write(manifest: Manifest, file: Path) -> None:
    """Write the manifest to ``file`` as JSON."""
    content = {"format": MANIFEST_FORMAT, "digest": manifest.digest, **asdict(manifest)}
    file.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read(file: Path) -> Manifest | None:
    """The manifest that :func:`write` stored; None when the file is missing, damaged or of another
    format."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["format"] != MANIFEST_FORMAT:
            return None
        return Manifest(_from_json(content["public"]), _from_json(content["answers"]))
    # A manifest that cannot be read means data that are not ready: they are prepared again.
    except (OSError, ValueError, KeyError, TypeError):
        return None


def holds(manifest: Manifest, folder: Path, *, content: bool = False) -> bool:
    """True while exactly the files of the manifest are below ``folder``, with size and time
    unchanged; ``content`` reads and compares them too."""
    for side, facts in (("public", manifest.public), ("answers", manifest.answers)):
        place = folder / side
        if not place.is_dir():
            return False
        found = dict(walk(place))
        # An extra file counts as well: all that lies below public/ is shown to the agent.
        if found.keys() != facts.keys() or not all(
            _same(found[name], facts[name]) for name in facts
        ):
            return False
        if content and any(
            sha256_of(Path(found[name].path)) != facts[name].sha256 for name in facts
        ):
            return False
    return True


def _same(entry: os.DirEntry[str], fact: FileFact) -> bool:
    stat = entry.stat(follow_symlinks=False)
    return (stat.st_size, stat.st_mtime_ns) == (fact.size, fact.mtime_ns)


def _facts(folder: Path) -> dict[str, FileFact]:
    facts = {}
    for name, entry in walk(folder):
        # A link could lead an agent out of public/, and its target could change unseen.
        if not entry.is_file(follow_symlinks=False):
            raise SuiteError(
                f"data.py wrote {folder.name}/{name}, which is not a regular file; write files only"
            )
        stat = entry.stat(follow_symlinks=False)
        facts[name] = FileFact(sha256_of(Path(entry.path)), stat.st_size, stat.st_mtime_ns)
    return facts


def _from_json(content: Mapping[str, Mapping[str, Any]]) -> dict[str, FileFact]:
    return {
        name: FileFact(fact["sha256"], fact["size"], fact["mtime_ns"])
        for name, fact in content.items()
    }
