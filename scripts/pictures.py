"""The README's pictures, from a real run: the first screen as a terminal shows it, and the trace in the Perfetto UI.

    python -m scripts.pictures results/RUN
    python -m scripts.pictures results/RUN --screen docs/screens/lstm.svg   # only the first screen, into this file

Needs chromium and the extras ``dev``. The report becomes an SVG, the UI a screenshot.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from pathlib import Path

from hwprof.report.document import builder
from hwprof.report.text import first_screen
from hwprof.report.text.console import TrimmedConsole
from hwprof.report.text.page import Page
from hwprof.run.directory import RunDirectory

WIDTH = 100
ROWS = 8
HEIGHT = 1700
"""Of the UI: all pinned tracks at once."""
DOCS = Path("docs")


def _report(run: RunDirectory, target: Path) -> None:
    console = TrimmedConsole(record=True, width=WIDTH, force_terminal=True, file=io.StringIO(), highlight=False)
    document = builder.build(run, top=ROWS, sort="time")
    first_screen.show(Page(document, console))
    title = " ".join(document.run.command[:4])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(console.export_svg(title=title), encoding="utf-8")


def _user_interface(run: RunDirectory, target: Path) -> None:
    from hwprof.trace import initial_view, viewer
    from tests.support.perfetto import ui

    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("needs chromium")
    with viewer.TraceServer(run.path / "trace.pftrace", offline=True) as server:
        shown = ui.look(chromium, server.url(initial_view.parameters(run)), target, height=HEIGHT)
    print(f"{shown.slices} slices, pinned: {', '.join(shown.pinned)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--screen", type=Path, metavar="FILE")
    options = parser.parse_args()
    run = RunDirectory.open(options.run)
    if options.screen is not None:
        _report(run, options.screen)
        return
    DOCS.mkdir(exist_ok=True)
    _report(run, DOCS / "report.svg")
    _user_interface(run, DOCS / "perfetto.png")


if __name__ == "__main__":
    main()
