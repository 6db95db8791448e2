"""Generated pages are what their command writes today, and links between pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_mlab.cli import main

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert not [target for target in targets if not (page.parent / target).exists()]
