"""What ``hwprof report --findings`` prints: each cause in full, then what was tried."""

from __future__ import annotations

import shlex

from rich.text import Text

from hwprof.printable import printable
from hwprof.report.document.hot_findings import HotFindings
from hwprof.report.text import findings, to_do, trials
from hwprof.report.text.page import Page
from hwprof.unavailable import explain


def show(found: HotFindings, page: Page) -> None:
    """All of them."""
    page.console.print(Text(f"run {found.run}"))
    missing = found.findings.missing
    if missing is not None:
        page.console.print(Text(f"no findings: {explain(missing.reason, missing.remedy)}"))
    elif not found.findings.rows:
        page.console.print(to_do.nothing(found.findings, page))
    findings.of_rows(found.findings.rows, found.findings, page)
    if found.findings.trials is not None:
        page.title("Remedies that were tried")
        trials.show(found.findings.trials, page.console, printable(shlex.quote(found.run)))
