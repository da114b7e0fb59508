"""What ``hwprof doctor`` found, on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hwprof.report.document.diagnosis import Diagnosis, Finding
from hwprof.run.manifest import Tool
from hwprof.unavailable import explain


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Prints it: one line each, and below it why not, and the command that would change it."""
    machine = diagnosis.machine
    facts = f", {machine.logical_processors} processors, {machine.kernel}"
    console.print(Text.assemble((machine.processor, "bold"), facts))
    for kind, title in (("collector", "Collectors"), ("package", "Packages that commands need")):
        console.print()
        console.print(Text(title, "bold"))
        for finding in diagnosis.findings:
            if finding.kind == kind:
                _show_finding(console, finding)


def _show_finding(console: Console, finding: Finding) -> None:
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    grid.add_column(width=3)
    grid.add_column(width=16)
    grid.add_column()
    mark = Text("yes", "green") if finding.available else Text("no", "bold red")
    what = finding.what_for + (f" ({finding.version})" if finding.version else "")
    grid.add_row(mark, Text(finding.name, "bold"), what)
    reason = [f"not available: {explain(finding.reason, finding.remedy)}"] if finding.reason else []
    for text in (*map(_tool, finding.tools), *reason, *map(str, finding.notes)):
        grid.add_row("", "", Text(text))
    console.print(Padding(grid, (0, 0, 0, 1)))


def _tool(tool: Tool) -> str:
    """``py-spy 0.4.3: /usr/bin/py-spy``."""
    named = f"{tool.name} {tool.version or '(version not known)'}"
    return f"{named}: {tool.path}" if tool.path else named
