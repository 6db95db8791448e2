"""A folder in MLAgentBench's format: copies of its env/ and scripts/, in which its prepare.py may
do as it likes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from pytest_mlab.core.task import FOREIGN, Source, Task
from pytest_mlab.data.sources.base import Options, SourceKind
from pytest_mlab.errors import SuiteError
from pytest_mlab.lib.digests import sha256_of


class MLAgentBench(SourceKind):
    """``ref``: the folder that the task was read from."""

    name = FOREIGN
    downloads = False

    def problems(self, source: Source, folder: Path) -> Iterator[tuple[str, str]]:
        yield from ()  # the reader of the format has written the source itself

    def description(self, source: Source) -> str:
        script = Path(source.ref) / "scripts" / "prepare.py"
        return f"its prepare.py asks you before it goes on: {script}"

    def fetch(self, source: Source, task: Task, into: Path, options: Options) -> None:
        """Copy the folder; add ``starter.json``, the sha256 of the task's starter files, and a file
        ``agreed`` when the user accepts what prepare.py asks.

        Raises DataUnavailable when it asks and the user has not accepted, SuiteError when the
        folder is gone."""
        self.require_consent(source, task, options)
        origin = Path(source.ref)
        for side in ("env", "scripts"):
            if not (origin / side).is_dir():
                raise SuiteError(
                    f"the task {task.name} was read from {origin}, where the folder {side}/ is"
                    " missing now"
                )
            # A copy, as prepare.py writes beside itself; links are followed, so that it cannot
            # write through them to the original.
            shutil.copytree(
                origin / side,
                into / side,
                ignore=shutil.ignore_patterns("__pycache__"),
                ignore_dangling_symlinks=True,
            )
        env = task.folder / "env"
        starter = {
            p.relative_to(env).as_posix(): sha256_of(p)
            for p in sorted(env.rglob("*"))
            if p.is_file()
        }
        (into / "starter.json").write_text(json.dumps(starter), encoding="utf-8")
        if self.rules_word(source, task) in options.consent:
            (into / "agreed").touch()
