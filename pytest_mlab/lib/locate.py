"""Where suites and agents are found: in the user's project, built in, or in installed packages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from pytest_mlab.errors import ConfigError

Kind = Literal["task_suites", "agents"]

DEFAULT_SUITE = "mlagentbench"
SUITES_GROUP = "pytest_mlab.suites"
CACHE_VARIABLE = "MLAB_CACHE_DIR"
NAME_A_CACHE = (
    f"name a folder with {CACHE_VARIABLE}, with pytest --mlab-cache-dir=DIR, or with mlab prepare"
    " --cache-dir DIR"
)

_PACKAGE = Path(__file__).resolve().parents[1]


def builtin(kind: Kind) -> Path:
    """The folder of built-in suites or agents: package data of a wheel, the top-level folder of a
    source checkout.

    Raises ConfigError when the installation holds neither.
    """
    candidates = (_PACKAGE / "_builtin" / kind, _PACKAGE.parent / kind)
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise ConfigError(
        f"this installation of pytest-mlab has no built-in {kind}: looked for {candidates[0]} and"
        f" {candidates[1]}; install it again from a wheel or work in a source checkout"
    )


def default_cache_dir() -> Path:
    """The folder named by ``MLAB_CACHE_DIR``, or the platform's place for caches (XDG on Linux).

    Raises ConfigError where the user has no home folder to put it in."""
    if named := os.environ.get(CACHE_VARIABLE):
        return expand(Path(named)).resolve()
    from platformdirs import user_cache_path

    try:
        folder = user_cache_path("pytest-mlab", appauthor=False)
    except RuntimeError:
        folder = Path("~")
    # With neither HOME nor an entry in the password database, platformdirs raises or, in older
    # versions, leaves ~ as it is.
    if not folder.is_absolute():
        raise ConfigError(
            f"there is no home folder for the cache (HOME is not set, and user id {os.getuid()} has"
            f" no entry in the password database); {NAME_A_CACHE}"
        )
    return folder


def expand(path: Path) -> Path:
    """``path`` with a leading ``~`` replaced. Raises ConfigError where there is no home folder."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{path}: {error}; write the path without ~") from None


def writable_cache(folder: Path) -> Path:
    """``folder``, which exists or can be made. Raises ConfigError where it cannot be written."""
    try:
        there = next(p for p in (folder, *folder.parents) if p.exists())
        problem = "" if there.is_dir() and os.access(there, os.W_OK | os.X_OK) else str(there)
    except PermissionError as error:
        problem = str(error.filename)
    if problem:
        raise ConfigError(
            f"the cache {folder} cannot be written ({problem} is not a folder that user id"
            f" {os.geteuid()} may write); {NAME_A_CACHE}"
        )
    return folder


def is_path(suite: str) -> bool:
    """True when ``suite`` is a path, and not a name."""
    return os.sep in suite or suite.startswith((".", "~"))


def suite_name(suite: str) -> str:
    """A suite's name in reports and node ids: its own, or the last part of its path."""
    return expand(Path(suite)).resolve().name if is_path(suite) else suite


def search_path(rootdir: Path, kind: Kind) -> tuple[Path, ...]:
    """Folders that hold suites or agents: ``rootdir``'s own, then the built-in one. The first
    match wins."""
    own, shipped = (rootdir / kind).resolve(), builtin(kind)
    if not own.is_dir() or own == shipped.resolve():
        return (shipped,)
    return (own, shipped)


def entry_point_suites() -> Mapping[str, Path]:
    """Suites of installed packages: the entry points of the group ``pytest_mlab.suites`` by name.

    An entry point names a package (``my-suite = "my_package.my_suite"``), whose folder is the
    suite. The package is not imported. Raises ConfigError when it does not exist."""
    found: dict[str, Path] = {}
    for point in entry_points(group=SUITES_GROUP):
        try:
            spec = find_spec(point.module)
        except ModuleNotFoundError:
            spec = None
        places = list(spec.submodule_search_locations or ()) if spec else []
        if not places:
            raise ConfigError(
                f"entry point {point.name!r} of group {SUITES_GROUP} names {point.value!r}, which"
                " is not an installed package; a suite's entry point names the package whose folder"
                " holds its tasks"
            )
        found.setdefault(point.name, Path(places[0]))
    return found
