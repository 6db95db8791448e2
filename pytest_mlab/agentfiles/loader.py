"""From an agent's reference to its class.

A reference is a name (``agents/<name>.py`` under the user's rootdir, then a built-in agent, then an
entry point of the group ``pytest_mlab.agents``), a file (``path/to/file.py`` or
``path/to/file.py:Class``, relative to the working directory or to the rootdir), or
``package.module:Class`` (importable as it is or from the rootdir)."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from pytest_mlab.agentfiles.args import (
    AgentArg,
    Named,
    check_used,
    parse_args,
    parse_named,
    texts_for,
)
from pytest_mlab.agentfiles.files import (
    agent_digest,
    content_digest,
    import_named,
    is_agent_file,
    load_file,
    pick_class,
)
from pytest_mlab.agentfiles.settings import make_agent, read_settings, settings_of
from pytest_mlab.core.agent_api import Agent
from pytest_mlab.core.plan import PlannedAgent
from pytest_mlab.errors import AgentLoadError, ConfigError
from pytest_mlab.lib.locate import builtin, search_path
from pytest_mlab.lib.suggest import unknown

AGENTS_GROUP = "pytest_mlab.agents"

_FILE = re.compile(r"(?P<path>.+\.py)(?::(?P<name>\w+))?")
_MODULE = re.compile(r"(?P<module>\w+(?:\.\w+)*):(?P<name>\w+)")


@dataclass(frozen=True)
class _Place:
    """Where a reference leads: a file, or an importable module; ``class_name`` '' leaves the choice
    to the file."""

    shown: str
    file: Path | None = None
    module: str = ""
    class_name: str = ""


def load_agent(ref: str, rootdir: Path) -> type[Agent]:
    """The agent class that ``ref`` means.

    Raises ConfigError for a name that does not exist (with the nearest match and all names) and
    AgentLoadError, naming file and line, for a file or class that is wrong."""
    return _load(_find(ref, rootdir), rootdir)


def plan_agents(
    refs: Iterable[str], rootdir: Path, args: Iterable[str] = ()
) -> tuple[PlannedAgent, ...]:
    """What a plan keeps of each agent, with the settings ``args`` (``key=value``,
    ``agent.key=value``) and those in brackets behind a reference. Raises as :func:`load_agent`
    does, and ConfigError for a setting that is wrong."""
    parsed = parse_args(args)
    named = [parse_named(ref) for ref in dict.fromkeys(refs)]
    places = [_find(reference.ref, rootdir) for reference in named]
    kinds = [_load(place, rootdir) for place in places]
    check_used(
        parsed,
        {p.shown: settings_of(kind) is not None for p, kind in zip(places, kinds, strict=True)},
    )
    agents = [
        _planned(reference, place, kind, parsed, rootdir)
        for reference, place, kind in zip(named, places, kinds, strict=True)
    ]
    names = [agent.name for agent in agents]
    for number, (reference, agent) in enumerate(zip(named, agents, strict=True)):
        # two command lines of one program would have one name
        if reference.called and names.count(reference.called) > 1:
            agents[number] = replace(agent, name=f"{agent.name}-{agent.digest[:4]}")
    return tuple(agents)


def plan_agent(ref: str, rootdir: Path) -> PlannedAgent:
    """What a plan keeps of an agent: the name to show, a reference that leads to the same class
    from any working directory, the digest of its files and settings, and whether it calls a model.
    Raises as :func:`plan_agents`."""
    return plan_agents([ref], rootdir)[0]


def digest_now(agent: PlannedAgent, rootdir: Path) -> str:
    """The digest that a planned agent would have today. Raises as :func:`load_agent` does."""
    place = _find(agent.ref, rootdir)
    return _digest(place, _load(place, rootdir), agent.settings, rootdir)


def _planned(
    named: Named, place: _Place, found: type[Agent], args: Sequence[AgentArg], rootdir: Path
) -> PlannedAgent:
    texts = texts_for(place.shown, args, named.own, has_settings=settings_of(found) is not None)
    settings = read_settings(found, texts, place.shown)
    made = make_agent(found, settings) if hasattr(found, "program_files") else found
    # A plan is run by workers and resumed later, from other working directories.
    lasting = (
        f"{place.file}:{found.__name__}" if place.file else f"{place.module}:{place.class_name}"
    )
    return PlannedAgent(
        name=named.shown(place.shown),
        ref=lasting,
        digest=_digest(place, found, settings, rootdir),
        needs_model=found.needs_model,
        settings=settings,
        requirements=tuple(getattr(made, "requirements", ())),
        fix=getattr(made, "requirements_fix", ""),
        interactive=getattr(found, "interactive", False),
        model_optional=getattr(found, "model_optional", False),
        program=_installed(made, rootdir) if isinstance(made, Agent) else "",
    )


def _files(place: _Place, found: type[Agent]) -> str:
    """The digest of an agent's files; '' for an agent that does not come from a .py file."""
    file = place.file or Path(sys.modules[found.__module__].__file__ or "")
    return agent_digest(file, _fallbacks()) if file.suffix == ".py" else ""


def _digest(
    place: _Place, found: type[Agent], settings: Mapping[str, object], rootdir: Path
) -> str:
    digest = _files(place, found)
    if settings:
        digest = hashlib.sha256(
            f"{digest}\n{json.dumps(dict(settings), sort_keys=True)}".encode()
        ).hexdigest()
    if hasattr(found, "program_files"):
        shown = shown_files(make_agent(found, settings), rootdir)
        if shown:
            digest = hashlib.sha256(f"{digest}\n{content_digest(shown)}".encode()).hexdigest()
    return digest


def _installed(agent: Agent, rootdir: Path) -> str:
    """The program that an agent runs, unless it is one of the project's own files."""
    program = str(getattr(agent, "program", ""))
    return "" if program in shown_files(agent, rootdir) else program


def shown_files(agent: Agent, rootdir: Path) -> Mapping[str, Path]:
    """The files of the host that an agent wants its programs to see, by their words for them.
    Raises ConfigError."""
    files = getattr(agent, "program_files", None)
    return {} if files is None else files(rootdir)


def known_agents(rootdir: Path) -> tuple[str, ...]:
    """The names of all agents that can be asked for by name, sorted."""
    names = {
        file.stem.replace("_", "-")
        for folder in search_path(rootdir, "agents")
        for file in _agent_files(folder)
    }
    return tuple(sorted(names | {point.name for point in _points()}))


def builtin_agents() -> tuple[str, ...]:
    """The names of the agents that come with pytest-mlab, sorted."""
    return tuple(sorted(file.stem.replace("_", "-") for file in _agent_files(builtin("agents"))))


def _find(ref: str, rootdir: Path) -> _Place:
    if match := _FILE.fullmatch(ref):
        file, name = _existing(Path(match["path"]), rootdir), match["name"] or ""
        return _Place(f"{file.stem}-{name}".strip("-").lower(), file, class_name=name)
    if match := _MODULE.fullmatch(ref):
        return _Place(match["name"].lower(), module=match["module"], class_name=match["name"])
    stem = ref.replace("-", "_")
    for folder in search_path(rootdir, "agents"):
        # These two alone: whether a file is an agent is found by parsing it.
        for file in (folder / f"{name}.py" for name in sorted({stem, ref})):
            if file.is_file() and is_agent_file(file):
                return _Place(file.stem.replace("_", "-"), file.resolve())
    for point in _points():
        if point.name == ref:
            return _Place(ref, module=point.module, class_name=point.attr)
    for folder in search_path(rootdir, "agents"):
        if (file := folder / f"{stem}.py").is_file():
            return _Place(ref, file.resolve())  # loading it says why it is not an agent
    raise ConfigError(
        unknown("agent", ref, known_agents(rootdir))
        + "; a file is given as path/to/file.py or path/to/file.py:Class"
    )


def _existing(path: Path, rootdir: Path) -> Path:
    tried = list(dict.fromkeys((base / path).resolve() for base in (Path.cwd(), rootdir)))
    for candidate in tried:
        if candidate.is_file():
            return candidate
    raise ConfigError(
        f"agent file {str(path)!r} does not exist; looked for {' and '.join(map(str, tried))}"
    )


def _load(place: _Place, rootdir: Path) -> type[Agent]:
    if place.file is not None:
        return pick_class(load_file(place.file, _fallbacks()), place.class_name)
    if str(rootdir) not in sys.path:
        sys.path.append(str(rootdir))  # last: a project's own modules never hide installed ones
    module = import_named(place.module)
    if not place.class_name:
        raise AgentLoadError(
            f"entry point {place.shown!r} names {place.module!r}; it must name module:Class"
        )
    return pick_class(module, place.class_name)


def _fallbacks() -> Sequence[Path]:
    return (builtin("agents"),)


def _agent_files(folder: Path) -> list[Path]:
    return sorted(file.resolve() for file in folder.glob("*.py") if is_agent_file(file))


def _points() -> list[EntryPoint]:
    return sorted(entry_points(group=AGENTS_GROUP), key=lambda point: point.name)
