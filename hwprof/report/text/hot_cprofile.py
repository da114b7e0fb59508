"""What ``hwprof report --cprofile`` prints: a table a stage."""

from __future__ import annotations

from rich.text import Text

from hwprof.report.document.hot_cprofile import HotCProfile
from hwprof.report.text import cprofile
from hwprof.report.text.page import Page
from hwprof.report.text.raw_files import where


def show(found: HotCProfile, page: Page) -> None:
    """Stages in the order of their hottest function."""
    part = found.cprofile
    page.console.print(Text(f"run {found.run}, pass {part.pass_}"))
    for stage in dict.fromkeys(row.stage for row in part.rows):
        cprofile.table([row for row in part.rows if row.stage == stage], page, f"Python calls in {stage}, by self time")
    page.notes([*cprofile.notes(part, page), *where(part.files)])
