"""data.py of a task in MLAgentBench's format: run its prepare.py in a copy, and tell data from
answers.

It becomes part of a task folder, and is run from there alone: standard library only. ``raw`` holds
``env/``, ``scripts/``, ``starter.json`` (sha256 of the starter files by path) and, where the user
has agreed, ``agreed``."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# In prepare.py's process: it dies with this one, and is otherwise run as `python prepare.py` would
# run it.
_RUN = """
import ctypes, runpy, sys
ctypes.CDLL(None).prctl(1, 9)
sys.argv = ["prepare.py"]
sys.path[0] = "."
runpy.run_path("prepare.py", run_name="__main__")
"""
_ANSWER = "y\n" * 100


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """What env/ holds beyond the starter files is public; scripts/ and all of env/ are what eval.py
    may read."""
    del variant  # there is one
    env, scripts = raw / "env", raw / "scripts"
    # MLAgentBench writes the file `prepared` after prepare.py ran: its data lie in env/ already.
    if (scripts / "prepare.py").is_file() and not (scripts / "prepared").exists():
        run_prepare(scripts, agreed=(raw / "agreed").is_file())
    starter = json.loads((raw / "starter.json").read_text(encoding="utf-8"))
    for path, file in files_of(env):
        put(file, answers / "env" / path)
        if path not in starter:
            put(file, public / path)
        elif digest(file) != starter[path]:
            sys.exit(
                f"prepare.py changes env/{path}, which an agent may change too; "
                "where it is data, add a line with its name to scripts/read_only_files.txt"
            )
    for path, file in files_of(scripts):
        put(file, answers / "scripts" / path)


def run_prepare(scripts: Path, *, agreed: bool) -> None:
    """Run prepare.py in ``scripts``. A prompt gets "y" where the user has ``agreed``, and nothing
    otherwise.

    Leaves with prepare.py's own output and status when it fails.
    """
    log = scripts.parent / "prepare.log"
    # A file, not a pipe: what prepare.py leaves running would hold a pipe open, and its reader
    # would wait.
    with log.open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-u", "-B", "-c", _RUN],
            cwd=scripts,
            # An empty input ends at once: a prompt raises EOFError and never waits.
            input=_ANSWER.encode() if agreed else b"",
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    said = log.read_text(encoding="utf-8", errors="replace")[-4000:]
    if done.returncode == 0:
        return
    if not agreed and "EOFError" in said:
        asked = said.split("Traceback")[0].strip().splitlines()
        sys.exit(
            f"prepare.py waits at a prompt: {asked[-1][:500] if asked else ''}\n"
            "nobody answers it until you agree: mlab prepare ... --accept-rules <task>, "
            "in a run --mlab-accept-rules=<task>"
        )
    sys.stderr.write(said)
    if "ModuleNotFoundError" not in said:
        sys.stderr.write(f"\nprepare.py ended with status {done.returncode}")
    sys.stderr.flush()
    sys.exit(1)


def files_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """Relative paths and files below ``folder``; links are followed to files, what is no file is
    left out."""
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            file = Path(place, name)
            if file.is_file():
                yield file.relative_to(folder).as_posix(), file


def put(file: Path, target: Path) -> None:
    """Make the file appear at ``target``, without a copy where the file system allows it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        # On Linux os.link makes another symbolic link of one, and that would point elsewhere.
        os.link(file.resolve(), target)
    except OSError:
        shutil.copyfile(file, target)


def digest(file: Path) -> str:
    """sha256 of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
