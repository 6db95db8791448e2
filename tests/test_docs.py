"""Generated pages are what their command writes today, and links between pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_mlab.cli import main
from pytest_mlab.validation.registry import BUILT_IN
from pytest_mlab.validation.render import recorded_cells
from tests.tasks.conftest import TASKS, load

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize(
    ("command", "page"), [("options", "options"), ("tasks", "tasks"), ("agents", "agent-settings")]
)
def test_a_generated_page_is_up_to_date(
    command: str, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--markdown"]) == 0
    written = (ROOT / "docs" / f"{page}.md").read_text()
    assert capsys.readouterr().out == written, f"mlab {command} --markdown > docs/{page}.md"


def test_the_page_of_validated_tasks_has_today_s_tasks_baselines_and_checks() -> None:
    """Its other columns are measured: they are written by a run of `mlab validate`."""
    page = (ROOT / "docs" / "validated.md").read_text()
    written = [line.strip("| ").split(" | ") for line in page.splitlines() if "| yes |" in line]
    fix = "mlab validate mlagentbench --markdown > docs/validated.md"
    assert [row[:4] for row in written] == [recorded_cells(load(name), "mini") for name in TASKS], (
        fix
    )
    assert f"Checks: {', '.join(check.name for check in BUILT_IN)}." in page, fix


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert not [target for target in targets if not (page.parent / target).exists()]
