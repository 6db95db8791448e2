"""Agents as files: loading a file, reporting its faults by file and line, and its digest.

A file is loaded as a module of a package made for its folder, so that ``from .helpers import …``
finds the files beside it (and the built-in agents behind them), ``import json`` finds what it
always finds, and two folders never get in each other's way."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import cast

from pytest_mlab.agentfiles.settings import fault
from pytest_mlab.core.agent_api import Agent
from pytest_mlab.errors import AgentLoadError

NEEDS_MODEL = "needs_model = True  # or False, when it never calls a model"


def load_file(path: Path, fallbacks: Sequence[Path] = ()) -> ModuleType:
    """The module in ``path``; relative imports look beside it, then into ``fallbacks``.

    Raises AgentLoadError naming the file and line of a syntax error or of whatever its import
    raised."""
    if not path.is_file():
        raise AgentLoadError(f"{path}: no such file")
    package = _package(path.parent, fallbacks)
    # Finders remember a folder's listing by its time of change, and could miss a file that was just
    # written.
    importlib.invalidate_caches()
    try:
        return importlib.import_module(f"{package}.{path.stem}")
    # A file that ends with sys.exit() must not end the session.
    except (Exception, SystemExit) as error:
        raise AgentLoadError(_import_problem(error, path)) from error


def import_named(module: str) -> ModuleType:
    """The module that is importable as ``module``. Raises AgentLoadError."""
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise AgentLoadError(_import_problem(error, Path(module))) from error


def pick_class(module: ModuleType, name: str = "") -> type[Agent]:
    """The agent class of a module: ``name``, else what ``AGENT`` names, else the only class with a
    method ``run`` that is defined there. Raises AgentLoadError when there is none or more than one,
    and when it is not an agent."""
    file = Path(module.__file__ or module.__name__)
    found = getattr(module, name or "AGENT", None)
    if found is None and name:
        candidates = ", ".join(_classes_with_run(module)) or "none"
        raise AgentLoadError(
            f"{file}: no class {name!r} there; classes with a method run: {candidates}"
        )
    if found is None:
        candidates_found = _classes_with_run(module)
        if not candidates_found:
            raise AgentLoadError(
                f"{file}: no class with a method run(self, env), so there is no agent in this file"
            )
        if len(candidates_found) > 1:
            raise AgentLoadError(
                f"{file}: more than one agent: {', '.join(sorted(candidates_found))}; choose by"
                f" {file.name}:{min(candidates_found)} or by a line AGENT = {min(candidates_found)}"
            )
        found = next(iter(candidates_found.values()))
    if not inspect.isclass(found):
        raise AgentLoadError(
            f"{file}: {name or 'AGENT'} is {type(found).__name__} {found!r:.60}, not a class"
        )
    _check(found, file)
    return cast("type[Agent]", found)


def is_agent_file(path: Path) -> bool:
    """True when the file seems to define an agent, judged without running it: a class with ``run``
    or ``needs_model``, one derived from a file beside it, or ``AGENT``. A file that does not parse
    counts as one, so that asking for it shows the syntax error."""
    if path.name.startswith(("_", ".", "test_")) or path.name == "conftest.py":
        return False
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return True
    beside = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    }
    return any(_makes_agent(node, beside) for node in tree.body)


def agent_digest(path: Path, fallbacks: Sequence[Path] = ()) -> str:
    """sha256 over an agent's files: its own, those beside it that it imports (and that those
    import), and files named after one of them with another ending, such as a prompt."""
    digest = hashlib.sha256()
    for file in sorted(
        _closure(path, [path.parent, *fallbacks]), key=lambda file: (file.name, str(file))
    ):
        for part in (file, *_companions(file)):
            content = hashlib.sha256(part.read_bytes()).hexdigest()
            digest.update(f"{part.name}\0{content}\n".encode())
    return digest.hexdigest()


def content_digest(files: Mapping[str, Path]) -> str:
    """sha256 over files and folders by name: contents, names below a folder, executable bits."""
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        found = (
            sorted(file for file in path.rglob("*") if "__pycache__" not in file.parts)
            if path.is_dir()
            else [path]
        )
        for file in found:
            if file.is_file():
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                mode = "x" if file.stat().st_mode & 0o111 else "-"
                digest.update(f"{name}\0{file.relative_to(path)}\0{mode}{content}\n".encode())
    return digest.hexdigest()


def _package(folder: Path, fallbacks: Sequence[Path]) -> str:
    places = list(dict.fromkeys(str(place) for place in (folder, *fallbacks)))
    name = f"mlab_agents_{hashlib.sha256('|'.join(places).encode()).hexdigest()[:10]}"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = places
        sys.modules[name] = package
    return name


def _import_problem(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.filename or path}:{error.lineno or 1}: syntax error: {error.msg}"
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen") and Path(frame.filename) != Path(__file__)
        if "importlib" not in Path(frame.filename).parts
    ]
    where = f"{own[-1].filename}:{own[-1].lineno}" if own else str(path)
    message = f"{where}: loading it raised {type(error).__name__}: {error}"
    if (
        isinstance(error, ModuleNotFoundError)
        and error.name
        and (path.parent / f"{error.name}.py").is_file()
    ):
        message += f"; a file beside the agent is imported by: from .{error.name} import …"
    return message


def _classes_with_run(module: ModuleType) -> dict[str, type]:
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and (callable(getattr(value, "run", None)) or "run" in vars(value))
        if not name.startswith("_")
    }


def _check(found: type, file: Path) -> None:
    where = f"{file}:{_line_of(found)}: class {found.__name__}"
    run = getattr(found, "run", None)
    if not callable(run):
        has = "no method" if run is None else f"{type(run).__name__} {run!r:.60} in place of"
        raise AgentLoadError(f"{where} has {has} run(self, env)")
    if inspect.isgeneratorfunction(run) or inspect.isasyncgenfunction(run):
        raise AgentLoadError(
            f"{file}:{_line_of(run)}: run of {found.__name__} has a yield, so calling it runs"
            " nothing; take it out (async def run is fine)"
        )
    try:
        inspect.signature(run).bind(None, None)
    except TypeError as error:
        raise AgentLoadError(f"{where}: run must be callable as run(self, env): {error}") from None
    if not isinstance(getattr(found, "needs_model", None), bool):
        raise AgentLoadError(
            f"{where} does not say whether it calls a model; add this line to the class:\n   "
            f" {NEEDS_MODEL}"
        )
    if problem := fault(found) or _fault_of_extras(found):
        raise AgentLoadError(f"{where}: {problem}")
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise AgentLoadError(
            f"{where}: its constructor must work without arguments ({error}); give every parameter"
            " a default"
        ) from None


def _fault_of_extras(found: type) -> str:
    """What is wrong with the attributes that an agent may have; '' when nothing is."""
    interactive = getattr(found, "interactive", False)
    if not isinstance(interactive, bool):
        return f"its interactive is {interactive!r:.80}; write True or False"
    requirements = getattr(found, "requirements", ())
    if not isinstance(requirements, (tuple, list)):
        return (
            f"its requirements are {requirements!r:.80}; write a tuple, such as requirements ="
            ' ("langchain>=1",)'
        )
    return next(filter(None, map(_fault_of_requirement, requirements)), "")


def _fault_of_requirement(text: object) -> str:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(str(text))
    except InvalidRequirement as error:
        return (
            f"its requirements hold {text!r:.80}, which pip does not accept:"
            f" {str(error).splitlines()[0]}"
        )
    return ""


def _line_of(found: type | Callable[..., object]) -> int:
    try:
        return inspect.getsourcelines(found)[1]
    except (OSError, TypeError):
        return 1


def _makes_agent(node: ast.stmt, beside: set[str]) -> bool:
    if isinstance(node, ast.ClassDef):
        names = {
            part.name
            for part in node.body
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        return bool(
            "run" in names
            or any("needs_model" in _assigned(part) for part in node.body)
            or any(isinstance(base, ast.Name) and base.id in beside for base in node.bases)
        )
    return "AGENT" in _assigned(node)


def _assigned(node: ast.stmt) -> set[str]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _closure(path: Path, places: Sequence[Path]) -> set[Path]:
    todo, seen = [path], set[Path]()
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo += _imports_beside(file, places)
    return seen


def _imports_beside(file: Path, places: Sequence[Path]) -> Iterator[Path]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            stems = [node.module] if node.module else [alias.name for alias in node.names]
            for stem in stems:
                beside = (place / f"{stem}.py" for place in places)
                yield from [candidate for candidate in beside if candidate.is_file()][:1]


def _companions(file: Path) -> list[Path]:
    names = (f"{file.stem}_", f"{file.stem}.")
    return sorted(
        other
        for other in file.parent.iterdir()
        if other.name.startswith(names) and other.suffix not in (".py", ".pyc") and other.is_file()
    )
