"""Requirements in pip's words: which of them are not met, and the command that installs them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def applicable(requirements: Iterable[str]) -> list[Requirement]:
    """Those whose marker holds for this Python, such as ``tomli; python_version < '3.11'``."""
    from packaging.requirements import Requirement

    wanted = map(Requirement, requirements)
    return [one for one in wanted if one.marker is None or one.marker.evaluate()]


def unmet(wanted: Iterable[Requirement], versions: Mapping[str, str]) -> list[Requirement]:
    """Those that ``versions``, by the requirements' names, do not satisfy. A development version
    counts as what it will be released as: builds of torch are called ``2.13.0+cpu``."""
    return [
        one
        for one in wanted
        if one.name not in versions
        or not one.specifier.contains(versions[one.name], prereleases=True)
    ]


def installed(names: Iterable[str]) -> dict[str, str]:
    """The versions that this Python finds; a package that is absent has none."""
    found: dict[str, str] = {}
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def install_command(requirements: Iterable[object], python: str = "python") -> str:
    """The command that installs ``requirements``, for a shell."""
    return f"{python} -m pip install " + " ".join(f"'{one}'" for one in requirements)
