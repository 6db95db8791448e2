"""A task in MLAgentBench's own format → the same :class:`~pytest_mlab.core.task.Task` as any other.

The folder (``env/``, ``scripts/`` with research_problem.txt, eval.py and maybe read_only_files.txt,
prepare.py and requirements.txt) is never written to. What it says is written down once more as a
task folder of our own layout in the cache, which :mod:`pytest_mlab.suites.loader` then reads: the
rest of the engine knows one kind of task.

Files of ``env/`` that read_only_files.txt names are data: they come with what prepare.py makes. All
others are starter files."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_mlab.core.task import FOREIGN, Direction, Metric, Source, Submission, Task, Variant
from pytest_mlab.errors import SuiteError
from pytest_mlab.lib.locate import default_cache_dir, writable_cache
from pytest_mlab.suites.folder import signature
from pytest_mlab.suites.foreign import data as foreign_data
from pytest_mlab.suites.foreign.facts import OTHER, Facts, read_facts
from pytest_mlab.suites.foreign.prompts import rules_of
from pytest_mlab.suites.loader import TASK_FILE, load_task

_FORMAT = "1"
_HASHED = 1 << 20
_STAMP = ".made-from"

_EVALUATOR = """\
from pytest_mlab.evaluation.mlagentbench import evaluate

__all__ = ["evaluate"]
"""
_REFERENCE = """\
# The format knows no reference solution: this is the starter code once more.
[[action]]
name = "Execute Script"
[action.args]
script_name = {script}

[[action]]
name = "Final Answer"
[action.args]
final_answer = "the starter code as it is (the format has no reference solution)"
"""


def is_foreign(folder: Path) -> bool:
    """True for a folder in MLAgentBench's format that can be scored."""
    return not lacks(folder)


def lacks(folder: Path) -> tuple[str, ...]:
    """What ``folder`` lacks to be a task in MLAgentBench's format that can be scored."""
    there = {
        "env/": (folder / "env").is_dir(),
        "scripts/research_problem.txt": (folder / "scripts" / "research_problem.txt").is_file(),
        "scripts/eval.py": (folder / "scripts" / "eval.py").is_file(),
    }
    return tuple(part for part, is_there in there.items() if not is_there)


def name_of(folder: Path) -> str:
    """The task's name: the folder's, in lower-case letters, digits and '-'."""
    return re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")[:60].strip("-") or "task"


def origin_of(task: Task) -> Path | None:
    """The folder in MLAgentBench's format that a task was made from; None for a task of our own
    format."""
    sources = [source for variant in task.variants.values() for source in variant.sources]
    return next((Path(source.ref) for source in sources if source.kind == FOREIGN), None)


def load_foreign(folder: Path, suite: str, cache: Path) -> Task:
    """The task in ``folder``, as a member of ``suite``; its counterpart in our layout is kept below
    ``cache``.

    Raises SuiteError that says what is missing or wrong, and how to fix it.
    """
    from filelock import FileLock

    folder = folder.resolve()
    home = (
        cache / "foreign" / f"{suite}-{hashlib.sha256(str(folder.parent).encode()).hexdigest()[:8]}"
    )
    made = home / name_of(folder)
    try:
        stamp = _stamp(folder)
        home.mkdir(parents=True, exist_ok=True)
        # xdist's workers read the same suite at the same time; one writes, the others find it made.
        with FileLock(home / f".{made.name}.lock"):
            if not _is_made_from(made, stamp):
                _make(folder, made, stamp)
        return load_task(made, suite)
    except OSError as error:
        raise SuiteError(f"{folder}: cannot be read as a task: {error}") from None


def load_task_of(folder: Path, suite: str, cache: Path | None) -> Task:
    """The task in ``folder``, of our own format or MLAgentBench's. Raises SuiteError when it is
    broken."""
    return (
        load_task(folder, suite)
        if (folder / TASK_FILE).is_file()
        # Not looked for before: a task of our own format needs no cache to be read.
        else load_foreign(folder, suite, writable_cache((cache or default_cache_dir()).absolute()))
    )


def load_for_plan(folder: Path, suite: str, cache: Path | None) -> Task:
    """The same; but a folder in MLAgentBench's format that cannot be read comes as a task with a
    ``fault``, which is planned, so that nobody overlooks it, and never run."""
    try:
        return load_task_of(folder, suite, cache)
    except SuiteError as error:
        if (folder / TASK_FILE).is_file():
            raise
        return _stand_in(folder.resolve(), suite, str(error))


def _stand_in(folder: Path, suite: str, fault: str) -> Task:
    try:
        digest = _stamp(folder)
    except OSError:
        digest = hashlib.sha256(str(folder).encode()).hexdigest()
    return Task(
        name=name_of(folder),
        suite=suite,
        version="1",
        summary="",
        modality=OTHER,
        folder=folder,
        description="",
        metric=Metric("score", Direction.MAXIMIZE),
        submission=Submission("directory", "output"),
        variants={"mini": Variant("mini", (Source(FOREIGN, str(folder), digest),))},
        digest=digest,
        fault=fault,
    )


def _is_made_from(made: Path, stamp: str) -> bool:
    try:
        return (made / _STAMP).read_text(encoding="utf-8") == stamp
    except FileNotFoundError:
        return False


def _stamp(folder: Path) -> str:
    """Changes when the folder does. Of large files only size and time are looked at."""
    # The code that writes the folder counts too: an upgrade makes the folders anew.
    total = hashlib.sha256(_FORMAT.encode() + Path(foreign_data.__file__).read_bytes())
    total.update(Path(__file__).read_bytes() + str(folder).encode())
    for name, size, mtime, _ in signature(folder):
        content = (folder / name).read_bytes() if size <= _HASHED else f"{size} {mtime}".encode()
        # The lengths keep name and content apart: otherwise two different folders could hash alike.
        total.update(f"{len(name)} {name} {len(content)} ".encode() + content)
    return total.hexdigest()


def _make(folder: Path, made: Path, stamp: str) -> None:
    """Write the task folder and put it in place by one rename."""
    facts = read_facts(folder)
    patterns = read_only_patterns(folder)
    # Beside the target, since a rename works within one file system only.
    with tempfile.TemporaryDirectory(prefix=".tmp-", dir=made.parent) as scratch:
        new = Path(scratch) / "new"
        _copy_starter(folder / "env", new / "env", patterns, facts.starter_script)
        texts = {
            "task.toml": _task_toml(folder, facts, patterns, stamp),
            "description.md": _description(folder, facts),
            "data.py": Path(foreign_data.__file__).read_text(encoding="utf-8"),
            "evaluator.py": _EVALUATOR,
            "reference/actions.toml": _REFERENCE.format(script=_toml(facts.starter_script)),
            _STAMP: stamp,
        }
        for name, text in texts.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_text(text, encoding="utf-8")
        # A folder that is not empty cannot be renamed over. A kill between the two renames leaves
        # none, and the next reader makes it again.
        if made.exists():
            made.replace(Path(scratch) / "old")
        new.replace(made)


def read_only_patterns(folder: Path) -> tuple[str, ...]:
    """The globs of scripts/read_only_files.txt, relative to env/; none without that file."""
    file = folder / "scripts" / "read_only_files.txt"
    if not file.is_file():
        return ()
    found = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        pattern = line.strip().removeprefix("./")
        if not pattern or pattern == ".":
            continue
        # A benchmark may come from elsewhere: its patterns must not name files outside env/.
        if pattern.startswith("/") or ".." in pattern.split("/") or "\\" in pattern:
            raise SuiteError(f"{file}: {line.strip()!r} found, must be a glob relative to env/")
        found.append(pattern)
    return tuple(dict.fromkeys(found))


def _copy_starter(env: Path, target: Path, patterns: tuple[str, ...], script: str) -> None:
    def data_in(place: str, names: list[str]) -> set[str]:
        skipped = set()
        for name in names:
            path = (Path(place) / name).relative_to(env).as_posix()
            # The starter script stays a starter file even where a broad glob such as * names it.
            is_data = path != script and any(
                fnmatch.fnmatchcase(path, pattern) for pattern in patterns
            )
            if name == "__pycache__" or (is_data and not (Path(place) / name).is_dir()):
                skipped.add(name)
        return skipped

    shutil.copytree(env, target, symlinks=True, ignore=data_in)


def _description(folder: Path, facts: Facts) -> str:
    """The problem in the format's own words, and what it leaves out: metric and direction."""
    problem = (
        (folder / "scripts" / "research_problem.txt")
        .read_text(encoding="utf-8", errors="replace")
        .strip()
    )
    better = "higher is better" if facts.direction == "maximize" else "lower is better"
    return f"{problem}\n\nYour final files are scored by this metric: {facts.metric}; {better}.\n"


def _task_toml(folder: Path, facts: Facts, patterns: tuple[str, ...], stamp: str) -> str:
    csv = "submission.csv" in (folder / "scripts" / "eval.py").read_text(
        encoding="utf-8", errors="replace"
    )
    tables: dict[str, Mapping[str, Any]] = {
        "task": {
            "name": name_of(folder),
            "version": "1",
            "summary": f"{facts.metric} in a task of MLAgentBench's format"[:200],
            "modality": facts.modality,
            "starter_script": facts.starter_script,
        },
        "metric": {"name": facts.metric, "direction": facts.direction},
        "submission": (
            {"kind": "csv", "path": "submission.csv"}
            if csv
            else {"kind": "directory", "path": "output"}
        ),
        "resources": facts.resources,
    }
    if facts.threshold is not None:
        tables["threshold"] = {"absolute": facts.threshold}
    text = f"# Made from {json.dumps(str(folder))}: change that, not this.\n"
    # Whether an answer is among the data is for the task's own prepare.py to see to.
    text += _pairs(
        {"read_only": list(patterns), "shared": ["*"], "requirements": list(facts.requirements)}
    )
    for name, table in tables.items():
        text += f"\n[{name}]\n{_pairs(table)}"
    source = {"kind": FOREIGN, "ref": str(folder), "sha256": stamp, "consent": rules_of(folder)}
    text += f"\n[[data.mini.source]]\n{_pairs(source)}"
    if facts.baseline is not None:
        measured = facts.baseline
        text += "\n[data.mini.baseline]\n" + _pairs(
            {
                "measured": measured.measured,
                "scores": list(measured.scores),
                "mean": measured.mean,
                "std": measured.std,
                "machine": measured.machine,
            }
        )
    return text


def _pairs(table: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())


def _toml(value: Any) -> str:
    """A string, number, or list of them, as TOML writes it (JSON does alike)."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
