"""Which requirements are met."""

from __future__ import annotations

import pytest

from pytest_mlab.lib import packages


def test_a_requirement_of_another_python_does_not_apply() -> None:
    found = packages.applicable(["a>=1; python_version < '3'", "b; python_version >= '3'", "c"])
    assert [one.name for one in found] == ["b", "c"]


@pytest.mark.parametrize(
    ("text", "version", "met"),
    [
        ("a", "0.1", True),
        ("a>=1,<2", "1.9", True),
        ("a>=1,<2", "2.0", False),
        ("a>=2", "2.13.0+cpu", True),
        ("a>=2", "2.1.dev3", True),
        ("a", None, False),
    ],
)
def test_a_requirement_is_met_by_a_version(text: str, version: str | None, met: bool) -> None:
    versions = {} if version is None else {"a": version}
    assert (packages.unmet(packages.applicable([text]), versions) == []) is met


def test_absent_packages_have_no_version() -> None:
    found = packages.installed(["pytest", "no-such-package-at-all"])
    assert found.keys() == {"pytest"}


def test_the_command_quotes_for_a_shell() -> None:
    assert packages.install_command(["a>=1", "b"]) == "python -m pip install 'a>=1' 'b'"
