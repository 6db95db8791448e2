"""Generated pages are what their command writes today, and links between pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_mlab.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("command", ["options", "tasks"])
def test_a_generated_page_is_up_to_date(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--markdown"]) == 0
    page = ROOT / "docs" / f"{command}.md"
    assert capsys.readouterr().out == page.read_text(), f"mlab {command} --markdown > docs/{command}.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert not [target for target in targets if not (page.parent / target).exists()]
