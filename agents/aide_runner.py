"""Runs the package aideml, as it is, inside the sandbox; not an agent itself.

Started in the workspace with aideml's own options (``agent.steps=8 …``). The files that its best
solution so far wrote are copied into the workspace whenever there is a new best one, so that they
are there whenever the time is over."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ABSENT = 69
"""The exit status that says: aideml is not here."""


class Outputs:
    """The files that a solution writes in aideml's own workspace: those in ``working`` and beside
    it."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.folder = folder
        self.target = target
        self.fresh: list[Path] = []

    def watch(self, execute: Any) -> Any:
        """``execute``, after which ``fresh`` are the files that it wrote."""

        def watched(*arguments: Any, **options: Any) -> Any:
            before = dict(self._seen())
            result = execute(*arguments, **options)
            self.fresh = [path for path, key in self._seen() if before.get(path) != key]
            return result

        return watched

    def _seen(self) -> Iterator[tuple[Path, tuple[int, int, int]]]:
        for top in self.folder.iterdir():
            if top.name != "input":
                for path in [top] if top.is_file() else top.rglob("*"):
                    if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
                        facts = path.stat()
                        yield path, (facts.st_size, facts.st_mtime_ns, facts.st_ino)

    def place(self) -> None:
        """Copy the fresh files to where the task wants them."""
        for path in self.fresh:
            name = path.relative_to(self.folder)
            place = self.target / (
                name.relative_to("working") if name.parts[0] == "working" else name
            )
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
            except OSError as error:
                say(f"{name} of the solution cannot be put into the workspace: {error.strerror}")


def main() -> None:
    """Solution after solution, until as many were tried as were asked for."""
    try:
        from aide.agent import Agent
        from aide.interpreter import Interpreter
        from aide.journal import Journal
        from aide.utils.config import load_cfg, load_task_desc, prep_agent_workspace, save_run
    except ImportError as error:
        say(f"aideml cannot be imported by {sys.executable}: {error}")
        sys.exit(ABSENT)
    outputs_in = Path.cwd()
    cfg = load_cfg()
    prep_agent_workspace(cfg)
    journal = Journal()
    agent = Agent(load_task_desc(cfg), cfg, journal)
    interpreter = Interpreter(cfg.workspace_dir, **dict(cfg.exec))
    outputs = Outputs(Path(cfg.workspace_dir), outputs_in)
    try:
        while len(journal) < cfg.agent.steps:
            agent.step(exec_callback=outputs.watch(interpreter.run))
            report(journal, outputs)
            save_run(cfg, journal)
    finally:
        if journal.get_best_node() is None:
            outputs.place()  # of a solution that was not judged any more
        interpreter.cleanup_session()


def report(journal: Any, outputs: Outputs) -> None:
    """Print the newest solution's result; when it is the best one, or there is no good one yet, its
    files count."""
    node, best = journal.nodes[-1], journal.get_best_node()
    if best is node or best is None:
        outputs.place()
    state = (
        "buggy"
        if node.is_buggy
        else f"metric {node.metric.value:g}" + (", the best" if best is node else "")
    )
    say(f"solution {len(journal)}: {state}: {' '.join(str(node.analysis).split())[:300]}")


def say(text: str) -> None:
    """A line for the trial's log, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
