"""Checks of ``mlab validate``: the built-in ones, and those of other packages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.errors import ConfigError
from pytest_mlab.validation.registry import BUILT_IN, GROUP, all_checks, chosen
from tests.support.installed import install
from tests.support.toy_suite import write_toy_suite

SHORT = """\
from pytest_mlab.validation.finding import fail, ok


class Short:
    name = "short"
    about = "the summary is short"

    def run(self, bench):
        words = len(bench.task.summary.split())
        return ok(f"{words} words", words=words) if words < 10 else fail(f"{words} words")
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_toy_suite(tmp_path, suite="lab", tasks=("guess", "other"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLAB_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_a_check_of_another_package_is_listed_made_and_reported_everywhere(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(*words: str) -> str:
        assert cli.main(["validate", "--sandbox", "local", *words]) == 0
        return capsys.readouterr().out

    install(
        project / "site",
        monkeypatch,
        group=GROUP,
        name="short",
        value="lab_check:Short",
        code=SHORT,
    )
    assert shown("--list").splitlines()[-1].split() == ["short", "the", "summary", "is", "short"]
    assert "ok      short         7 words" in shown("lab/guess", "--only", "short")
    (report,) = json.loads(shown("lab/guess", "--only", "short", "--json"))
    assert report["checks"][0]["check"] == "short"
    assert report["checks"][0]["facts"] == {"words": 7}
    assert "Checks: short." in shown("lab/guess", "--only", "short", "--markdown")
    assert shown("lab", "--only", "short", "--jobs", "2").count("7 words") == 2
    assert [check.name for check in all_checks()] == [*(c.name for c in BUILT_IN), "short"]


def test_a_check_may_not_take_the_name_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = SHORT.replace('"short"', '"leaks"')
    install(tmp_path, monkeypatch, group=GROUP, name="mine", value="lab_leaks:Short", code=code)
    with pytest.raises(ConfigError, match="lab_leaks:Short"):
        all_checks()


def test_chosen_checks_keep_the_order_in_which_they_build_on_one_another() -> None:
    assert [check.name for check in chosen(["reference", "schema"])] == ["schema", "reference"]
    with pytest.raises(ConfigError, match="schema"):
        chosen(["shema"])


def test_names_are_unique() -> None:
    assert len({check.name for check in BUILT_IN}) == len(BUILT_IN)
